"""One question's order: channels fused, newest preferred, given a confidence, without what the request leaves out.

Every step depends on a passage and on those before it only, so pages agree.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.read.rows import ChunkRow
from indexer.text_analysis import query_terms
from query_api.query.analysis import Question
from query_api.query.dates import to_milliseconds
from query_api.query.phrases import holds
from query_api.retrieval.confidence import FIRST_HITS, Evidence, with_confidence
from query_api.retrieval.exact_scores import ScoredCandidates
from query_api.retrieval.fusion import DEPTH, ChannelResults, FusionWeights, RankedPassage, rank_passages
from query_api.retrieval.retrievers.graph_scoring import GraphResults
from query_api.retrieval.search_context import TEXTS_OF_HITS, Diagnostics, SearchContext, read_texts
from query_api.retrieval.stages import Analysis, TextResults, compare_rest, deepen
from schemas.hits import DuplicateHit
from schemas.ids import DocumentKey
from schemas.search import DUPLICATE_THRESHOLD, SearchRequest

FLOOR_PASSAGES = 64  # what a floor of confidence looks at: one channel's first candidates
NEWEST_BONUS = 0.5
RAISED = 1.25
A_DAY_MS = 86_400_000
MOST_COMPARED = 1_000  # hits that a later one's vector is compared with
_DECIMALS = 4


@dataclass(frozen=True)
class QuestionResults:
    """All that was found for one question. `candidates` is None where they were not scored, or that failed."""

    context: SearchContext
    analysis: Analysis
    text: TextResults
    candidates: ScoredCandidates | None
    graph: GraphResults
    diagnostics: Diagnostics

    @property
    def idf(self) -> dict[int, float]:
        """The idf of each term of the question; 1 where nothing was scored."""
        if self.candidates is None:
            return dict.fromkeys(query_terms(self.context.request.q), 1.0)
        scorer = self.candidates.scorer
        return dict(zip(scorer.terms, scorer.idf.tolist(), strict=True))

    @property
    def evidence(self) -> Evidence | None:
        """The inputs of confidence and factors."""
        if self.candidates is None:
            return None
        structured, spread = self.text.structured, self.candidates.scorer.spread
        return Evidence(
            self.candidates.scores,
            self.candidates.scorer.query_idf,
            self.graph.gate,
            self.graph.scores,
            spread and spread.beside(self.context.encoder.background),
            {each.passage_id: structured.conclusiveness * each.score for each in structured.candidates},
        )


@dataclass(frozen=True)
class Ranking:
    """Passages, best first, and the results they were ranked from. With a floor of confidence, `best_confidence` is
    the highest, shown or not."""

    passages: list[RankedPassage]
    results: QuestionResults
    best_confidence: float | None = None

    @property
    def diagnostics(self) -> Diagnostics:
        return self.results.diagnostics


async def rank(results: QuestionResults, needed: int) -> Ranking:
    """The first `needed` passages, or more, if there are; a longer order begins with a shorter one. Raises
    SearchFailed."""
    context, diagnostics = results.context, results.diagnostics
    floor = context.request.min_confidence
    wanted = max(needed, FIRST_HITS) if floor is None else FLOOR_PASSAGES
    while True:
        if results.candidates is not None:
            candidates = await compare_rest(context, results.text, results.candidates, diagnostics)
            results = replace(results, candidates=candidates)
        order = _preferred(results, wanted)
        judged = _with_confidence(results, order)
        if floor is not None:
            best = max((each.confidence for each in judged if each.confidence is not None), default=None)
            sure = [each for each in judged if each.confidence is None or each.confidence >= floor]
            return Ranking(await without_duplicates(context, sure, diagnostics), results, best)
        distinct = await without_duplicates(context, judged, diagnostics)
        if len(distinct) >= needed:
            return Ranking(distinct, results)
        if len(order) >= wanted:  # what is left out makes room for as many more
            wanted *= 2
        elif results.text.may_give_more and context.request.mode != "graph":
            results = replace(results, text=await deepen(context, results.text, diagnostics))
        else:
            return Ranking(distinct, results)


def _preferred(results: QuestionResults, first: int) -> list[RankedPassage]:
    """The first of the order, the newest or the raised documents preferred where that is wanted."""
    context = results.context
    if context.newest_first:
        return prefer_newest(_fused(results, max(first, DEPTH)), context)[:first]
    if context.raised:
        return prefer_documents(_fused(results, max(first, DEPTH)), context.raised)[:first]
    return _fused(results, first)


def _fused(results: QuestionResults, first: int) -> list[RankedPassage]:
    context, text, graph = results.context, results.text, results.graph
    request, view, candidates = context.request, context.snapshot.graph, results.candidates
    holding = context.holding
    return rank_passages(
        ChannelResults(
            context.kept(text.vector or []),
            context.kept(text.keyword or []),
            graph.scores if holding is None else {name: of for name, of in graph.scores.items() if name in holding},
            context.kept(text.structured.candidates),
            graph.gate,
            1.0 if request.mode == "structured" else text.structured.conclusiveness,
            None if candidates is None else candidates.scores,
            np.zeros(0) if candidates is None else candidates.scorer.idf,
            context.kept(text.communities.candidates),
        ),
        lambda passage_id: view.document_key(view.document_of_passage(graph.numbers[passage_id])),
        mode=request.mode,
        group=request.group,
        fusion=request.fusion,
        weights=_weights(context.settings.fusion, request),
        first=first,
        limits=context.limits,
    )


def _weights(weights: FusionWeights, request: SearchRequest) -> FusionWeights:
    """The weights, but for those that the request gives."""
    given = {"vector": request.vector_weight, "keyword": request.keyword_weight, "graph": request.graph_weight}
    overrides: Mapping[str, float] = {name: weight for name, weight in given.items() if weight is not None}
    return replace(weights, **overrides)


def _with_confidence(results: QuestionResults, order: list[RankedPassage]) -> list[RankedPassage]:
    evidence, calibration = results.evidence, results.context.settings.calibration
    if evidence is None or calibration is None:
        return order
    return with_confidence(order, results.context.request.mode, evidence, calibration)


def prefer_documents(ranked: Sequence[RankedPassage], raised: Collection[DocumentKey]) -> list[RankedPassage]:
    """The first candidates re-ranked, those of the raised documents by score x 1.25. Of the first alone, so that a
    longer order begins with a shorter one."""
    return _boosted(ranked, [RAISED if passage.key in raised else 1.0 for passage in ranked[:DEPTH]])


def prefer_newest(ranked: Sequence[RankedPassage], context: SearchContext) -> list[RankedPassage]:
    """The first candidates re-ranked by score x (1 + .5 x the share of their dates that is older), by whole days.

    The share, and not the age, so that the preference is the same among documents of a week and of a century, and none
    among those of one day. Of the first candidates alone, so that a longer order begins with a shorter one.
    """
    fields, now = context.snapshot.text.fields, to_milliseconds(context.now)
    pool = ranked[:DEPTH]
    days = [fields.date_of(passage.key, now) // A_DAY_MS for passage in pool]
    older = dict(zip(sorted(set(days)), count()))
    most = max(1, len(older) - 1)
    return _boosted(ranked, [1 + NEWEST_BONUS * older[day] / most for day in days])


def _boosted(ranked: Sequence[RankedPassage], factors: Sequence[float]) -> list[RankedPassage]:
    """The first passages, as many as there are factors, by score x factor; the others behind them as they were."""
    pool = [
        each._replace(
            score=each.score * factor,
            further=tuple(beside._replace(score=beside.score * factor) for beside in each.further),
        )
        for each, factor in zip(ranked, factors, strict=False)
    ]
    return [*sorted(pool, key=lambda passage: -passage.score), *ranked[len(pool) :]]


async def without_duplicates(
    context: SearchContext, order: list[RankedPassage], diagnostics: Diagnostics
) -> list[RankedPassage]:
    """The order without the duplicates that the request leaves out. Raises SearchFailed."""
    request, text = context.request, context.snapshot.text
    if request.duplicates == "keep":
        return order
    if request.duplicates == "exact" and request.group == "document" and text.knows_copies:
        whole = {at: ShownText(passage.key, None, "") for at, passage in enumerate(order)}
        return deduplicate(order, whole, {}, None, lambda key: text.copies(key, context.scope))
    step = context.run(lambda: _read_and_deduplicate(order, context))
    return await read_texts(context, TEXTS_OF_HITS, step, diagnostics)


def best_child(question: Question, chunks: Sequence[ChunkRow], wanted: str | None) -> ChunkRow:
    """The wanted chunk where it is there, else the one that holds most of the question's words, the first of equals;
    of those that hold what the question quotes, if some do."""
    chunks = [chunk for chunk in chunks if any(holds(chunk.text, phrase) for phrase in question.phrases)] or chunks
    for chunk in chunks:
        if chunk.id == wanted:
            return chunk
    return max(chunks, key=lambda chunk: (len(question.stems_in(chunk.text)), -chunk.ordinal))


class ShownText(NamedTuple):
    """The document of a hit, and the text that it shows; None where whole documents are compared alone."""

    key: DocumentKey
    text: str | None
    chunk_id: str


def _read_and_deduplicate(ranked: Sequence[RankedPassage], context: SearchContext) -> list[RankedPassage]:
    """By what the hits will show: a passage's text, or a chunk's; and where they are documents, by the whole of these
    too. Blocks. Raises TransientStoreError."""
    request, question, text = context.request, context.question, context.snapshot.text
    semantic = request.duplicates == "semantic"
    wanted = list(dict.fromkeys(passage.passage_id for passage in ranked))
    rows = context.passages.read(wanted)
    chunks = text.chunks_of_passages(wanted) if semantic or request.group == "chunk" else {}
    texts: dict[int, ShownText] = {}
    for at, passage in enumerate(ranked):
        row, of_passage = rows.get(passage.passage_id), chunks.get(passage.passage_id)
        if row is None:
            continue
        child = best_child(question, of_passage, passage.chunk_id) if of_passage else None
        shown = child.text if child is not None and request.group == "chunk" else row.text
        texts[at] = ShownText(row.key, shown, "" if child is None else child.id)
    vectors = text.vectors(list(dict.fromkeys(each.chunk_id for each in texts.values()))) if semantic else {}
    threshold = (request.duplicate_threshold or DUPLICATE_THRESHOLD) if semantic else None

    def copies_of(key: DocumentKey) -> Collection[DocumentKey]:
        return text.copies(key, context.scope) if request.group == "document" else ()

    return deduplicate(ranked, texts, vectors, threshold, copies_of)


class _Compared:
    """The vectors of the first MOST_COMPARED hits that were kept."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._kept: list[int] = []
        self._matrix = np.zeros((0, 0), dtype=np.float32)  # as many rows or more

    def duplicate_of(self, vector: NDArray[np.float32]) -> tuple[int | None, float]:
        """The kept hit with the nearest vector, where its cosine is the threshold or more, and the cosine."""
        if not self._kept:
            return None, 0.0
        cosines = self._matrix[: len(self._kept)] @ vector
        nearest = int(cosines.argmax())
        if cosines[nearest] < self._threshold:
            return None, 0.0
        return self._kept[nearest], round(min(1.0, float(cosines[nearest])), _DECIMALS)

    def add(self, at: int, vector: NDArray[np.float32]) -> None:
        if len(self._kept) == MOST_COMPARED:
            return
        if len(self._kept) == len(self._matrix):
            more = np.zeros((max(64, len(self._matrix)), len(vector)), dtype=np.float32)
            self._matrix = np.concatenate([self._matrix, more]) if self._kept else more
        self._matrix[len(self._kept)] = vector
        self._kept.append(at)


def deduplicate(
    ranked: Sequence[RankedPassage],
    texts: Mapping[int, ShownText],
    vectors: Mapping[str, NDArray[np.float32]],
    threshold: float | None,
    copies_of: Callable[[DocumentKey], Collection[DocumentKey]] = lambda _: (),
) -> list[RankedPassage]:
    """The passages whose text is new; each with the duplicates that were left out for it, and how many copies its
    document has.

    `texts` is {index in `ranked`: text}; a passage without one stays. Texts are the same if they differ by blanks and
    case only. With a `threshold`, chunks of that cosine and above are duplicates too; `vectors`, {chunk id:
    (dimension,) float32, L2-normalised}, may lack some. `copies_of` gives the other documents whose whole text is that
    of one: they are duplicates by whichever passage they were found.
    """
    kept: list[int] = []
    left_out: dict[int, list[DuplicateHit]] = {}
    seen: dict[str | DocumentKey, int] = {}
    copies: dict[int, int] = {}
    compared = None if threshold is None else _Compared(threshold)
    for at, passage in enumerate(ranked):
        shown = texts.get(at)
        if shown is None:
            kept.append(at)
            continue
        own = [] if shown.text is None else [" ".join(shown.text.split()).casefold()]
        original, similarity = next((seen[each] for each in (shown.key, *own) if each in seen), None), 1.0
        vector = vectors.get(shown.chunk_id)
        if original is None and compared is not None and vector is not None:
            original, similarity = compared.duplicate_of(vector)
        if original is not None:
            left_out.setdefault(original, []).append(
                DuplicateHit(
                    document_id=shown.key.document_id,
                    collection=shown.key.collection,
                    passage_id=passage.passage_id,
                    similarity=similarity,
                )
            )
            continue
        kept.append(at)
        others = copies_of(shown.key)
        copies[at] = len(others)
        seen.update(dict.fromkeys((*own, *others), at))
        if compared is not None and vector is not None:
            compared.add(at, vector)
    return [ranked[at]._replace(duplicates=tuple(left_out.get(at, ())), copies=copies.get(at, 0)) for at in kept]
