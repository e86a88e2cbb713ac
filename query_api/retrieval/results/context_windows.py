"""What stands around a hit: chunks before and after it in its document, or the section it is in. Pure, but for reading.

Chunks overlap, so their texts are joined by where they stand in the document, and no word comes twice.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from indexer.read.rows import ChunkSpan
from schemas.hits import Hit
from schemas.ids import DocumentKey
from schemas.search import CONTEXT_CHUNKS, SearchRequest

if TYPE_CHECKING:
    from indexer.read.rows import ChunkRow

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
