"""The hits of a page: their texts read, each assembled with its snippet, path, factors and context."""

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from indexer.chunking.sentences import sentence_spans
from indexer.read.rows import ChunkRow, ChunkSpan, PassageRow
from indexer.schema import DocumentRow
from indexer.text_analysis import words_with_terms
from query_api.query.analysis import Question
from query_api.retrieval.fusion import RankedPassage
from query_api.retrieval.ranking import QuestionResults, Ranking, best_child
from query_api.retrieval.results.explanation import explain
from query_api.retrieval.results.hit_paths import PathBuilder
from query_api.retrieval.results.mentioned import with_mentioned
from query_api.retrieval.search_context import TEXTS_OF_HITS, gather_or_cancel, read_texts
from query_api.retrieval.subqueries import MergedRanking
from schemas.hits import Hit, HitPassage, HitSource, TextSpan, is_unlikely, likelihood_of
from schemas.ids import DocumentKey
from schemas.search import CONTEXT_CHUNKS, SearchRequest

FIRST_HITS = 20  # read and sent before the rest of a long page
BATCH_HITS = 200


def batches(count: int) -> Iterator[tuple[int, int]]:
    """The spans that a page is read in: a short one first, so that its first hits come early."""
    start, size = 0, FIRST_HITS
    while start < count:
        yield start, min(start + size, count)
        start, size = start + size, BATCH_HITS


async def read_hits(ranking: Ranking | MergedRanking, page: Sequence[RankedPassage], ranks: Sequence[int]) -> list[Hit]:
    """The hits of these passages, with their ranks. Of several questions each hit is that of the question that ranks it
    best, with its ranks in the sub-questions. Raises SearchFailed."""
    if isinstance(ranking, Ranking):
        return await _hits(ranking.results, page, ranks)
    by_search: dict[int, list[tuple[RankedPassage, int]]] = {}
    for passage, rank in zip(page, ranks, strict=True):
        by_search.setdefault(ranking.merged[passage.passage_id].search, []).append((passage, rank))
    found = await gather_or_cancel(
        _hits(ranking.rankings[at].results, [passage for passage, _ in own], [rank for _, rank in own])
        for at, own in by_search.items()
    )
    hits = sorted((hit for each in found for hit in each), key=lambda hit: hit.rank)
    return [hit.model_copy(update={"parts": ranking.ranks_in_parts(hit.passage_id)}) for hit in hits]


async def _hits(results: QuestionResults, page: Sequence[RankedPassage], ranks: Sequence[int]) -> list[Hit]:
    context, graph = results.context, results.graph
    snapshot, question = context.snapshot, context.question
    matches = results.text.structured.matches
    paths = PathBuilder(question, snapshot.graph, graph, matches) if graph.seed_set is not None else None
    own = dict.fromkeys(passage.passage_id for passage in page)
    evidence = paths.evidence_passages(list(own)) if paths else set()
    wanted = [*own, *(beside.passage_id for passage in page for beside in passage.further)]
    texts = await read_texts(context, TEXTS_OF_HITS, _page_texts(results, wanted, evidence), results.diagnostics)
    assembled = assemble_hits(page, ranks, texts, question, results.idf, paths, snapshot.documents_topic)
    communities = results.text.communities.communities
    hits = [
        hit.model_copy(
            update={"matches": list(matches.get(hit.passage_id, ())), "community": communities.get(hit.passage_id)}
        )
        for hit in assembled
    ]
    if context.request.explain:
        names = results.analysis.names
        factors = await context.run(
            lambda: explain(hits, texts.documents, snapshot, names, graph, results.evidence, context.now)
        )
        hits = [hit.model_copy(update={"factors": each}) for hit, each in zip(hits, factors, strict=True)]
        explained = hits
        hits = await context.run(lambda: with_mentioned(snapshot.graph, explained, texts.by_chunk()))
    return hits if context.request.context == "parent" else await _with_contexts(results, hits, texts)


async def _page_texts(results: QuestionResults, wanted: Sequence[str], evidence: set[str]) -> "PageTexts":
    """The passages, the chunks of these and of those that hold evidence, the documents they are of."""
    context, text = results.context, results.context.snapshot.text
    parents = list(dict.fromkeys([*wanted, *sorted(evidence)]))
    passages, chunks = await asyncio.gather(
        context.run(lambda: context.passages.read(wanted)), context.run(lambda: text.chunks_of_passages(parents))
    )
    keys = list(dict.fromkeys(passage.key for passage in passages.values()))
    return PageTexts(passages, chunks, await context.run(lambda: text.documents(keys)))


class PageTexts(NamedTuple):
    """What the hits of a page need from the stores."""

    passages: Mapping[str, PassageRow]
    chunks: Mapping[str, Sequence[ChunkRow]]
    documents: Mapping[DocumentKey, DocumentRow]

    def by_chunk(self) -> dict[str, str]:
        """The text of every chunk read, by chunk id."""
        return {chunk.id: chunk.text for of_passage in self.chunks.values() for chunk in of_passage}


def assemble_hits(
    page: Sequence[RankedPassage],
    ranks: Sequence[int],
    texts: PageTexts,
    question: Question,
    idf: Mapping[int, float],
    paths: PathBuilder | None,
    topic: str,
) -> Iterator[Hit]:
    """The hits of a page, each with its rank; `idf` weighs the question's terms, `topic` is where the documents came
    from.

    A rank is left out when the text stores do not hold its passage, which the graph may hold a moment longer.
    """
    chunk_texts = texts.by_chunk() if paths else {}
    for rank, ranked in zip(ranks, page, strict=True):
        found = _shown(ranked, texts, question, idf)
        document = None if found is None else texts.documents.get(found[0].key)
        if found is None or document is None:
            continue
        passage, child, snippet = found
        yield Hit(
            rank=rank,
            chunk_id=child.id,
            passage_id=passage.id,
            document_id=document.key.document_id,
            collection=document.key.collection,
            title=document.title,
            text=snippet.of(passage),
            parent_text=passage.text,
            highlights=snippet.highlights,
            answer=snippet.answer,
            start=passage.start + snippet.start,
            end=passage.start + snippet.end,
            parent_start=passage.start,
            section=list(passage.section),
            uri=document.uri,
            score=ranked.score,
            scores=ranked.scores,
            ranks=ranked.ranks,
            confidence=ranked.confidence,
            likelihood=likelihood_of(ranked.confidence),
            unlikely=is_unlikely(ranked.confidence),
            channels=list(ranked.ranks),
            passages=list(_further_passages(ranked, texts, question, idf, {snippet.of(passage)})),
            copies=ranked.copies,
            duplicates=list(ranked.duplicates),
            source=HitSource(
                topic=topic, partition=document.partition, offset=document.offset, version=document.version
            ),
            page=document.page_at(passage.start + snippet.matched_at),
            metadata=document.own_metadata,
            path=[] if paths is None else paths.path(ranked.passage_id, chunk_texts.get, child.id),
        )


def _shown(
    ranked: RankedPassage, texts: PageTexts, question: Question, idf: Mapping[int, float]
) -> "tuple[PassageRow, ChunkRow, Snippet] | None":
    """A passage, the chunk of it that fits best, and what of it is shown; None where the text stores hold none."""
    passage, chunks = texts.passages.get(ranked.passage_id), texts.chunks.get(ranked.passage_id)
    if passage is None or not chunks:
        return None
    child = best_child(question, chunks, ranked.chunk_id)
    return passage, child, snippet_of(passage.text, child.start - passage.start, child.end - passage.start, idf)


def _further_passages(
    ranked: RankedPassage, texts: PageTexts, question: Question, idf: Mapping[int, float], shown: set[str]
) -> Iterator[HitPassage]:
    """The further passages of a hit's document that the text stores hold, without those whose text is `shown`."""
    for beside in ranked.further:
        found = _shown(beside, texts, question, idf)
        if found is None or (text := found[2].of(found[0])) in shown:
            continue
        passage, child, snippet = found
        shown.add(text)
        yield HitPassage(
            chunk_id=child.id,
            passage_id=passage.id,
            text=text,
            highlights=snippet.highlights,
            answer=snippet.answer,
            start=passage.start + snippet.start,
            end=passage.start + snippet.end,
            section=list(passage.section),
            page=texts.documents[passage.key].page_at(passage.start + snippet.matched_at),
            score=beside.score,
        )


class Snippet(NamedTuple):
    """`passage[start:end]` is shown; the marks count characters from `start`."""

    start: int
    end: int
    highlights: list[TextSpan]
    answer: TextSpan | None

    @property
    def matched_at(self) -> int:
        """Where in the passage the match begins: the answer, else the snippet."""
        return self.start + (self.answer.start if self.answer else 0)

    def of(self, passage: PassageRow) -> str:
        return passage.text[self.start : self.end]


def snippet_of(passage: str, start: int, end: int, idf: Mapping[int, float]) -> Snippet:
    """The snippet of the chunk `passage[start:end]`; `idf` is {term of the question: its weight}.

    The answer is the sentence whose distinct terms weigh most, the first of equal ones; None where no sentence holds a
    term that weighs anything. A sentence that begins before the chunk, and is less than half of it, is left out unless
    it answers.
    """
    sentences = _sentences(passage, start, end) or [(start, end)]
    words = list(words_with_terms(passage, sentences[0][0], sentences[-1][1], idf))
    weights = []
    for begin, finish in sentences:
        terms_held = {term for first, _, terms in words if begin <= first < finish for term in terms}
        weights.append(math.fsum(idf.get(term, 0.0) for term in terms_held))
    best = max(range(len(sentences)), key=lambda at: weights[at])
    answer = sentences[best] if weights[best] > 0 else None
    carried_over = sentences[0][0] < start and sentences[0][1] - start < (end - start) / 2
    begin = sentences[1][0] if carried_over and sentences[0] != answer and len(sentences) > 1 else sentences[0][0]
    return Snippet(
        begin,
        sentences[-1][1],
        [TextSpan(start=first - begin, end=last - begin) for first, last, _ in words if first >= begin],
        answer and TextSpan(start=answer[0] - begin, end=answer[1] - begin),
    )


def _sentences(passage: str, start: int, end: int) -> list[tuple[int, int]]:
    """The sentences, whole, that overlap the chunk. No sentence crosses a line."""
    line_end = passage.find("\n", end)
    found = sentence_spans(passage, passage.rfind("\n", 0, start) + 1, len(passage) if line_end < 0 else line_end)
    return [(first, last) for first, last in found if last > start and first < end]


SECTION_CHARACTERS = 8_000
SECTION_CHUNKS = 40  # read on either side; with the usual sizes more than SECTION_CHARACTERS
GAP = "\n\n"  # between chunks that do not touch


async def _with_contexts(results: QuestionResults, hits: list[Hit], texts: PageTexts) -> list[Hit]:
    context, request = results.context, results.context.request
    chunks = {chunk.id: chunk for of_passage in texts.chunks.values() for chunk in of_passage}
    spans = [context_span(request, chunks[hit.chunk_id]) for hit in hits]
    step = context.run(lambda: context.snapshot.text.chunks_in(spans))
    read = await read_texts(context, "The texts around the hits", step, results.diagnostics)
    with_contexts = []
    for hit in hits:
        chunk = chunks[hit.chunk_id]
        near = context_chunks(request, chunk, read.get(chunk.key, [chunk]))
        update = {"context_text": joined(near), "context_chunk_ids": [each.id for each in near]}
        with_contexts.append(hit.model_copy(update=update))
    return with_contexts


def context_span(request: SearchRequest, chunk: ChunkRow) -> ChunkSpan:
    """The chunks to read for a hit's context."""
    reach = SECTION_CHUNKS if request.context == "section" else request.context_chunks or CONTEXT_CHUNKS
    return ChunkSpan(chunk.key, max(0, chunk.ordinal - reach), chunk.ordinal + reach)


def context_chunks(request: SearchRequest, chunk: ChunkRow, of_document: Sequence[ChunkRow]) -> list[ChunkRow]:
    """The context of a chunk, out of those chunks of its document, in order, that were read for this and other hits."""
    span = context_span(request, chunk)
    near = [each for each in of_document if span.first <= each.ordinal <= span.last]
    return _section_around(near, chunk) if request.context == "section" else near


def joined(chunks: Sequence[ChunkRow]) -> str:
    """The text that chunks of one document cover, each part of it once; `text` has `end - start` characters."""
    parts: list[str] = []
    end = -1
    for chunk in chunks:
        if chunk.end <= end:
            continue
        if parts and chunk.start > end:
            parts.append(" " if chunk.start == end + 1 else GAP)
        parts.append(chunk.text[max(0, end - chunk.start) :] if parts else chunk.text)
        end = chunk.end
    return "".join(parts)


def _section_around(near: Sequence[ChunkRow], chunk: ChunkRow) -> list[ChunkRow]:
    """The run of chunks under the same headings around this one, grown on both sides in turn up to the bound."""
    at = next((index for index, each in enumerate(near) if each.id == chunk.id), None)
    if at is None:
        return [chunk]
    first, last = at, at + 1
    grows = True
    while grows:
        grows = False
        if last < len(near) and near[last].section == chunk.section and _fits(near, first, last + 1):
            last, grows = last + 1, True
        if first and near[first - 1].section == chunk.section and _fits(near, first - 1, last):
            first, grows = first - 1, True
    return list(near[first:last])


def _fits(near: Sequence[ChunkRow], first: int, last: int) -> bool:
    return near[last - 1].end - near[first].start <= SECTION_CHARACTERS
