"""Small-to-big chunking: chunks of about 300 characters are embedded, and their passages are shown.

The API calls them children and parents. Per section: sentences are packed into cores, which cover the section end to
end. A chunk is a core with some words of overlap before it; a passage is a run of cores with some sentences of overlap
before it. Neither crosses a section. With the method `semantic`, cores and passages also end at topic boundaries
(`indexer.chunking.semantic`), without overlap across them.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from semantic_text_splitter import TextSplitter

from indexer.chunking.sentences import DEFAULT_LANGUAGE, sentence_spans
from indexer.documents import Chunk, ChunkedDocument, ParsedDocument, Passage, Section
from schemas.curation import ChunkingChoice
from schemas.ids import DocumentKey, chunk_id, passage_id

SLACK = 4 / 3  # a chunk may exceed its size by a third rather than cut a sentence
FULL_ENOUGH = 0.75  # of its size: such a chunk ends with its paragraph
MIN_TAIL = 0.25  # of its size: a smaller last chunk is merged or balanced with the one before
MIN_BEFORE_BOUNDARY = 0.5  # of its size: a smaller passage continues over a topic boundary

Span = tuple[int, int]


@dataclass(frozen=True)
class ChunkingParameters:
    """Sizes in characters; `passage_overlap` is a share of `passage_characters`. Raises ValueError for bad values.

    `language` is an ISO 639 code, or `auto` to detect it.
    """

    passage_characters: int = 1_400
    passage_overlap: float = 0.15
    chunk_characters: int = 300
    chunk_overlap: int = 50
    method: Literal["sentences", "semantic"] = "sentences"
    language: str = "auto"

    def __post_init__(self) -> None:
        if self.chunk_characters < 20 or not 0 <= self.chunk_overlap <= self.chunk_characters // 2:
            raise ValueError("chunk_characters is 20 or more, and chunk_overlap at most half of it.")
        if self.passage_characters < 2 * self.chunk_characters or not 0 <= self.passage_overlap <= 0.5:
            raise ValueError("A passage has the size of two chunks or more; its overlap is a share of 0 to 0.5.")

    def with_choice(self, choice: ChunkingChoice) -> "ChunkingParameters":
        """These parameters with a collection's own choices. Raises ValueError with a sentence for the person."""
        parent = _or_default(choice.parent_characters, self.passage_characters)
        child = _or_default(choice.child_characters, self.chunk_characters)
        child_overlap = _or_default(choice.child_overlap, self.chunk_overlap)
        share = self.passage_overlap if choice.parent_overlap is None else choice.parent_overlap / parent
        if parent < 2 * child:
            raise ValueError(
                f"A parent of {parent:,} characters is too small for children of {child:,}: parent_characters is twice "
                "child_characters or more."
            )
        if share > 0.5:
            raise ValueError(f"parent_overlap is at most half of parent_characters, which is {parent:,}.")
        if child_overlap > child // 2:
            raise ValueError(
                f"child_overlap is {child_overlap:,}, and at most half of child_characters, which is {child:,}."
            )
        return replace(
            self,
            passage_characters=parent,
            passage_overlap=share,
            chunk_characters=child,
            chunk_overlap=child_overlap,
            method=choice.method or self.method,
            language=choice.language or self.language,
        )

    @property
    def longest_chunk(self) -> int:
        """The most characters of a chunk, overlap included."""
        return int(self.chunk_characters * SLACK)

    @property
    def passage_overlap_characters(self) -> int:
        return int(self.passage_characters * self.passage_overlap + 1e-6)  # the share may come from a whole number


def chunk(
    key: DocumentKey,
    parsed: ParsedDocument,
    parameters: ChunkingParameters,
    *,
    language: str = DEFAULT_LANGUAGE,
    boundaries: Sequence[int] = (),
) -> ChunkedDocument:
    """The sections, passages and chunks of a document; `text[start:end] == chunk.text` for each of them.

    `boundaries` are numbers of sentences, counted over `sentences_by_section`, that begin a new topic. Pure: the same
    input gives the same ids, and a chunk's id stays the same as long as its text and headings do.
    """
    splitter = _Splitter(parsed, parameters, language, boundaries)
    occurrences: Counter[tuple[str, tuple[str, ...], str]] = Counter()
    passages: list[Passage] = []
    chunks: list[Chunk] = []
    for index, section in enumerate(parsed.sections):
        for bounds, spans in splitter.split(section):
            text = parsed.text[slice(*bounds)]
            seen = ("passage", section.headings, text)
            identity = passage_id(key, section.headings, text, occurrences[seen])
            occurrences[seen] += 1
            passage = Passage(identity, len(passages), index, *bounds, text)
            passages.append(passage)
            for span in spans:
                text = parsed.text[slice(*span)]
                seen = ("chunk", section.headings, text)
                identity = chunk_id(key, section.headings, text, occurrences[seen])
                occurrences[seen] += 1
                chunks.append(Chunk(identity, len(chunks), passage.ordinal, index, *span, text))
    return ChunkedDocument(parsed.sections, tuple(passages), tuple(chunks))


def sentences_by_section(
    parsed: ParsedDocument, parameters: ChunkingParameters, language: str = DEFAULT_LANGUAGE
) -> list[list[str]]:
    """The units that chunks are packed from: the sentences of each section, in pieces if too long for a chunk."""
    splitter = _Splitter(parsed, parameters, language)
    return [[parsed.text[slice(*unit)] for unit in splitter.units(section)] for section in parsed.sections]


class _Splitter:
    """Splits the sections of one document, each once and in order."""

    def __init__(
        self, parsed: ParsedDocument, parameters: ChunkingParameters, language: str, boundaries: Sequence[int] = ()
    ) -> None:
        self._text = parsed.text
        self._parameters = parameters
        self._language = language
        self._boundary_numbers = frozenset(boundaries)
        self._units_before = 0
        self._boundaries: set[int] = set()
        self._figures = sorted(parsed.figures, key=lambda figure: figure.end)
        self._figure_ends = [figure.end for figure in self._figures]

    def split(self, section: Section) -> Iterator[tuple[Span, list[Span]]]:
        """The passages of a section in order, each with its chunks."""
        units = list(self.units(section))
        if self._boundary_numbers:
            numbered = enumerate(units, self._units_before)
            self._boundaries.update(start for number, (start, _) in numbered if number in self._boundary_numbers)
            self._units_before += len(units)
        unit_starts = [start for start, _ in units]
        for cores in self._group(self._merge_tail(list(self._pack(units)))):
            passage_start = self._passage_start(section, cores[0][0], unit_starts)
            chunks = [(self._chunk_start(passage_start, start, end), end) for start, end in cores]
            yield (passage_start, cores[-1][1]), chunks

    def units(self, section: Section) -> Iterator[Span]:
        """Sentences, and pieces of sentences that are too long for a chunk."""
        size = self._parameters.chunk_characters
        for start, end in sentence_spans(self._text, section.start, section.end, self._language):
            if end - start <= size:
                yield start, end
                continue
            for offset, piece in _text_splitter(size).chunk_indices(self._text[start:end]):
                yield start + offset, start + offset + len(piece)

    def _pack(self, units: Sequence[Span]) -> Iterator[Span]:
        """Cores: the units that come nearest to a chunk's size, overlap included."""
        size, longest = self._parameters.chunk_characters, self._parameters.longest_chunk
        overlap = 0
        start, end = units[0]
        for unit_start, unit_end in units[1:]:
            length, longer = end - start + overlap, unit_end - start + overlap
            ends_paragraph = "\n\n" in self._text[end:unit_start]
            full = length >= size * FULL_ENOUGH and ends_paragraph
            is_boundary = unit_start in self._boundaries
            full = full or (is_boundary and length >= size * MIN_TAIL)
            if not full and longer <= longest and longer - size <= size - length:
                end = unit_end
                continue
            yield start, end
            overlap = 0 if is_boundary else self._parameters.chunk_overlap
            start, end = unit_start, unit_end
        yield start, end

    def _merge_tail(self, cores: list[Span]) -> list[Span]:
        """Merge a tiny last core with the one before it, if that fits."""
        if len(cores) < 2:
            return cores
        (start, _), (tail_start, tail_end) = cores[-2:]
        fits = tail_end - start + self._parameters.chunk_overlap <= self._parameters.longest_chunk
        if fits and tail_end - tail_start < self._parameters.chunk_characters * MIN_TAIL:
            return [*cores[:-2], (start, tail_end)]
        return cores

    def _group(self, cores: Sequence[Span]) -> list[Sequence[Span]]:
        """Runs of cores that fill a passage, overlap included; the last two are balanced."""
        size = self._parameters.passage_characters
        groups: list[list[Span]] = []
        overlap = 0
        for core in cores:
            length = core[0] - groups[-1][0][0] if groups else 0
            is_boundary = core[0] in self._boundaries and length >= size * MIN_BEFORE_BOUNDARY
            if groups and not is_boundary and core[1] - groups[-1][0][0] + overlap <= size:
                groups[-1].append(core)
                continue
            if groups:
                overlap = 0 if core[0] in self._boundaries else self._parameters.passage_overlap_characters
            groups.append([core])
        if len(groups) > 1 and groups[-1][-1][1] - groups[-1][0][0] < size * MIN_TAIL:
            both = groups[-2] + groups[-1]
            middle = (both[0][0] + both[-1][1]) // 2
            cut = min(max(1, bisect_left(both, (middle, 0))), len(both) - 1)
            groups[-2:] = [both[:cut], both[cut:]]
        return list(groups)

    def _passage_start(self, section: Section, start: int, unit_starts: Sequence[int]) -> int:
        """Where a passage begins: some sentences before its first core, but no part of a figure."""
        if start in self._boundaries:
            return start
        earliest = max(section.start, start - self._parameters.passage_overlap_characters)
        for at in range(bisect_right(self._figure_ends, earliest), len(self._figures)):
            if self._figures[at].start >= start:
                break
            earliest = max(earliest, min(self._figures[at].end, start))
        return unit_starts[bisect_left(unit_starts, earliest)]

    def _chunk_start(self, passage_start: int, start: int, end: int) -> int:
        """Where a chunk begins: some words before its core, as far as its passage and its size allow."""
        reach = min(self._parameters.chunk_overlap, self._parameters.longest_chunk - (end - start))
        if start in self._boundaries:
            return start
        if start - reach <= passage_start:
            return passage_start
        blank = _BLANK.search(self._text, start - reach - 1, start)
        return start if blank is None else blank.end()


_BLANK = re.compile(r"\s+")


def _or_default(chosen: int | None, default: int) -> int:
    return default if chosen is None else chosen


@lru_cache(maxsize=16)
def _text_splitter(size: int) -> TextSplitter:
    return TextSplitter(size)
