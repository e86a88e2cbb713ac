"""What a search may find: a collection, or some documents of it; and the rows these have in each layer."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.read.resident.layers import Layer
from schemas.ids import DocumentKey

KEPT_SCOPES = 16  # scopes whose rows an index remembers; finding them again costs .3 ms for 100,000 rows
FEW_DOCUMENTS = 256  # of so many the rows are found sooner than remembered


@dataclass(frozen=True)
class Scope:
    """Where a search looks, in one snapshot: in all collections for None, in all documents for None."""

    collection: str | None = None
    documents: frozenset[DocumentKey] | None = None

    def allows(self, key: DocumentKey) -> bool:
        if self.collection is not None and key.collection != self.collection:
            return False
        return self.documents is None or key in self.documents

    def within(self, documents: Iterable[DocumentKey]) -> "Scope":
        """Of this scope, these documents only."""
        return Scope(self.collection, frozenset(key for key in documents if self.allows(key)))


EVERYTHING = Scope()


Runs = list[tuple[int, int]]


def runs_of(rows: NDArray[np.bool_]) -> Runs:
    """The rows that are True, as (first, one behind the last) of each run of them."""
    edges = np.flatnonzero(np.diff(rows.view(np.int8), prepend=0, append=0))
    return [(start, end) for start, end in edges.reshape(-1, 2).tolist()]


class ScopeRows:
    """The rows of a stack of layers that are in a scope, kept for the scopes used last. Safe from several threads."""

    def __init__(self, stack: tuple[Layer[Any], ...]) -> None:
        self._stack = stack
        self._kept: dict[Scope, list[NDArray[np.bool_]]] = {}
        self._runs: dict[Scope, list[Runs]] = {}

    def known(self) -> list[Scope]:
        """The scopes of whole collections that were searched last."""
        return list(self._runs)

    def of(self, scope: Scope) -> list[NDArray[np.bool_]]:
        """For each layer (n_rows,) bool: live and in the scope."""
        rows = self._kept.get(scope)
        if rows is None:
            rows = [_rows(layer, scope) for layer in self._stack]
            if scope.documents is None or len(scope.documents) > FEW_DOCUMENTS:
                if len(self._kept) >= KEPT_SCOPES:
                    self._kept.clear()
                self._kept[scope] = rows
        return rows

    def runs(self, scope: Scope) -> list[Runs]:
        """For each layer the same in runs: a collection's rows lie side by side where few documents have changed."""
        runs = self._runs.get(scope)
        if runs is None:
            runs = [runs_of(rows) for rows in self.of(scope)]
            if scope.documents is None:
                if len(self._runs) >= KEPT_SCOPES:
                    self._runs.clear()
                self._runs[scope] = runs
        return runs


def _rows(layer: Layer[Any], scope: Scope) -> NDArray[np.bool_]:
    if scope.documents is None:
        return layer.in_collection(scope.collection)
    spans = layer.names.spans
    wanted = np.zeros(len(layer.live), dtype=np.bool_)
    for key in scope.documents:
        if key in spans and scope.allows(key):
            start, end = spans[key]
            wanted[start:end] = True
    return wanted & layer.live
