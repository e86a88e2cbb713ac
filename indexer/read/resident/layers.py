"""Rows by document, in immutable layers: a document's rows can go, and rows can come, without touching what is there.

A log-structured merge (O'Neil et al. 1996): new rows make a small layer on top; layers of like size are merged, so
that there are few, and dead rows go when theirs is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, repeat
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from schemas.ids import DocumentKey

LARGEST_MERGE = 50_000  # rows; larger layers are only rewritten when half of theirs are dead
MERGE_RATIO = 2
HEAP = 64  # scores whose best stands for them where the best of many are looked for


class Content(Protocol):
    """What the rows of a layer hold beside their names, in arrays by row."""

    def kept(self, rows: NDArray[np.bool_]) -> Self:
        """Only these rows."""
        ...

    def followed_by(self, other: Self) -> Self:
        """These rows, then the other's."""
        ...


C = TypeVar("C", bound=Content)


@dataclass(frozen=True)
class Names:
    """What the rows of a layer are called, and by whose rows they are; shared by every state the layer is in."""

    ids: NDArray[np.object_]  # (n_rows,) str
    keys: NDArray[np.object_]  # (n_rows,) DocumentKey

    @cached_property
    def spans(self) -> Mapping[DocumentKey, tuple[int, int]]:
        """The first row of each document, and the one behind its last."""
        spans, start = {}, 0
        for key, group in groupby(self.keys.tolist()):
            end = start + sum(1 for _ in group)
            spans[key] = start, end
            start = end
        return spans

    @cached_property
    def collections(self) -> tuple[Mapping[str, int], NDArray[np.int32]]:
        """A number for each collection, and (n_rows,) which number each row has."""
        numbers: dict[str, int] = {}
        of_documents = [numbers.setdefault(key.collection, len(numbers)) for key in self.spans]
        rows = [end - start for start, end in self.spans.values()]
        return numbers, np.repeat(np.array(of_documents, dtype=np.int32), rows)

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """The row of each id."""
        return dict(zip(self.ids.tolist(), range(len(self.ids)), strict=True))

    def kept(self, rows: NDArray[np.bool_]) -> "Names":
        return self if rows.all() else Names(self.ids[rows], self.keys[rows])

    def followed_by(self, other: "Names") -> "Names":
        return Names(np.concatenate([self.ids, other.ids]), np.concatenate([self.keys, other.keys]))


@dataclass(frozen=True)
class Layer(Generic[C]):
    """Rows of whole documents, those of one document side by side; `live` marks those that are still current."""

    names: Names
    content: C
    live: NDArray[np.bool_]  # (n_rows,)

    @classmethod
    def of(cls, ids: Sequence[str], keys: Sequence[DocumentKey], content: C) -> "Layer[C]":
        return cls(Names(_objects(ids), _objects(keys)), content, np.ones(len(ids), dtype=np.bool_))

    @cached_property
    def live_rows(self) -> int:
        return int(np.count_nonzero(self.live))

    def without(self, keys: Iterable[DocumentKey]) -> "Layer[C]":
        spans = self.names.spans
        held = [spans[key] for key in keys if key in spans]
        if not held:
            return self
        live = self.live.copy()
        for start, end in held:
            live[start:end] = False
        return replace(self, live=live)

    def compacted(self) -> "Layer[C]":
        """The live rows alone."""
        live = np.ones(self.live_rows, dtype=np.bool_)
        return Layer(self.names.kept(self.live), self.content.kept(self.live), live)

    def merged(self, newer: "Layer[C]") -> "Layer[C]":
        """The live rows of both."""
        older, newer = self.compacted(), newer.compacted()
        return Layer(
            older.names.followed_by(newer.names),
            older.content.followed_by(newer.content),
            np.concatenate([older.live, newer.live]),
        )

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.intp]:
        """(n_ids,) the live row of each id; -1 where there is none."""
        row_of = self.names.row_of
        rows = np.fromiter(map(row_of.get, ids, repeat(-1)), dtype=np.intp, count=len(ids))
        rows[~self.live[rows]] = -1
        return rows

    def in_collection(self, collection: str | None) -> NDArray[np.bool_]:
        """(n_rows,) bool: live and of this collection, or of any for None."""
        if collection is None:
            return self.live
        numbers, of_rows = self.names.collections
        in_it: NDArray[np.bool_] = of_rows == numbers.get(collection, -1)
        return in_it & self.live


@dataclass(frozen=True)
class Layers(Generic[C]):
    """All rows, the oldest layer first. Immutable; documents are in at most one layer with live rows."""

    stack: tuple[Layer[C], ...] = ()

    @cached_property
    def rows(self) -> int:
        return sum(layer.live_rows for layer in self.stack)

    def holds(self, identifier: str) -> bool:
        """Whether a live row has this id. Looks at every row, and keeps nothing: for what is asked seldom."""
        return any(layer.live[layer.names.ids == identifier].any() for layer in self.stack)

    def span(self, key: DocumentKey) -> tuple[Layer[C], int, int] | None:
        """The layer that holds a document's live rows, the first of them, and the one behind the last."""
        for layer in self.stack:
            start, end = layer.names.spans.get(key, (0, 0))
            if start < end and layer.live[start]:
                return layer, start, end
        return None

    def without(self, keys: Iterable[DocumentKey]) -> "Layers[C]":
        gone = list(keys)
        return Layers(_tidied(layer.without(gone) for layer in self.stack))

    def with_layer(self, layer: Layer[C]) -> "Layers[C]":
        """These rows and those of a new layer, whose documents must have no live rows here."""
        return Layers(_tidied([*self.stack, layer]))


def best_rows(
    scores: NDArray[np.floating], limit: int, margin: float = 0.0, above: float = -np.inf
) -> NDArray[np.intp]:
    """The rows with the highest scores: `limit` of them, and all others that are no more than `margin` below the last;
    unsorted, only those `above`."""
    least = above
    if (heaps := len(scores) // HEAP) > 2 * limit:  # so many heaps have a best that the last of them bounds all
        least = max(above, _at_least(scores[: heaps * HEAP].reshape(HEAP, heaps).max(axis=0), limit) - margin)
    rows = np.flatnonzero(scores >= least) if least > above else np.flatnonzero(scores > above)
    if len(rows) > limit:
        few = scores[rows]
        rows = rows[few >= _at_least(few, limit) - margin]
    return rows


def _at_least(scores: NDArray[np.floating], limit: int) -> float:
    """What `limit` of the scores reach."""
    return float(np.partition(scores, len(scores) - limit)[len(scores) - limit])


def _tidied(layers: Iterable[Layer[C]]) -> tuple[Layer[C], ...]:
    """Few layers, none of them mostly dead, wherever in the stack documents went."""
    stack: list[Layer[C]] = []
    for layer in layers:
        if not layer.live_rows:
            continue
        stack.append(layer.compacted() if layer.live_rows * 2 < len(layer.live) else layer)
        while len(stack) > 1 and _worth_merging(stack[-2], stack[-1]):
            newer = stack.pop()
            stack.append(stack.pop().merged(newer))
    return tuple(stack)


def _worth_merging(older: Layer[C], newer: Layer[C]) -> bool:
    rows = older.live_rows + newer.live_rows
    return older.live_rows < MERGE_RATIO * newer.live_rows and rows <= LARGEST_MERGE


def _objects(values: Sequence[object]) -> NDArray[np.object_]:
    return np.fromiter(values, dtype=np.object_, count=len(values))
