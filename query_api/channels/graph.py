"""The graph channel: from the names in a question and the passages that fit it to passages that share no word with it.

1. Look up the titles and entities that the question names: `names_in`.
2. Take the best three passages as parents, by their text and by these names; see how far the gate opens.
3. Weigh each sentence of a parent by what it covers of the question.
4. Ask the keyword index what the question still asks about the names in the best sentences of the best two parents.
5. Follow title mentions, shared entities, links and statements from the parents.
6. Add up what reaches a passage.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from indexer.read.resident.scope import EVERYTHING, Scope
from query_api.channels import terms
from query_api.channels.findings import NOTHING, Findings, Gathered
from query_api.channels.gating import connected_share, opening
from query_api.channels.keyword import keyword_channel
from query_api.channels.parents import choose_parents, pool_of, read_parents
from query_api.channels.query_links import Names
from query_api.channels.question import Question
from query_api.channels.residual import residual_query, residual_reaches
from query_api.channels.terms import Reach, Reason
from query_api.graph.view import GraphView
from query_api.reading.passages import PassageReader
from query_api.reading.snapshot import Candidate, TextSnapshot

HOPS = 2  # parents that the keyword index is asked about; a third adds time, not quality
RESIDUAL_HITS = 30
MAX_REACHED = 200
NO_EDGES = ("matches", "continues")  # what the graph holds explains more than what a search found


@dataclass(frozen=True)
class TermWeights:
    """What each term counts in the sum: the first six from a prototype's tuning, the others by analogy.

    `seed` and `prior` count when the graph is asked alone: a parent is then a hit too, and what a reached passage's own
    text is worth is added; beside other channels these say so themselves.
    """

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
    prior: float = 0.5


def graph_channel(
    question: Question,
    view: GraphView,
    names: Names,
    text: TextSnapshot,
    passages: PassageReader,
    scope: Scope,
    vector: Sequence[Candidate],
    keyword: Sequence[Candidate] | None,
    *,
    always: bool,
    weights: TermWeights = TermWeights(),
) -> Findings:
    """Reach passages from the question, whose names (step 1) are looked up before. Blocks: for a thread.

    With `always` the graph is followed whatever the gate says: it is asked alone. Else a closed gate ends the work
    before it reads anything. `keyword` is None when that channel failed: its index is then not asked again. Raises
    TransientStoreError.
    """
    chosen = choose_parents(view, names.links, vector, keyword or ())  # 2
    connected = 1.0 if names.links else connected_share(view, list(chosen.weights))
    gate = opening(names.links, names.entities, connected)
    if not gate and not always:
        return NOTHING
    parents = read_parents(question, view, passages, chosen, pool_of(keyword or ()))  # 3
    gathered = Gathered(names.links, names.entities, chosen.prior, parents)
    queries = [residual_query(question, parent) for parent in parents[: HOPS if keyword is not None else 0]]
    hops = [keyword_channel(text, query, RESIDUAL_HITS, scope) if query else [] for query in queries]  # 4
    plain, sharp = residual_reaches(view, parents[: len(hops)], hops)
    edges = _followed(question, view, gathered, weights, alone=always)  # 5
    weighted = [*edges, (weights.residual, plain), (weights.sharp_residual, sharp)]
    return _added_up(view, scope, gathered, weighted, gate, weights.prior if always else 0.0)


def _followed(
    question: Question, view: GraphView, gathered: Gathered, weights: TermWeights, *, alone: bool
) -> list[tuple[float, list[Reach]]]:
    """Step 5: what each term reaches, with the term's weight."""
    parents = gathered.parents
    enter = terms.entrances(view, gathered.prior)
    around = terms.surroundings(view, parents)
    plain, telling = terms.title_mentions(view, parents, around, enter)

    def asks(predicate: str) -> float:
        return 1.0 if question.stems_in(predicate.replace("_", " ")) else 0.0

    return [
        (weights.named, list(terms.named(gathered.links, enter))),
        (weights.mentioning, list(terms.mentioning(gathered.entities, view))),
        (weights.seed if alone else 0.0, list(terms.seeds(parents))),
        (weights.title_mention, plain),
        (weights.telling_title_mention, telling),
        (weights.mentioned_by, list(terms.mentioned_by(view, parents))),
        (weights.shared, list(terms.shared(view, parents, around))),
        (weights.linked, list(terms.linked(view, parents, enter))),
        (weights.stated, list(terms.stated(view, parents, enter, asks))),
    ]


def _added_up(
    view: GraphView,
    scope: Scope,
    gathered: Gathered,
    weighted: Iterable[tuple[float, Sequence[Reach]]],
    gate: float,
    prior_weight: float,
) -> Findings:
    """Step 6: score = Σ weight x strongest reach of each term, + prior weight x prior."""
    scores: dict[int, float] = {}
    best: dict[int, tuple[bool, float, Reason]] = {}
    for weight, reaches in weighted:
        if not weight:
            continue
        for passage, reach in terms.strongest(reaches).items():
            part = weight * reach.score
            scores[passage] = scores.get(passage, 0.0) + part
            is_edge = reach.reason.term not in NO_EDGES
            if passage not in best or (is_edge, part) > best[passage][:2]:
                best[passage] = is_edge, part, reach.reason
    for passage in scores:
        scores[passage] += prior_weight * gathered.prior.get(passage, 0.0)
    ordered = sorted(scores, key=lambda passage: (-scores[passage], passage))
    if scope != EVERYTHING:  # a link may lead out of it
        ordered = [p for p in ordered if scope.allows(view.document_key(view.document_of_passage(p)))]
    numbers = {view.passage_id(passage): passage for passage in ordered[:MAX_REACHED]}
    return Findings(
        gate,
        numbers,
        {identifier: scores[passage] for identifier, passage in numbers.items()},
        {identifier: best[passage][2] for identifier, passage in numbers.items()},
        gathered,
    )
