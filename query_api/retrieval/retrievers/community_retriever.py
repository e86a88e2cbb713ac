"""The community retriever, for questions about a whole collection: what its main themes are, all about a topic.

1. Map: each community of a level gets a relevance to the question from 0 to 10; the twelve best are looked at.
2. Reduce: the best five of those above 2 give passages, in proportion to their relevances; a topic's own come first.

The steps are those of global search in Edge et al. 2024, "From Local to Global: A GraphRAG Approach", section 3.1.6,
without a language model: summaries are sentences of documents, and relevance is computed.
"""

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.errors import TransientStoreError
from indexer.text_analysis import terms_of
from query_api.index.community_view import LEVELS, CommunityView
from query_api.index.graph.edges import rows_of
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.typed_mentions import typed_mentions_in_passages
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import Snapshot
from query_api.index.text.text_segments import Candidate, Scope
from query_api.query.analysis import Question, analysed_question, intent_of, topic_of
from query_api.query.entity_linking import LinkedNames, QueryLink, link_names
from query_api.retrieval.exact_scores import ExactScorer, best_scores
from query_api.retrieval.retrievers.graph_edges import Reason
from query_api.retrieval.retrievers.graph_scoring import NO_RESULTS, GraphResults
from query_api.retrieval.retrievers.graph_seeds import SeedSet
from schemas.choices import CommunityLevel
from schemas.communities import CommunitySummary
from schemas.hits import HitCommunity
from schemas.search import SearchRequest

MOST_RELEVANT = 10.0
MIN_RELEVANCE = 2.0
MAPPED, REDUCED = 12, 5
NO_ROW = -1
LEVEL_OF_A_TOPIC: CommunityLevel = "medium"
SHARE_OF_WORDS = 0.5  # in the relevance to a topic
PASSAGES_ON_TOPIC = 64
MOST_MENTIONS = 1_024  # of a topic, or passages of a document about it, that are looked at beside these
_DECIMALS = 4

MODE_DECIDED_BY = frozenset(
    {"mode", "channels", "fusion", "graph_method", "names", "edges", "reranker", "min_confidence", "decompose"}
)


async def with_mode_of_intent(request: SearchRequest, snapshot: Snapshot) -> SearchRequest:
    """In mode `global`, where the question is about a whole collection, or asks for a summary or nothing special and
    names nothing, communities are there to answer it, and the request says nothing of how to search."""
    if snapshot.communities is None or MODE_DECIDED_BY & request.model_fields_set:
        return request
    question, intent = analysed_question(request.q), request.intent or intent_of(request.q)
    is_global = intent == "global" or (intent == "general" and len(question.stems) > 1 and not topic_of(question).stems)
    if intent == "summarise":
        asked = topic_of(question), snapshot.graph, request.collection, None, snapshot.curation.aliases
        names = await asyncio.to_thread(link_names, *asked)  # which looks at every name
        is_global = not names.links and not names.entities
    return request.model_copy(update={"mode": "global"}) if is_global else request


class CommunityResults(NamedTuple):
    """The passages found, best first, and the community of each; in `graph`, why those on a topic are."""

    candidates: Sequence[Candidate]
    communities: Mapping[str, HitCommunity]
    graph: GraphResults = NO_RESULTS


NO_COMMUNITIES = CommunityResults((), {})


class _Mapped(NamedTuple):
    """A community, None for what none holds, with its relevance and the passages that speak for it, best first."""

    summary: CommunitySummary | None
    relevance: float
    sources: Sequence[Candidate]


def search_communities(
    snapshot: Snapshot, question: Question, names: LinkedNames | None, vector: NDArray[np.float32] | None, scope: Scope
) -> CommunityResults:
    """`names` are what the topic names; `vector`, (dimension,), is that of the question; without one its words decide
    alone. Blocks. Raises TransientStoreError where no communities are found yet."""
    view, topic = snapshot.communities, topic_of(question)
    if view is None:
        raise TransientStoreError("no communities are found yet: the worker finds them after a snapshot of the graph")
    if not topic.stems:
        return _by_highest_average([_reduced(_themes(snapshot, view, scope, level)) for level in LEVELS])
    about, others, graph = _on_topic(snapshot, names or LinkedNames([], []), topic, vector, scope)
    mapped = _reduced(_communities_of_a_topic(snapshot, view, topic, others, scope))
    if about:
        rows = view.of_entities(
            np.array([graph.reasons[about[0].passage_id].entity], dtype=np.uint64), LEVEL_OF_A_TOPIC
        )
        summary = next(view.summaries(rows[rows != NO_ROW].tolist()), None)
        mapped = [_Mapped(summary, MOST_RELEVANT, about), *mapped]
    return _by_highest_average([mapped])._replace(graph=graph)


def _reduced(mapped: Iterable[_Mapped]) -> list[_Mapped]:
    best = sorted(mapped, key=lambda each: (-each.relevance, each.summary.id if each.summary else ""))[:MAPPED]  # 1
    return [each for each in best if each.relevance > MIN_RELEVANCE][:REDUCED]  # 2


def _on_topic(
    snapshot: Snapshot, names: LinkedNames, topic: Question, vector: NDArray[np.float32] | None, scope: Scope
) -> tuple[list[Candidate], list[Candidate], GraphResults]:
    """The passages of documents about the topic, others, and why each is on it: those nearest to the question by
    meaning and to the topic by words. Where a name in the graph or in a title is the topic, or some texts hold its
    words in a row: all of documents about it, and of the others only what mentions it or holds these."""
    text, graph, phrase = snapshot.text, snapshot.graph, _phrase(topic.text)
    nearest = [] if vector is None else text.vector_search(vector, PASSAGES_ON_TOPIC, scope)
    nearest += text.keyword_search(topic.text, PASSAGES_ON_TOPIC, scope)
    found = {each.passage_id: each for each in reversed(nearest)}
    held = [name for name, row in text.passages(found).items() if phrase in _phrase(" ".join((*row.section, row.text)))]
    links = [each for each in names.links if _phrase(each.surface) == phrase]
    keys = {each.entity for each in links}.union(e.entity for e in names.entities if _phrase(e.surface) == phrase)
    if not links:
        documents = {at for each in found.values() if (at := graph.document(each.key)) is not None}
        titled = [at for at in sorted(documents) if phrase in _phrase(graph.title(at))]
        about_of = graph.about_of(np.array(titled, dtype=np.int64))
        entity_of = {at: key for _, at, key in sorted(rows_of(about_of.weight, about_of.document, about_of.entity))}
        links = [QueryLink(topic.text, entity_of.get(at, 0), at, 1.0) for at in titled]
    mentions = (column[:MOST_MENTIONS] for column in graph.mention_edges_of(np.array(sorted(keys), dtype=np.uint64)))
    why = {passage: Reason("mentioned", 0, entity, chunk) for _, chunk, passage, entity in rows_of(*mentions)}
    for at, link in enumerate(links):
        of_document = graph.passages_of_document(link.document)[:MOST_MENTIONS]
        why |= dict.fromkeys(of_document, Reason("names", at, link.entity))
    for number, passage in zip(why, graph.ids_of_passages(list(why)), strict=True):
        if scope.allows(key := graph.document_key(graph.document_of_passage(number))):
            found.setdefault(passage, Candidate(passage, 0.0, key))
    scorer = ExactScorer(text, topic.text, scope.collection, vector, best_scores(nearest), with_words=True)
    numbers = dict(zip(found, graph.passages(list(found)).tolist(), strict=True))
    why = {numbers[passage]: Reason("mentioned", 0) for passage in held} | why
    reasons = {passage: why[number] for passage, number in numbers.items() if number in why and number != MISSING}
    strengths = {passage: links[each.origin].strength for passage, each in reasons.items() if each.term == "names"}
    pairs = zip(found.values(), scorer.score(list(found)).text.tolist(), strict=True)
    scored = [each._replace(score=score + (each.passage_id in reasons)) for each, score in pairs]
    scored.sort(key=lambda each: (-strengths.get(each.passage_id, 0.0), -each.score, each.passage_id))
    is_known = keys or links or len(held) >= REDUCED
    others = [each for each in scored[len(strengths) :] if each.passage_id in reasons or not is_known]
    return scored[: len(strengths)], others, GraphResults(0.0, numbers, {}, reasons, SeedSet(links, {}, []))


def _phrase(text: str) -> str:
    """The terms of a text in a row; a phrase of the text is a part of its row."""
    return f" {' '.join(map(str, terms_of(text)))} "


def _themes(snapshot: Snapshot, view: CommunityView, scope: Scope, level: CommunityLevel) -> list[_Mapped]:
    """By the logarithm of their sizes, as shares of the level's largest; the sources are what the summaries cite."""
    summaries = list(view.summaries(view.rows(scope.collection, level)))
    largest = max((math.log1p(summary.size) for summary in summaries), default=1.0)
    sources = _cited(snapshot.graph, summaries, scope)
    return [
        _Mapped(summary, MOST_RELEVANT * math.log1p(summary.size) / largest, of)
        for summary, of in zip(summaries, sources, strict=True)
        if of
    ]


def _cited(graph: GraphView, summaries: Sequence[CommunitySummary], scope: Scope) -> list[list[Candidate]]:
    """Of each summary, the cited chunks that are still there and in the scope, each once."""
    cited = list({sentence.chunk_id: None for summary in summaries for sentence in summary.summary})
    there: dict[str, Candidate] = {}
    for chunk_id, number in zip(cited, graph.chunks(cited).tolist(), strict=True):
        if number == MISSING:
            continue
        passage = graph.passage_of_chunk(number)
        key = graph.document_key(graph.document_of_passage(passage))
        if scope.allows(key):
            there[chunk_id] = Candidate(graph.passage_id(passage), 0.0, key, chunk_id)
    return [
        list(dict.fromkeys(there[each.chunk_id] for each in summary.summary if each.chunk_id in there))
        for summary in summaries
    ]


def _communities_of_a_topic(
    snapshot: Snapshot, view: CommunityView, topic: Question, passages: Sequence[Candidate], scope: Scope
) -> list[_Mapped]:
    """Half by the topic's words in summaries, titles and members' names, half by the weight of the passages on the
    topic that mention members, as a share of the largest; the sources are these passages, best first. What mentions no
    member is of no community."""
    shares = _shares_of_communities(snapshot.graph, view, passages)
    weights: dict[int, float] = defaultdict(float)
    sources: dict[int, list[Candidate]] = defaultdict(list)
    for passage in passages:
        for row, share in shares.get(passage.passage_id, {NO_ROW: 1.0}).items():
            weights[row] += share * max(0.0, passage.score)
            sources[row].append(passage)
    covered = _shares_of_words(view, topic.stems, view.rows(scope.collection, *LEVELS[:2]))
    largest = max(weights.values(), default=0.0) or 1.0
    rows = sorted(weights.keys() - {NO_ROW})
    summaries = dict(zip(rows, view.summaries(rows), strict=True))
    return [
        _Mapped(
            summaries.get(row),
            MOST_RELEVANT * (SHARE_OF_WORDS * covered.get(row, 0.0) + (1 - SHARE_OF_WORDS) * weight / largest),
            sources[row],
        )
        for row, weight in weights.items()
    ]


def _shares_of_communities(
    graph: GraphView, view: CommunityView, passages: Sequence[Candidate]
) -> dict[str, dict[int, float]]:
    """{passage id: {row of a community: its share of the members of any community that the passage mentions}}."""
    names = list(dict.fromkeys(passage.passage_id for passage in passages))
    numbers = graph.passages(names)
    known = np.flatnonzero(numbers != MISSING)
    terms = graph.mention_edges_in(numbers[known])  # the members of a collection without typed mentions
    typed = typed_mentions_in_passages(graph.segments, numbers[known])
    mentioned = {*zip(terms.query_index.tolist(), terms.entity.tolist(), strict=True)}
    mentioned |= {(mention.query_index, mention.entity) for mention in typed}
    keys = np.fromiter((entity for _, entity in mentioned), dtype=np.uint64, count=len(mentioned))
    members: dict[str, Counter[int]] = defaultdict(Counter)
    for (at, _), row in zip(mentioned, view.of_entities(keys, LEVEL_OF_A_TOPIC).tolist(), strict=True):
        if row >= 0:
            members[names[known[at]]][row] += 1
    return {name: {row: count / of.total() for row, count in of.items()} for name, of in members.items()}


def _shares_of_words(view: CommunityView, stems: Sequence[str], rows: Sequence[int]) -> dict[int, float]:
    """{row: the share of the words that the community holds, weighted by their idf among these communities}, see
    `holds_word`."""
    shares: dict[int, float] = defaultdict(float)
    total = 0.0
    for stem in stems:
        among = set(rows)
        held = {row: share for row, share in view.holds_word(stem).items() if row in among}
        idf = math.log1p(len(rows) / (1 + len(held)))
        total += idf
        for row, share in held.items():
            shares[row] += idf * share
    return {row: share / total for row, share in shares.items()}


def _by_highest_average(levels: Sequence[Sequence[_Mapped]]) -> CommunityResults:
    """Each community's passages in proportion to the relevances: the n-th of one on the m-th level scores relevance / n
    / m, the divisors of D'Hondt. After Dang and Croft 2012, "Diversity by Proportionality", section 3.2."""
    found = [
        (each.relevance / place / level, each, source)
        for level, reduced in enumerate(levels, 1)
        for each in reduced
        for place, source in enumerate(each.sources, 1)
    ]
    candidates: dict[str, Candidate] = {}
    communities: dict[str, HitCommunity] = {}
    last = math.inf
    for score, mapped, source in sorted(found, key=lambda each: -each[0]):
        if source.passage_id not in candidates:
            last = min(round(score, _DECIMALS), last - 10**-_DECIMALS)  # equal ones stay in this order
            candidates[source.passage_id] = source._replace(score=last)
            if mapped.summary:
                communities[source.passage_id] = _shown(mapped.summary, mapped.relevance, source)
    return CommunityResults(list(candidates.values()), communities)


def _shown(summary: CommunitySummary, relevance: float, source: Candidate) -> HitCommunity:
    cited = [each.text for each in summary.summary if each.chunk_id == source.chunk_id]
    return HitCommunity(
        id=summary.id,
        level=summary.level,
        title=summary.title,
        size=summary.size,
        relevance=round(relevance, _DECIMALS),
        sentence=next(iter([*cited, *(each.text for each in summary.summary)]), ""),
    )
