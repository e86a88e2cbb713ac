"""Passages' texts in memory, so that a search reads its parents and hits without a look at a table.

A chunk's text is a part of its passage's, by its bounds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indexer.read.rows import ChunkRow, PassageRow
from query_api.index.strings import StringLists, Strings, one_array
from query_api.index.text.segments import Columns, Segments
from query_api.index.text.vectors import ChunkBounds
from schemas.ids import DocumentKey

TEXT_COLUMNS = ("ordinal", "section", "start", "end", "title", "text")


@dataclass(frozen=True)
class PassageTexts(Columns):
    """What passages' rows hold beside their ids and terms."""

    table: pa.Table  # TEXT_COLUMNS, one block each

    @classmethod
    def of(cls, rows: pa.Table) -> "PassageTexts":
        return cls(rows.select(TEXT_COLUMNS).combine_chunks())

    def at(self, rows: NDArray[np.intp]) -> Iterator[tuple[int, list[str], int, int, str, str]]:
        """TEXT_COLUMNS of these rows."""
        ordinals, starts, ends = (numbers[rows].tolist() for numbers in self._numbers)
        sections, (titles, texts) = self._sections.of(rows), (strings.of(rows) for strings in self._strings)
        return zip(ordinals, sections, starts, ends, titles, texts, strict=True)

    @cached_property
    def _numbers(self) -> list[NDArray[np.int32]]:
        return [self.table[name].to_numpy() for name in ("ordinal", "start", "end")]

    @cached_property
    def _sections(self) -> StringLists:
        return StringLists(one_array(self.table["section"]))

    @cached_property
    def _strings(self) -> list[Strings]:
        return [Strings(one_array(self.table[name])) for name in ("title", "text")]

    def filter(self, rows: NDArray[np.bool_]) -> "PassageTexts":
        return self if rows.all() else PassageTexts(self.table.filter(pa.array(rows)).combine_chunks())

    def concat(self, other: "PassageTexts") -> "PassageTexts":
        return PassageTexts(pa.concat_tables([self.table, other.table]).combine_chunks())


class PassageIndex:
    """Segments of texts. Immutable; thread-safe."""

    def __init__(self, segments: Segments[PassageTexts]) -> None:
        self.segments = segments

    @property
    def nbytes(self) -> int:
        return sum(segment.columns.table.nbytes for segment in self.segments)

    def passages(self, ids: Iterable[str], revisions: Mapping[DocumentKey, str]) -> dict[str, PassageRow]:
        """The passages that are there; `revisions` are the current ones of their documents."""
        wanted = list(dict.fromkeys(ids))
        found: dict[str, PassageRow] = {}
        for segment in self.segments:
            rows = segment.rows_of(wanted)
            rows = rows[rows >= 0]
            if not len(rows):
                continue
            columns = (segment.keys.ids[rows].tolist(), segment.keys.documents[rows].tolist(), segment.columns.at(rows))
            for identifier, key, text in zip(*columns, strict=True):
                found[identifier] = PassageRow(identifier, key, revisions[key], *text)
        return {identifier: found[identifier] for identifier in wanted if identifier in found}


def chunks_of(passage: PassageRow, chunks: Sequence[ChunkBounds]) -> list[ChunkRow]:
    """The chunks of a passage, in document order."""
    return [
        ChunkRow(
            id=chunk.id,
            key=passage.key,
            revision=passage.revision,
            ordinal=chunk.ordinal,
            passage_id=passage.id,
            section=passage.section,
            start=chunk.start,
            end=chunk.end,
            text=passage.text[chunk.start - passage.start : chunk.end - passage.start],
        )
        for chunk in sorted(chunks, key=lambda chunk: chunk.ordinal)
    ]
