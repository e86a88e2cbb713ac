"""Rows by document, in immutable layers: a document's rows can go, and rows can come, without touching what is there.

A log-structured merge (O'Neil et al. 1996): new rows make a small layer on top; layers of like size are merged, so
that there are few, and dead rows go when theirs is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from schemas.ids import DocumentKey

LARGEST_MERGE = 50_000  # rows; larger layers are only rewritten when half of theirs are dead
MERGE_RATIO = 2


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
class Layer(Generic[C]):
    """Rows of whole documents, those of one document side by side; `live` marks those that are still current."""

    ids: NDArray[np.object_]  # (n_rows,) str
    keys: NDArray[np.object_]  # (n_rows,) DocumentKey
    content: C
    live: NDArray[np.bool_]  # (n_rows,)

    @classmethod
    def of(cls, ids: Sequence[str], keys: Sequence[DocumentKey], content: C) -> "Layer[C]":
        return cls(_objects(ids), _objects(keys), content, np.ones(len(ids), dtype=np.bool_))

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
    def live_rows(self) -> int:
        return int(self.live.sum())

    def without(self, keys: Iterable[DocumentKey]) -> "Layer[C]":
        held = [self.spans[key] for key in keys if key in self.spans]
        if not held:
            return self
        live = self.live.copy()
        for start, end in held:
            live[start:end] = False
        layer = replace(self, live=live)
        layer.__dict__["spans"] = self.spans  # the rows are the same
        return layer

    def merged(self, newer: "Layer[C]") -> "Layer[C]":
        """The live rows of both."""
        return Layer(
            np.concatenate([self.ids[self.live], newer.ids[newer.live]]),
            np.concatenate([self.keys[self.live], newer.keys[newer.live]]),
            self.content.kept(self.live).followed_by(newer.content.kept(newer.live)),
            np.ones(self.live_rows + newer.live_rows, dtype=np.bool_),
        )

    def in_collection(self, collection: str | None) -> NDArray[np.bool_]:
        """(n_rows,) bool: live and of this collection, or of any for None."""
        if collection is None:
            return self.live
        of_it = np.zeros(len(self.live), dtype=np.bool_)
        for key, (start, end) in self.spans.items():
            if key.collection == collection:
                of_it[start:end] = True
        return of_it & self.live


@dataclass(frozen=True)
class Layers(Generic[C]):
    """All rows, the oldest layer first. Immutable; documents are in at most one layer with live rows."""

    stack: tuple[Layer[C], ...] = ()

    @cached_property
    def rows(self) -> int:
        return sum(layer.live_rows for layer in self.stack)

    def without(self, keys: Iterable[DocumentKey]) -> "Layers[C]":
        gone = list(keys)
        return Layers(tuple(layer.without(gone) for layer in self.stack))

    def with_layer(self, layer: Layer[C]) -> "Layers[C]":
        """These rows and those of a new layer, whose documents must have no live rows here."""
        stack = [kept for kept in self.stack if kept.live_rows]
        if layer.live_rows:
            stack.append(layer)
        while len(stack) > 1 and _worth_merging(stack[-2], stack[-1]):
            newer = stack.pop()
            stack.append(stack.pop().merged(newer))
        return Layers(tuple(stack))


def best_rows(scores: NDArray[np.floating], limit: int) -> NDArray[np.intp]:
    """The rows with the highest scores: `limit` of them, and all that equal the last; unsorted, -inf left out."""
    if len(scores) > limit:
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        return np.flatnonzero((scores >= least) & (scores > -np.inf))
    return np.flatnonzero(scores > -np.inf)


def _worth_merging(older: Layer[C], newer: Layer[C]) -> bool:
    rows = older.live_rows + newer.live_rows
    mostly_dead = older.live_rows * 2 < len(older.live)
    return mostly_dead or (older.live_rows < MERGE_RATIO * newer.live_rows and rows <= LARGEST_MERGE)


def _objects(values: Sequence[object]) -> NDArray[np.object_]:
    return np.fromiter(values, dtype=np.object_, count=len(values))
