"""Vector search in memory."""

from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from indexer.read.resident.layers import Layers
from indexer.read.resident.nearest import NearChunk, nearest
from indexer.read.resident.scope import EVERYTHING, Scope, ScopeRows
from indexer.read.resident.vectors import BoundChunk, Vectors, exact_cosines

NOWHERE = (0, 0)


class VectorIndex:
    """Layers of vectors, searched. Immutable; safe to use from several threads."""

    def __init__(self, layers: Layers[Vectors]) -> None:
        self.layers = layers
        self._rows = ScopeRows(layers.stack)

    def search(self, vector: NDArray[np.float32], limit: int, scope: Scope = EVERYTHING) -> list[NearChunk]:
        """The `limit` chunks with the highest cosine, best first, ties by id. `vector` is (dimension,) float32."""
        length = float(np.linalg.norm(vector))
        if limit < 1 or not length or not np.isfinite(length):
            return []
        in_scope = list(zip(self.layers.stack, self._rows.runs(scope), strict=True))
        return nearest(in_scope, vector.astype(np.float64) / length, limit)

    def prepared_as(self, before: "VectorIndex") -> "VectorIndex":
        """This, with all made ahead that the searches of an earlier state would else wait for."""
        for layer in self.layers.stack if before.asked else ():
            _ = layer.content.spans, layer.names.spans, layer.names.collections
        for scope in before.asked:
            self._rows.runs(scope)
        return self

    @property
    def asked(self) -> list[Scope]:
        """The whole collections that were searched last."""
        return self._rows.known()

    def cosines(self, vector: NDArray[np.float32], passage_ids: Sequence[str]) -> NDArray[np.float64]:
        """(n_passages,) the highest cosine of each passage's chunks, as `search` gives it; NaN for one without any."""
        unit = vector.astype(np.float64) / (float(np.linalg.norm(vector)) or 1.0)
        found = np.full(len(passage_ids), np.nan)
        for layer in self.layers.stack:
            spans = layer.content.spans
            bounds = chain.from_iterable(map(spans.get, passage_ids, repeat(NOWHERE)))
            starts, ends = np.fromiter(bounds, dtype=np.intp, count=2 * len(passage_ids)).reshape(-1, 2).T
            which = np.flatnonzero(starts < ends)
            if not len(which):
                continue
            starts, ends = starts[which], ends[which]
            live = layer.live[starts]
            which, starts, ends = which[live], starts[live], ends[live]
            if len(which):
                firsts = np.cumsum(ends - starts) - (ends - starts)
                rows = np.repeat(starts - firsts, ends - starts) + np.arange(firsts[-1] + ends[-1] - starts[-1])
                cosines = exact_cosines(layer.content.matrix[rows], unit)
                found[which] = np.maximum.reduceat(cosines, firsts)
        return found

    def chunks_of(self, passage_id: str) -> list[BoundChunk]:
        """The live chunks of a passage."""
        found = []
        for layer in self.layers.stack:
            start, end = layer.content.spans.get(passage_id, (0, 0))
            if start < end and layer.live[start]:
                places = zip(layer.names.ids[start:end].tolist(), layer.content.bounds[start:end].tolist(), strict=True)
                found += [BoundChunk(identifier, *place) for identifier, place in places]
        return found
