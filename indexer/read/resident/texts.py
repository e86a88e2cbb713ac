"""Passages' texts in memory, so that a search reads its parents and hits without a look at a table.

Texts lie end to end in Arrow columns, a row a passage. A chunk's text is a part of its passage's, told by its bounds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indexer.read.resident.layers import Layers
from indexer.read.resident.vectors import BoundChunk
from indexer.read.rows import ChunkRow, PassageRow
from indexer.read.strings import StringLists, Strings, joined
from schemas.ids import DocumentKey

TEXT_COLUMNS = ("ordinal", "section", "start", "end", "title", "text")


@dataclass(frozen=True)
class Texts:
    """What a passage's row holds beside its names and terms."""

    columns: pa.Table  # TEXT_COLUMNS, one block each

    @classmethod
    def of(cls, rows: pa.Table) -> "Texts":
        return cls(rows.select(TEXT_COLUMNS).combine_chunks())

    def at(self, rows: NDArray[np.intp]) -> Iterator[tuple[int, list[str], int, int, str, str]]:
        """What TEXT_COLUMNS hold of these rows."""
        ordinals, starts, ends = (numbers[rows].tolist() for numbers in self._numbers)
        sections, (titles, texts) = self._sections.of(rows), (strings.of(rows) for strings in self._strings)
        return zip(ordinals, sections, starts, ends, titles, texts, strict=True)

    @cached_property
    def _numbers(self) -> list[NDArray[np.int32]]:
        return [self.columns[name].to_numpy() for name in ("ordinal", "start", "end")]

    @cached_property
    def _sections(self) -> StringLists:
        return StringLists(joined(self.columns["section"]))

    @cached_property
    def _strings(self) -> list[Strings]:
        return [Strings(joined(self.columns[name])) for name in ("title", "text")]

    def kept(self, rows: NDArray[np.bool_]) -> "Texts":
        return self if rows.all() else Texts(self.columns.filter(pa.array(rows)).combine_chunks())

    def followed_by(self, other: "Texts") -> "Texts":
        return Texts(pa.concat_tables([self.columns, other.columns]).combine_chunks())


class TextIndex:
    """Layers of texts. Immutable; safe to use from several threads."""

    def __init__(self, layers: Layers[Texts]) -> None:
        self.layers = layers

    @property
    def nbytes(self) -> int:
        return sum(layer.content.columns.nbytes for layer in self.layers.stack)

    def passages(self, ids: Iterable[str], revisions: Mapping[DocumentKey, str]) -> dict[str, PassageRow]:
        """The passages that are there; `revisions` are those their documents are at."""
        wanted = list(dict.fromkeys(ids))
        found: dict[str, PassageRow] = {}
        for layer in self.layers.stack:
            rows = layer.rows_of(wanted)
            held = rows[rows >= 0]
            if not len(held):
                continue
            keys = layer.names.keys[held].tolist()
            names = layer.names.ids[held].tolist()
            for identifier, key, text in zip(names, keys, layer.content.at(held), strict=True):
                found[identifier] = PassageRow(identifier, key, revisions[key], *text)
        return {identifier: found[identifier] for identifier in wanted if identifier in found}


def chunks_of(passage: PassageRow, chunks: Sequence[BoundChunk]) -> list[ChunkRow]:
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
