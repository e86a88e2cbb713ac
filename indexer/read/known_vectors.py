"""Stored vectors by the hash of their text, so that no text is encoded twice: in this generation, or an earlier one."""

from collections.abc import Callable, Sequence

import numpy as np
import structlog
from lancedb.expr import col
from lancedb.table import Table
from numpy.typing import NDArray

from indexer.errors import DamagedStore, TransientStoreError
from indexer.generations import Generation, Manifest
from indexer.integrity.rows import CHECKED_COLUMNS, require_intact
from indexer.lance_connection import checkout_latest, connect, store_errors
from indexer.read.rows import IN_LIST, vector_matrix
from indexer.schema import CHUNKS

VECTOR_COLUMNS = list(CHECKED_COLUMNS[CHUNKS]["vector_checksum"])

Vectors = dict[str, NDArray[np.float32]]


def vectors_by_hash(chunks: Table, hashes: Sequence[str]) -> Vectors:
    """Stored vectors, (dimension,) float32, of any revision, by the hash of the embedded text.

    Raises TransientStoreError, and DamagedStore for a vector that is not what was written.
    """
    found: Vectors = {}
    with store_errors("look up vectors"):
        unique = list(dict.fromkeys(hashes))
        for start in range(0, len(unique), IN_LIST):
            condition = col("content_hash").isin(unique[start : start + IN_LIST])
            rows = chunks.search().where(condition).select(["content_hash"]).with_row_id(True).to_arrow()
            row_of = dict(zip(rows["content_hash"].to_pylist(), rows["_rowid"].to_pylist(), strict=True))
            if row_of:
                taken = chunks.take_row_ids(list(row_of.values())).select([*VECTOR_COLUMNS, "vector_checksum"])
                taken = taken.to_arrow()
                require_intact(CHUNKS, taken)
                found |= zip(taken["content_hash"].to_pylist(), vector_matrix(taken), strict=True)
    return found


class EarlierVectors:
    """The vectors of an earlier generation by the same model. What cannot be read there is encoded again."""

    def __init__(self, generation: Generation, own: Callable[[Sequence[str]], Vectors]) -> None:
        """`own` looks up vectors in the generation that is being built."""
        self._generation = generation
        self._own = own
        self._chunks: Table | None = None
        self._log = structlog.get_logger("thalweg.worker")

    def known_vectors(self, hashes: Sequence[str]) -> Vectors:
        found = self._own(hashes)
        missing = [digest for digest in hashes if digest not in found]
        return found | self._earlier(missing) if missing else found

    def _earlier(self, hashes: Sequence[str]) -> Vectors:
        try:
            if self._chunks is None:
                with store_errors(f"open the tables in {self._generation.lance_dir}"):
                    self._chunks = connect(self._generation.lance_dir).open_table(CHUNKS)
            checkout_latest(self._chunks)
            return vectors_by_hash(self._chunks, hashes)
        except (TransientStoreError, DamagedStore, ValueError, OSError) as error:
            self._log.warning(
                "vectors of the earlier generation cannot be read; the texts are encoded again",
                generation=self._generation.name,
                texts=len(hashes),
                error=str(error)[:200],
            )
            self._chunks = None
            return {}


def same_vectors(earlier: Manifest, new: Manifest) -> bool:
    """Whether a text has the same vector in both generations."""
    return (earlier.embedding_digest, earlier.dimension) == (new.embedding_digest, new.dimension)
