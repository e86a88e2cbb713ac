"""The community retriever, for questions about a whole collection: what its main themes are, all about a topic.

1. Map: each community of a level gets a relevance to the question from 0 to 10; the twelve best are looked at.
2. Reduce: the best five of those above 2 give passages, in proportion to their relevances.

The steps are those of global search in Edge et al. 2024, "From Local to Global: A GraphRAG Approach", section 3.1.6,
without a language model: summaries are sentences of documents, and relevance is computed.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.errors import TransientStoreError
from query_api.index.community_view import CommunityView
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.typed_mentions import typed_mentions_in_passages
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import Snapshot
from query_api.index.text.text_segments import Candidate, Scope
from query_api.query.analysis import Question
from schemas.choices import CommunityLevel
from schemas.communities import CommunitySummary
from schemas.hits import HitCommunity
from schemas.ids import DocumentKey

MOST_RELEVANT = 10.0
MIN_RELEVANCE = 2.0
MAPPED, REDUCED = 12, 5
LEVEL_OF_A_COLLECTION: CommunityLevel = "coarse"
LEVEL_OF_A_TOPIC: CommunityLevel = "medium"
SHARE_OF_WORDS = 0.5  # in the relevance to a topic
PASSAGES_ON_TOPIC = 64
_DECIMALS = 4

_NO_TOPIC = frozenset(
    Question(
        "main major key central common recurring overall whole entire everything theme topic subject idea area point "
        "content issue question summarise summarize summary overview outline gist collection corpus dataset archive "
        "document documents knowledge base library cover discuss describe talk tell know list give show"
    ).stems
)
"""Stems of what such questions say of what they want, as opposed to what they want it about."""


class CommunityResults(NamedTuple):
    """The passages found, best first, and the community of each."""

    candidates: Sequence[Candidate]
    communities: Mapping[str, HitCommunity]


NO_COMMUNITIES = CommunityResults((), {})


class _Source(NamedTuple):
    """A passage that speaks for a community; `sentence` is what the community's summary has of its chunk, or begins
    with."""

    chunk_id: str | None
    passage_id: str
    key: DocumentKey
    sentence: str


class _Mapped(NamedTuple):
    """A community with its relevance and its sources, best first."""

    summary: CommunitySummary
    relevance: float
    sources: Sequence[_Source]


def search_communities(
    snapshot: Snapshot, question: Question, vector: NDArray[np.float32] | None, scope: Scope
) -> CommunityResults:
    """`vector`, (dimension,), is that of the question; without one its words decide alone. Blocks. Raises
    TransientStoreError where no communities are found yet."""
    view = snapshot.communities
    if view is None:
        raise TransientStoreError("no communities are found yet: the worker finds them after a snapshot of the graph")
    topic = [stem for stem in question.stems if stem not in _NO_TOPIC]
    if topic:
        mapped = _communities_of_a_topic(snapshot, view, question, topic, vector, scope)
    else:
        mapped = _themes(snapshot, view, scope)
    best = sorted(mapped, key=lambda each: (-each.relevance, each.summary.id))[:MAPPED]  # 1
    return _by_highest_average([each for each in best if each.relevance > MIN_RELEVANCE][:REDUCED])  # 2


def _themes(snapshot: Snapshot, view: CommunityView, scope: Scope) -> list[_Mapped]:
    """By the logarithm of their sizes, as shares of the largest; the sources are what the summaries cite."""
    summaries = list(view.summaries(view.rows(scope.collection, LEVEL_OF_A_COLLECTION)))
    largest = max((math.log1p(summary.size) for summary in summaries), default=1.0)
    sources = _cited(snapshot.graph, summaries, scope)
    return [
        _Mapped(summary, MOST_RELEVANT * math.log1p(summary.size) / largest, of)
        for summary, of in zip(summaries, sources, strict=True)
        if of
    ]


def _cited(graph: GraphView, summaries: Sequence[CommunitySummary], scope: Scope) -> list[list[_Source]]:
    """Of each summary, the cited chunks that are still there and in the scope, each once."""
    cited = list({sentence.chunk_id: None for summary in summaries for sentence in summary.summary})
    there: dict[str, tuple[str, DocumentKey]] = {}
    for chunk_id, number in zip(cited, graph.chunks(cited).tolist(), strict=True):
        if number == MISSING:
            continue
        passage = graph.passage_of_chunk(number)
        key = graph.document_key(graph.document_of_passage(passage))
        if scope.allows(key):
            there[chunk_id] = (graph.passage_id(passage), key)
    found: list[list[_Source]] = []
    for summary in summaries:
        first: dict[str, _Source] = {}
        for sentence in summary.summary:
            if sentence.chunk_id in there:
                first.setdefault(
                    sentence.chunk_id, _Source(sentence.chunk_id, *there[sentence.chunk_id], sentence.text)
                )
        found.append(list(first.values()))
    return found


def _communities_of_a_topic(
    snapshot: Snapshot,
    view: CommunityView,
    question: Question,
    topic: Sequence[str],
    vector: NDArray[np.float32] | None,
    scope: Scope,
) -> list[_Mapped]:
    """Half by the topic's words in titles and members' names, half by the weight of the passages on the topic that
    mention members, as a share of the largest; the sources are these passages, best first."""
    text = snapshot.text
    if vector is None:
        passages = text.keyword_search(question.text, PASSAGES_ON_TOPIC, scope)
    else:
        passages = text.vector_search(vector, PASSAGES_ON_TOPIC, scope)
    shares = _shares_of_communities(snapshot.graph, view, passages)
    weights: dict[int, float] = defaultdict(float)
    sources: dict[int, list[tuple[float, Candidate]]] = defaultdict(list)
    for passage in passages:
        for row, share in shares.get(passage.passage_id, {}).items():
            weight = share * max(0.0, passage.score)
            weights[row] += weight
            sources[row].append((weight, passage))
    if not weights:
        return []
    covered = _shares_of_words(view, topic, view.rows(scope.collection, LEVEL_OF_A_COLLECTION, LEVEL_OF_A_TOPIC))
    largest = max(weights.values()) or 1.0
    rows = sorted(weights)
    return [
        _Mapped(
            summary,
            MOST_RELEVANT * (SHARE_OF_WORDS * covered.get(row, 0.0) + (1 - SHARE_OF_WORDS) * weights[row] / largest),
            _best_first(sources[row], summary),
        )
        for row, summary in zip(rows, view.summaries(rows), strict=True)
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


def _best_first(weighted: Iterable[tuple[float, Candidate]], summary: CommunitySummary) -> list[_Source]:
    """The passages, each once, with what the summary has of their chunks."""
    cited = {sentence.chunk_id: sentence.text for sentence in reversed(summary.summary)}
    beginning = summary.summary[0].text if summary.summary else ""
    sources: dict[str, _Source] = {}
    for _, passage in sorted(weighted, key=lambda each: (-each[0], each[1].passage_id)):
        sentence = cited.get(passage.chunk_id or "", beginning)
        source = _Source(passage.chunk_id, passage.passage_id, passage.key, sentence)
        sources.setdefault(passage.passage_id, source)
    return list(sources.values())


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


def _by_highest_average(reduced: Sequence[_Mapped]) -> CommunityResults:
    """Each community's passages in proportion to the relevances: the n-th of one scores relevance / n, the divisors of
    D'Hondt. After Dang and Croft 2012, "Diversity by Proportionality", section 3.2."""
    found = [
        (each.relevance / place, _shown(each, source), source)
        for each in reduced
        for place, source in enumerate(each.sources, 1)
    ]
    candidates: list[Candidate] = []
    communities: dict[str, HitCommunity] = {}
    for score, community, source in sorted(found, key=lambda each: (-each[0], each[2].passage_id)):
        if source.passage_id not in communities:
            communities[source.passage_id] = community
            candidates.append(Candidate(source.passage_id, round(score, _DECIMALS), source.key, source.chunk_id))
    return CommunityResults(candidates, communities)


def _shown(mapped: _Mapped, source: _Source) -> HitCommunity:
    summary = mapped.summary
    return HitCommunity(
        id=summary.id,
        level=summary.level,
        title=summary.title,
        size=summary.size,
        relevance=round(mapped.relevance, _DECIMALS),
        sentence=source.sentence,
    )
