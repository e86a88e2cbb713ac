"""Where a position of a document's canonical text stands: in which chunk, and in which sentence."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Self

from indexer.chunking.languages import USUAL
from indexer.chunking.sentences import sentence_spans
from indexer.documents import ChunkedDocument, ParsedDocument


@dataclass(frozen=True)
class Places:
    """`sentences` are (start, end) over the whole text; the chunks are kept as the stretches they are first to hold."""

    sentences: list[tuple[int, int]]
    sentence_starts: list[int]
    stretch_starts: list[int]
    stretch_ends: list[int]
    stretch_chunks: list[int]

    @classmethod
    def of(cls, parsed: ParsedDocument, chunked: ChunkedDocument, language: str = USUAL) -> Self:
        """Time is linear in the length of the text."""
        sentences = sentence_spans(parsed.text, language=language)
        starts: list[int] = []
        ends: list[int] = []
        chunks: list[int] = []
        covered = 0
        for chunk in chunked.chunks:
            if chunk.end > covered:
                starts.append(max(chunk.start, covered))
                ends.append(chunk.end)
                chunks.append(chunk.ordinal)
                covered = chunk.end
        return cls(sentences, [start for start, _ in sentences], starts, ends, chunks)

    def chunk_at(self, position: int) -> int:
        """The first chunk whose span holds the position; -1 outside all chunks."""
        at = bisect_right(self.stretch_ends, position)
        if at == len(self.stretch_ends) or self.stretch_starts[at] > position:
            return -1
        return self.stretch_chunks[at]

    def chunk_from(self, position: int) -> int:
        """The first chunk that holds the position or stands behind it; the last one behind all; -1 if there is none."""
        at = min(bisect_right(self.stretch_ends, position), len(self.stretch_ends) - 1)
        return self.stretch_chunks[at] if at >= 0 else -1

    def sentence_at(self, position: int) -> int:
        """The document-wide number of the sentence that the position is in, or behind."""
        return max(0, bisect_right(self.sentence_starts, position) - 1)
