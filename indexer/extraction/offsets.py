"""From an offset in a document's canonical text to its chunk and its sentence."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Self

from indexer.chunking.sentences import DEFAULT_LANGUAGE, sentence_spans
from indexer.documents import ChunkedDocument, ParsedDocument


@dataclass(frozen=True)
class OffsetIndex:
    """`sentences` are (start, end) over the whole text. Where chunks overlap, an offset belongs to the first one."""

    sentences: list[tuple[int, int]]
    sentence_starts: list[int]
    chunk_starts: list[int]
    chunk_ends: list[int]
    chunk_ordinals: list[int]

    @classmethod
    def from_document(cls, parsed: ParsedDocument, chunked: ChunkedDocument, language: str = DEFAULT_LANGUAGE) -> Self:
        sentences = sentence_spans(parsed.text, language=language)
        starts: list[int] = []
        ends: list[int] = []
        ordinals: list[int] = []
        covered = 0
        for chunk in chunked.chunks:
            if chunk.end > covered:
                starts.append(max(chunk.start, covered))
                ends.append(chunk.end)
                ordinals.append(chunk.ordinal)
                covered = chunk.end
        return cls(sentences, [start for start, _ in sentences], starts, ends, ordinals)

    def chunk_at(self, offset: int) -> int:
        """The first chunk that contains the offset; -1 outside all chunks."""
        at = bisect_right(self.chunk_ends, offset)
        if at == len(self.chunk_ends) or self.chunk_starts[at] > offset:
            return -1
        return self.chunk_ordinals[at]

    def chunk_from(self, offset: int) -> int:
        """The first chunk that contains the offset or comes after it, else the last one; -1 without chunks."""
        at = min(bisect_right(self.chunk_ends, offset), len(self.chunk_ends) - 1)
        return self.chunk_ordinals[at] if at >= 0 else -1

    def sentence_at(self, offset: int) -> int:
        """The document-wide number of the sentence that contains the offset or precedes it."""
        return max(0, bisect_right(self.sentence_starts, offset) - 1)
