"""The graph channel: from the names in a question and the passages that fit it to passages that share no word with it.

1. Look up the titles and entities that the question names.
2. Take the best three passages as parents: .5 vector + .5 keyword + .3 query link, each relative to its best.
3. Weigh each sentence of a parent by what it covers of the question.
4. Ask the keyword index once for each parent, for what the question still asks and the parent's best sentences name:
   the residual hop.
5. Follow title mentions, shared entities, links and statements from the parents.
6. Add the terms up, and let the gate decide how far they count beside the other channels.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from indexer.sentences import sentence_spans
from query_api.channels.keyword import keyword_channel
from query_api.graph import terms
from query_api.graph.findings import NOTHING, Findings, Gathered
from query_api.graph.identifiers import MISSING
from query_api.graph.query_links import NamedEntity, QueryLink, query_links
from query_api.graph.terms import Parent, Reach, Reason, Sentence
from query_api.graph_view import GraphView
from query_api.question import Question, WordWeights, normalise_text
from query_api.ranking import relative_to_best
from query_api.snapshot import Candidate, TextSnapshot

PARENTS = 3
POOL = 24  # passages whose texts say which of the question's words tell them apart
RESIDUAL_HITS = 50
SHARPEN_ABOVE = 25
MAX_PARENT_CHARACTERS = 4_000
MAX_RESIDUAL_NAMES = 12
MAX_REACHED = 500

Result = TypeVar("Result")


class RunInThread(Protocol):
    """Runs a blocking function in a thread."""

    def __call__(self, function: Callable[[], Result]) -> Awaitable[Result]: ...


@dataclass(frozen=True)
class TermWeights:
    """What each term counts in the sum. The first six from a prototype's tuning, the others by analogy."""

    named: float = 1.0
    title_mention: float = 0.4
    telling_title_mention: float = 0.3
    shared: float = 0.5
    residual: float = 0.4
    sharp_residual: float = 0.3
    mentioned_by: float = 0.2
    linked: float = 0.4
    stated: float = 0.5
    mentioning: float = 0.5
    seed: float = 0.5


async def graph_channel(
    question: Question,
    view: GraphView,
    text: TextSnapshot,
    collection: str | None,
    vector: Sequence[Candidate],
    keyword: Sequence[Candidate],
    run: RunInThread,
    *,
    always: bool,
    weights: TermWeights = TermWeights(),
) -> Findings:
    """Reach passages from the question; see the module. Blocking work goes through `run`.

    With `always` the graph is followed whatever the gate says: it is asked alone. Else a closed gate ends the work
    before it costs anything.
    """
    links, entities = await run(lambda: query_links(question, view, collection))
    gate = opening(links, entities)
    if not gate and not always:
        return NOTHING
    gathered = await run(lambda: _gather(question, view, text, links, entities, vector, keyword))  # 2, 3
    queries = [residual_query(question, parent) for parent in gathered.parents]  # 4
    hops = await asyncio.gather(*(_hop(run, text, query, collection) for query in queries))
    return await run(lambda: _follow(question, view, collection, gathered, hops, gate, weights))  # 5, 6


async def _hop(run: RunInThread, text: TextSnapshot, query: str, collection: str | None) -> list[Candidate]:
    return await run(lambda: keyword_channel(text, query, RESIDUAL_HITS, collection)) if query else []


def opening(links: Sequence[QueryLink], entities: Sequence[NamedEntity]) -> float:
    """How far the graph counts beside the other channels: fully when the question names a title, else not at all.

    Without this gate the graph costs ordinary searches more than it gives the others.
    """
    del entities
    return 1.0 if links else 0.0


def choose_parents(prior: Mapping[int, float], named: Mapping[int, Reach], count: int) -> list[tuple[int, float]]:
    """The best passages by prior + .3 named, with weights relative to the best."""
    scores = {
        passage: prior.get(passage, 0.0) + 0.3 * (named[passage].score if passage in named else 0.0)
        for passage in prior.keys() | named.keys()
    }
    best = sorted(scores, key=lambda passage: (-scores[passage], passage))[:count]
    return [(passage, scores[passage] / scores[best[0]]) for passage in best if scores[passage] > 0]


def combined(vector: Mapping[int, float], keyword: Mapping[int, float]) -> dict[int, float]:
    """.5 vector + .5 keyword, each relative to its best."""
    return {
        passage: 0.5 * vector.get(passage, 0.0) + 0.5 * keyword.get(passage, 0.0)
        for passage in vector.keys() | keyword.keys()
    }


def residual_query(question: Question, parent: Parent) -> str:
    """What the question asks that the parent does not hold, and the names in the parent's two best sentences that the
    question does not hold; empty without such a name."""
    held = question.stems_in(" ".join(sentence.text for sentence in parent.sentences))
    open_words = [question.word_of_stem[stem] for stem in question.stems if stem not in held]
    names = [name for sentence in parent.best_sentences(2) for name in sentence.names if not question.names(name)]
    return " ".join([*open_words, *list(dict.fromkeys(names))[:MAX_RESIDUAL_NAMES]]) if names else ""


def sharpened(scores: Sequence[float]) -> list[float]:
    """Scores that fall from a best of 1, stretched so that the 25th of them becomes 0: the head of the list alone."""
    if len(scores) < SHARPEN_ABOVE:
        return list(scores)
    floor = scores[SHARPEN_ABOVE - 1]
    return [max(0.0, score - floor) / (1 - floor) if floor < 1 else 0.0 for score in scores]


def _gather(
    question: Question,
    view: GraphView,
    text: TextSnapshot,
    links: list[QueryLink],
    entities: list[NamedEntity],
    vector: Sequence[Candidate],
    keyword: Sequence[Candidate],
) -> Gathered:
    """Steps 2 and 3. The one read from the store brings the parents' texts and those of the pool they are weighed by."""
    by_vector = _numbered(view, relative_to_best(_best_scores(vector)))
    by_words = _numbered(view, relative_to_best(_best_scores(keyword)))
    prior = combined(by_vector, by_words)
    named = terms.strongest(terms.named(links, terms.entrances(view, prior)))
    chosen = choose_parents(prior, named, PARENTS)
    pool = sorted(prior, key=lambda passage: (-prior[passage], passage))[:POOL]
    ids = {passage: view.passage_id(passage) for passage in [*pool, *(passage for passage, _ in chosen)]}
    texts = text.passages(sorted(set(ids.values())))
    weights = WordWeights.over(
        question.stems, (question.stems_in(texts[ids[passage]].text) for passage in pool if ids[passage] in texts)
    )
    chosen = [(passage, weight) for passage, weight in chosen if ids[passage] in texts]
    read = {passage: f"{texts[ids[passage]].title}.\n{texts[ids[passage]].text}" for passage, _ in chosen}
    via = {passage: links[reach.reason.parent] for passage, reach in named.items()}
    return Gathered(links, entities, prior, _parents(question, view, chosen, read, via, weights))


def _parents(
    question: Question,
    view: GraphView,
    chosen: Sequence[tuple[int, float]],
    texts: Mapping[int, str],
    via: Mapping[int, QueryLink],
    weights: WordWeights,
) -> list[Parent]:
    mentions = view.mentions_in(np.array([passage for passage, _ in chosen], dtype=np.int64))
    names = view.entity_names(np.unique(mentions.entity).tolist())
    first_chunk: list[dict[int, int]] = [{} for _ in chosen]
    for at, chunk, entity in zip(
        mentions.asked.tolist(), mentions.chunk.tolist(), mentions.entity.tolist(), strict=True
    ):
        first_chunk[at].setdefault(entity, chunk)
    parents = []
    for (passage, weight), chunks in zip(chosen, first_chunk, strict=True):
        of_passage = {entity: names[entity][1] for entity in chunks}
        longest_first = sorted(set(of_passage.values()), key=lambda name: (-len(name), name))
        sentences = tuple(_sentences(question, texts[passage][:MAX_PARENT_CHARACTERS], longest_first, weights))
        held = {
            entity: terms.Held(name, chunks[entity], terms.value(_best_share(sentences, name)))
            for entity, name in of_passage.items()
        }
        document = view.document_of_passage(passage)
        parents.append(Parent(passage, document, weight, via.get(passage), sentences, held))
    return parents


def _sentences(question: Question, text: str, longest_first: Sequence[str], weights: WordWeights) -> Iterator[Sentence]:
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        normalised = rest = f" {normalise_text(sentence)} "
        names = []
        for name in longest_first:
            if f" {name} " in rest:
                names.append(name)
                rest = rest.replace(f" {name} ", "  ")
        yield Sentence(sentence, normalised, weights.share(question.stems_in(sentence)), tuple(names))


def _best_share(sentences: Sequence[Sentence], name: str) -> float:
    return max((sentence.share for sentence in sentences if f" {name} " in sentence.normalised), default=0.0)


def _residual(view: GraphView, parents: Sequence[Parent], hops: Sequence[Sequence[Candidate]]) -> list[list[Reach]]:
    """What the residual hops found, as (plain, sharpened), each scaled by its best and the parent's weight."""
    plain: list[Reach] = []
    sharp: list[Reach] = []
    for at, (parent, found) in enumerate(zip(parents, hops, strict=True)):
        scores = relative_to_best(_best_scores(found))
        numbers = view.passages(list(scores))
        reason = Reason("continues", at)
        for number, score, sharper in zip(
            numbers.tolist(), scores.values(), sharpened(list(scores.values())), strict=True
        ):
            if number not in (MISSING, parent.passage):
                plain.append(Reach(number, parent.weight * score, reason))
                sharp.append(Reach(number, parent.weight * sharper, reason))
    return [plain, sharp]


def _follow(
    question: Question,
    view: GraphView,
    collection: str | None,
    gathered: Gathered,
    hops: Sequence[Sequence[Candidate]],
    gate: float,
    weights: TermWeights,
) -> Findings:
    """Steps 5 and 6: score = Σ weight x strongest reach of each term."""
    enter = terms.entrances(view, gathered.prior)
    parents = gathered.parents
    plain, telling = terms.title_mentions(view, parents, enter)
    residual, sharp = _residual(view, parents, hops)
    weighted: list[tuple[float, Iterable[Reach]]] = [
        (weights.named, terms.named(gathered.links, enter)),
        (weights.mentioning, terms.mentioning(gathered.entities, view)),
        (
            weights.seed,
            (Reach(parent.passage, parent.weight, Reason("matches", at)) for at, parent in enumerate(parents)),
        ),
        (weights.title_mention, plain),
        (weights.telling_title_mention, telling),
        (weights.mentioned_by, terms.mentioned_by(view, parents)),
        (weights.shared, terms.shared(view, parents)),
        (weights.linked, terms.linked(view, parents, enter)),
        (
            weights.stated,
            terms.stated(view, parents, enter, lambda predicate: float(bool(question.stems_in(predicate)))),
        ),
        (weights.residual, residual),
        (weights.sharp_residual, sharp),
    ]
    scores: dict[int, float] = {}
    best: dict[int, tuple[float, Reason]] = {}
    for weight, reaches in weighted:
        for passage, reach in terms.strongest(reaches).items():
            part = weight * reach.score
            scores[passage] = scores.get(passage, 0.0) + part
            if passage not in best or part > best[passage][0]:
                best[passage] = part, reach.reason
    ordered = sorted(scores, key=lambda passage: (-scores[passage], passage))
    if collection is not None:  # a link may lead into another collection
        ordered = [passage for passage in ordered if view.collection_of_passage(passage) == collection]
    numbers = {view.passage_id(passage): passage for passage in ordered[:MAX_REACHED]}
    return Findings(
        gate,
        numbers,
        {identifier: scores[passage] for identifier, passage in numbers.items()},
        {identifier: best[passage][1] for identifier, passage in numbers.items()},
        gathered,
    )


def _best_scores(candidates: Sequence[Candidate]) -> dict[str, float]:
    """{passage id: its best score} of candidates that are sorted best first."""
    scores: dict[str, float] = {}
    for candidate in candidates:
        scores.setdefault(candidate.passage_id, candidate.score)
    return scores


def _numbered(view: GraphView, scores: Mapping[str, float]) -> dict[int, float]:
    """Scores by passage number; passages that the graph does not hold yet are left out."""
    numbers = view.passages(list(scores)).tolist()
    return {number: score for number, score in zip(numbers, scores.values(), strict=True) if number != MISSING}
