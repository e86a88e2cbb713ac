"""Two levels of chunks, small to big: children of about 300 characters are embedded, their parents are shown.

Per section: sentences are packed into cores, which lie end to end and cover the section once. A child is a core with
some words before it; a parent is a run of cores with some sentences before it. No chunk crosses a section.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from semantic_text_splitter import TextSplitter

from indexer.documents import Chunk, ChunkedDocument, ParsedDocument, Passage, Section
from indexer.sentences import sentence_spans
from schemas.ids import DocumentKey, chunk_id, passage_id

SLACK = 4 / 3  # a child may exceed its size by a third rather than cut a sentence
FULL_ENOUGH = 0.75  # of its size: such a child ends where its paragraph ends
LEAST_TAIL = 0.25  # of its size: a last chunk smaller than that is merged or evened out with the one before

Span = tuple[int, int]


@dataclass(frozen=True)
class ChunkingParameters:
    """Sizes in characters; `passage_overlap` is a share of `passage_characters`. Raises ValueError for nonsense."""

    passage_characters: int = 1_400
    passage_overlap: float = 0.15
    chunk_characters: int = 300
    chunk_overlap: int = 50

    def __post_init__(self) -> None:
        if self.chunk_characters < 20 or not 0 <= self.chunk_overlap <= self.chunk_characters // 2:
            raise ValueError("chunk_characters is 20 or more, and chunk_overlap at most half of it.")
        if self.passage_characters < 2 * self.chunk_characters or not 0 <= self.passage_overlap <= 0.5:
            raise ValueError("A passage has the size of two chunks or more; its overlap is a share of 0 to 0.5.")

    @property
    def longest_chunk(self) -> int:
        """The bound on a child's characters, overlap included."""
        return int(self.chunk_characters * SLACK)

    @property
    def longest_passage(self) -> int:
        """The bound on a parent's characters, overlap included."""
        return self.passage_characters + self.longest_chunk

    @property
    def passage_overlap_characters(self) -> int:
        return int(self.passage_characters * self.passage_overlap)


def chunk(key: DocumentKey, parsed: ParsedDocument, parameters: ChunkingParameters) -> ChunkedDocument:
    """The sections, parents and children of a document; `text[start:end] == chunk.text` for each of them.

    A pure function: the same input gives the same ids. A child's id holds as long as its text and headings do.
    """
    cutter = _Cutter(parsed, parameters)
    occurrences: Counter[tuple[str, tuple[str, ...], str]] = Counter()
    passages: list[Passage] = []
    chunks: list[Chunk] = []
    for index, section in enumerate(parsed.sections):
        for bounds, children in cutter.cut(section):
            text = parsed.text[slice(*bounds)]
            seen = ("passage", section.headings, text)
            identity = passage_id(key, section.headings, text, occurrences[seen])
            occurrences[seen] += 1
            passage = Passage(identity, len(passages), index, *bounds, text)
            passages.append(passage)
            for child in children:
                text = parsed.text[slice(*child)]
                seen = ("chunk", section.headings, text)
                identity = chunk_id(key, section.headings, text, occurrences[seen])
                occurrences[seen] += 1
                chunks.append(Chunk(identity, len(chunks), passage.ordinal, index, *child, text))
    return ChunkedDocument(parsed.sections, tuple(passages), tuple(chunks))


class _Cutter:
    """Cuts the sections of one document."""

    def __init__(self, parsed: ParsedDocument, parameters: ChunkingParameters) -> None:
        self._text = parsed.text
        self._parameters = parameters
        self._figures = sorted(parsed.figures, key=lambda figure: figure.end)
        self._figure_ends = [figure.end for figure in self._figures]

    def cut(self, section: Section) -> Iterator[tuple[Span, list[Span]]]:
        """The parents of a section in order, each with its children."""
        units = list(self._units(section))
        unit_starts = [start for start, _ in units]
        for cores in self._group(self._merge_tail(list(self._pack(units)))):
            parent_start = self._parent_start(section, cores[0][0], unit_starts)
            children = [(self._child_start(parent_start, start, end), end) for start, end in cores]
            yield (parent_start, cores[-1][1]), children

    def _units(self, section: Section) -> Iterator[Span]:
        """Sentences, and pieces of sentences that are too long for a child."""
        size = self._parameters.chunk_characters
        for start, end in sentence_spans(self._text, section.start, section.end):
            if end - start <= size:
                yield start, end
                continue
            for offset, piece in _splitter(size).chunk_indices(self._text[start:end]):
                yield start + offset, start + offset + len(piece)

    def _pack(self, units: Sequence[Span]) -> Iterator[Span]:
        """Cores: as many units as come nearest to a child's size, its overlap counted in."""
        size = self._parameters.chunk_characters
        overlap = 0
        start, end = units[0]
        for unit_start, unit_end in units[1:]:
            length, longer = end - start + overlap, unit_end - start + overlap
            ends_paragraph = "\n\n" in self._text[end:unit_start]
            full = length >= size * FULL_ENOUGH and ends_paragraph
            if not full and longer <= self._parameters.longest_chunk and longer - size <= size - length:
                end = unit_end
                continue
            yield start, end
            overlap = self._parameters.chunk_overlap
            start, end = unit_start, unit_end
        yield start, end

    def _merge_tail(self, cores: list[Span]) -> list[Span]:
        """A last core that is tiny joins the one before it, if that can take it."""
        if len(cores) < 2:
            return cores
        (start, _), (tail_start, tail_end) = cores[-2:]
        fits = tail_end - start + self._parameters.chunk_overlap <= self._parameters.longest_chunk
        if fits and tail_end - tail_start < self._parameters.chunk_characters * LEAST_TAIL:
            return [*cores[:-2], (start, tail_end)]
        return cores

    def _group(self, cores: Sequence[Span]) -> list[Sequence[Span]]:
        """Runs of cores that fill a parent, its overlap counted in; the last two runs are evened out."""
        size = self._parameters.passage_characters
        groups: list[list[Span]] = []
        overlap = 0
        for core in cores:
            if groups and core[1] - groups[-1][0][0] + overlap <= size:
                groups[-1].append(core)
                continue
            if groups:
                overlap = self._parameters.passage_overlap_characters
            groups.append([core])
        if len(groups) > 1 and groups[-1][-1][1] - groups[-1][0][0] < size * LEAST_TAIL:
            both = groups[-2] + groups[-1]
            middle = (both[0][0] + both[-1][1]) // 2
            cut = min(max(1, bisect_left(both, (middle, 0))), len(both) - 1)
            groups[-2:] = [both[:cut], both[cut:]]
        return list(groups)

    def _parent_start(self, section: Section, start: int, unit_starts: Sequence[int]) -> int:
        """Where a parent begins that takes over the sentences before its first core, but nothing of a figure."""
        earliest = max(section.start, start - self._parameters.passage_overlap_characters)
        for at in range(bisect_right(self._figure_ends, earliest), len(self._figures)):
            if self._figures[at].start >= start:
                break
            earliest = max(earliest, min(self._figures[at].end, start))
        return unit_starts[bisect_left(unit_starts, earliest)]

    def _child_start(self, parent_start: int, start: int, end: int) -> int:
        """Where a child begins that takes over the last words before its core, as its parent and its size allow."""
        reach = min(self._parameters.chunk_overlap, self._parameters.longest_chunk - (end - start))
        if start - reach <= parent_start:
            return parent_start
        blank = _BLANK.search(self._text, start - reach - 1, start)
        return start if blank is None else blank.end()


_BLANK = re.compile(r"\s+")


@lru_cache(maxsize=16)
def _splitter(size: int) -> TextSplitter:
    return TextSplitter(size)
