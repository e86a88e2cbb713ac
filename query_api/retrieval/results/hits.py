"""Hits assembled from the texts of a page: what stands at each place, its snippet, and what stands around it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from indexer.chunking.sentences import sentence_spans
from indexer.read.rows import ChunkRow, ChunkSpan, PassageRow
from indexer.schema import DocumentRow
from indexer.text_analysis import words_with_terms
from query_api.query.analysis import Question
from query_api.retrieval.fusion import RankedPassage
from query_api.retrieval.results.paths import PathBuilder
from schemas.hits import Hit, HitSource, TextSpan
from schemas.ids import DocumentKey
from schemas.search import CONTEXT_CHUNKS, SearchRequest


class Snippet(NamedTuple):
    """`passage[start:end]` is shown; the marks count characters from `start`."""

    start: int
    end: int
    highlights: list[TextSpan]
    answer: TextSpan | None

    @property
    def matched_at(self) -> int:
        """Where in the passage the match stands: the answer, else what is shown."""
        return self.start + (self.answer.start if self.answer else 0)


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
        held = {term for first, _, terms in words if begin <= first < finish for term in terms}
        weights.append(math.fsum(idf.get(term, 0.0) for term in held))
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
    """The sentences, whole, of which the chunk holds something. Lines are looked at whole: no sentence crosses one."""
    line_end = passage.find("\n", end)
    found = sentence_spans(passage, passage.rfind("\n", 0, start) + 1, len(passage) if line_end < 0 else line_end)
    return [(first, last) for first, last in found if last > start and first < end]


UNLIKELY_BELOW = 0.01  # as are, among the first ten of 1,320 questions of nine sets, 103 of 1,922 answers, 23 % of hits


class PageTexts(NamedTuple):
    """What the hits of a page need from the stores."""

    passages: Mapping[str, "PassageRow"]
    chunks: Mapping[str, Sequence["ChunkRow"]]
    documents: Mapping[DocumentKey, "DocumentRow"]

    def of_chunks(self) -> dict[str, str]:
        """The text of every chunk read, by chunk id."""
        return {chunk.id: chunk.text for of_passage in self.chunks.values() for chunk in of_passage}


def best_child(question: Question, chunks: Sequence["ChunkRow"], wanted: str | None) -> "ChunkRow":
    """The wanted chunk where it is there, else the one that holds most of the question's words, the first of equals."""
    for chunk in chunks:
        if chunk.id == wanted:
            return chunk
    return max(chunks, key=lambda chunk: (len(question.stems_in(chunk.text)), -chunk.ordinal))


def hits_of(
    places: Sequence[RankedPassage],
    ranks: Sequence[int],
    texts: PageTexts,
    question: Question,
    idf: Mapping[int, float],
    trail: PathBuilder | None,
    topic: str,
) -> Iterator[Hit]:
    """The hits at these places, each with its rank; `idf` are the weights of the question's terms, `topic` is where the
    documents came from.

    A place is left empty when the text stores do not hold its passage, which the graph may know a moment longer.
    """
    chunk_texts = texts.of_chunks() if trail else {}
    for rank, place in zip(ranks, places, strict=True):
        hit = _hit(place, rank, texts, question, idf, trail, chunk_texts, topic)
        if hit is not None:
            yield hit


def _hit(
    place: RankedPassage,
    rank: int,
    texts: PageTexts,
    question: Question,
    idf: Mapping[int, float],
    trail: PathBuilder | None,
    chunk_texts: Mapping[str, str],
    topic: str,
) -> Hit | None:
    passage = texts.passages.get(place.passage_id)
    chunks = texts.chunks.get(place.passage_id)
    document = None if passage is None else texts.documents.get(passage.key)
    if passage is None or not chunks or document is None:
        return None
    child = best_child(question, chunks, place.chunk_id)
    shown = snippet_of(passage.text, child.start - passage.start, child.end - passage.start, idf)
    return Hit(
        rank=rank,
        chunk_id=child.id,
        passage_id=passage.id,
        document_id=document.key.document_id,
        collection=document.key.collection,
        title=document.title,
        text=passage.text[shown.start : shown.end],
        parent_text=passage.text,
        highlights=shown.highlights,
        answer=shown.answer,
        start=passage.start + shown.start,
        end=passage.start + shown.end,
        parent_start=passage.start,
        section=list(passage.section),
        uri=document.uri,
        score=place.score,
        scores=place.scores,
        ranks=place.ranks,
        confidence=place.confidence,
        unlikely=place.confidence is not None and place.confidence < UNLIKELY_BELOW,
        channels=list(place.ranks),
        duplicates=list(place.duplicates),
        source=HitSource(topic=topic, partition=document.partition, offset=document.offset, version=document.version),
        page=document.page_at(passage.start + shown.matched_at),
        metadata=document.own_metadata,
        path=[] if trail is None else trail.path(place.passage_id, chunk_texts.get, child.id),
    )


SECTION_CHARACTERS = 8_000
SECTION_CHUNKS = 40  # looked at on either side; with the usual sizes more than SECTION_CHARACTERS
GAP = "\n\n"  # between chunks that do not touch


class Around(NamedTuple):
    """A text and the chunks it is made of, in the order of the document."""

    text: str
    chunk_ids: list[str]


def span_of(request: SearchRequest, chunk: "ChunkRow") -> ChunkSpan:
    """The chunks to read for a hit's context."""
    reach = SECTION_CHUNKS if request.context == "section" else request.context_chunks or CONTEXT_CHUNKS
    return ChunkSpan(chunk.key, max(0, chunk.ordinal - reach), chunk.ordinal + reach)


def around(request: SearchRequest, chunk: "ChunkRow", of_document: Sequence["ChunkRow"]) -> Around:
    """The context of a chunk, out of those chunks of its document, in order, that were read for this and other hits."""
    span = span_of(request, chunk)
    near = [each for each in of_document if span.first <= each.ordinal <= span.last]
    if request.context == "section":
        near = _of_section(near, chunk)
    return Around(joined(near), [each.id for each in near])


def with_contexts(
    hits: Sequence[Hit],
    request: SearchRequest,
    chunks: Mapping[str, "ChunkRow"],
    read: Mapping[DocumentKey, Sequence["ChunkRow"]],
) -> list[Hit]:
    """The hits with their contexts; `chunks` are those that matched, by id."""
    told = []
    for hit in hits:
        chunk = chunks[hit.chunk_id]
        found = around(request, chunk, read.get(chunk.key, [chunk]))
        told.append(hit.model_copy(update={"context_text": found.text, "context_chunk_ids": found.chunk_ids}))
    return told


def joined(chunks: Sequence["ChunkRow"]) -> str:
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


def _of_section(near: Sequence["ChunkRow"], chunk: "ChunkRow") -> list["ChunkRow"]:
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


def _fits(near: Sequence["ChunkRow"], first: int, last: int) -> bool:
    return near[last - 1].end - near[first].start <= SECTION_CHARACTERS
