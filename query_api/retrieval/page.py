"""The hits of a page: their texts read, the hits made, and what was asked for beside them."""

import asyncio
from collections.abc import Iterator, Sequence

from query_api.retrieval.fusion import RankedPassage
from query_api.retrieval.ranking import Ranking, Retrieved
from query_api.retrieval.results.explanation import factors_of
from query_api.retrieval.results.hits import PageTexts, hits_of, span_of, with_contexts
from query_api.retrieval.results.paths import PathBuilder
from query_api.retrieval.stages import TEXTS_OF_HITS, read_texts, together
from query_api.retrieval.subqueries import MergedRanking
from schemas.hits import Hit

FIRST_HITS = 20  # read and sent before the rest of a long page
BATCH_HITS = 200


def batches(count: int) -> Iterator[tuple[int, int]]:
    """The spans that a page is read in: a short one first, so that its first hits come early."""
    start, size = 0, FIRST_HITS
    while start < count:
        yield start, min(start + size, count)
        start, size = start + size, BATCH_HITS


async def hits_at(ranking: Ranking | MergedRanking, page: Sequence[RankedPassage], ranks: Sequence[int]) -> list[Hit]:
    """The hits at these places, with their ranks and all their texts. Of several questions each hit is as the one has
    it that ranks it best, with its ranks in the parts. Raises SearchFailed."""
    if isinstance(ranking, Ranking):
        return await _hits(ranking.retrieved, page, ranks)
    of_search: dict[int, list[tuple[RankedPassage, int]]] = {}
    for place, rank in zip(page, ranks, strict=True):
        of_search.setdefault(ranking.merged[place.passage_id].search, []).append((place, rank))
    found = await together(
        _hits(ranking.rankings[at].retrieved, [place for place, _ in own], [rank for _, rank in own])
        for at, own in of_search.items()
    )
    hits = sorted((hit for each in found for hit in each), key=lambda hit: hit.rank)
    return [hit.model_copy(update={"parts": ranking.ranks_in_parts(hit.passage_id)}) for hit in hits]


async def _hits(retrieved: Retrieved, page: Sequence[RankedPassage], ranks: Sequence[int]) -> list[Hit]:
    context, graph = retrieved.context, retrieved.graph
    snapshot, question = context.snapshot, context.question
    trail = PathBuilder(question, snapshot.graph, graph) if graph.seed_set is not None else None
    wanted = list(dict.fromkeys(place.passage_id for place in page))
    evidence = trail.passages_of_evidence(wanted) if trail else set()
    texts = await read_texts(context, TEXTS_OF_HITS, _texts(retrieved, wanted, evidence), retrieved.diagnostics)
    found = hits_of(page, ranks, texts, question, retrieved.idf, trail, snapshot.documents_topic)
    matches = retrieved.text.structured.matches
    hits = [hit.model_copy(update={"matches": list(matches.get(hit.passage_id, ()))}) for hit in found]
    if context.request.explain:
        names = retrieved.analysis.names
        explaining = context.run(
            lambda: factors_of(hits, texts, snapshot, names, graph, retrieved.evidence, context.now)
        )
        factors = await explaining
        hits = [hit.model_copy(update={"factors": each}) for hit, each in zip(hits, factors, strict=True)]
    return hits if context.request.context == "parent" else await _with_contexts(retrieved, hits, texts)


async def _texts(retrieved: Retrieved, wanted: Sequence[str], evidence: set[str]) -> PageTexts:
    """The passages, the chunks of these and of those that hold evidence, the documents they are of."""
    context, text = retrieved.context, retrieved.context.snapshot.text
    parents = list(dict.fromkeys([*wanted, *sorted(evidence)]))
    passages, chunks = await asyncio.gather(
        context.run(lambda: context.passages.read(wanted)), context.run(lambda: text.chunks_of_passages(parents))
    )
    keys = list(dict.fromkeys(passage.key for passage in passages.values()))
    return PageTexts(passages, chunks, await context.run(lambda: text.documents(keys)))


async def _with_contexts(retrieved: Retrieved, hits: list[Hit], texts: PageTexts) -> list[Hit]:
    context, request = retrieved.context, retrieved.context.request
    chunks = {chunk.id: chunk for of_passage in texts.chunks.values() for chunk in of_passage}
    spans = [span_of(request, chunks[hit.chunk_id]) for hit in hits]
    step = context.run(lambda: context.snapshot.text.chunks_in(spans))
    around = await read_texts(context, "The texts around the hits", step, retrieved.diagnostics)
    return with_contexts(hits, request, chunks, around)
