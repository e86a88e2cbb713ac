"""Nodes' keys and ids, found by binary search.

A key is the first 64 bits of a node's computed id, so the same document, chunk or entity has the same key in every
segment. Two of n nodes share a key with probability n²/2⁶⁵: 3 in 10⁸ for a million.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from schemas.ids import DocumentKey, digest, document_node_id, entity_id, entity_ids, id_key, link_keys, referenced_ids

Keys = NDArray[np.uint64]

MISSING = -1
N_CANDIDATES = 4
BLOCK = 16


def key_of(identifier: str) -> int:
    """The key of a node: the first 64 bits of its id of 32 hex digits. Raises ValueError for another id."""
    if len(identifier) != 32:
        raise ValueError(f"{identifier[:40]!r} is not a node id: an id has 32 hex digits.")
    return id_key(identifier)


def document_key_of(key: DocumentKey) -> int:
    return key_of(document_node_id(key))


def link_names_of(key: DocumentKey) -> tuple[int, int]:
    """The keys of the names by which links, and wiki links, find this document; pages of like names have the same."""
    path, name = (key_of(digest("link name", key.collection, each)) for each in link_keys(key.document_id))
    return path, name


def candidate_keys(collection: str, name: str) -> list[int]:
    """The keys of `referenced_ids`; 0 for none."""
    return [key_of(identifier) if identifier else 0 for identifier in referenced_ids(collection, name)]


def entity_key_of(collection: str, name: str) -> int:
    """`name` is a normalised name."""
    return key_of(entity_id(collection, name))


def entity_keys_of(collection: str, names: Iterable[str]) -> list[int]:
    """`entity_key_of` of many names."""
    keys: list[int] = halves(list(entity_ids(collection, names)))[:, 0].tolist()
    return keys


def halves(identifiers: pa.Array | Sequence[str]) -> Keys:
    """(n, 2) uint64: both halves of ids of 32 hex digits. Raises ValueError for another id."""
    digits = _joined_text(identifiers) if isinstance(identifiers, pa.Array) else "".join(identifiers)
    if len(digits) != 32 * len(identifiers):
        raise ValueError("Every node id has 32 hex digits.")
    return np.frombuffer(bytes.fromhex(digits), dtype=">u8").astype(np.uint64).reshape(-1, 2)


def _joined_text(texts: pa.Array) -> str:
    """All strings of an array as one, straight from its memory."""
    if not len(texts):
        return ""
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    content: bytes = texts.buffers()[2].to_pybytes()
    return content[int(offsets[0]) : int(offsets[-1])].decode("ascii")


class KeyIndex:
    """Unsorted keys, several of which may be equal, 16 bytes each. Immutable."""

    __slots__ = ("_order", "keys")

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self._order = np.argsort(keys, kind="stable")  # int64, as NumPy's search requires

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self._order.nbytes

    def find(self, wanted: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(index into `wanted`, position in the keys) of every key that is wanted."""
        first = np.searchsorted(self.keys, wanted, "left", sorter=self._order)
        counts = np.searchsorted(self.keys, wanted, "right", sorter=self._order) - first
        which = np.repeat(np.arange(len(wanted)), counts)
        within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return which, self._order[first[which] + within]


class Identifiers:
    """Unsorted 128-bit ids, 20.5 bytes each. Lookups are vectorised; unknown ids give MISSING."""

    def __init__(self, both_halves: Keys) -> None:
        """`both_halves` is (n, 2) uint64."""
        self.firsts = np.ascontiguousarray(both_halves[:, 0])
        self.seconds = np.ascontiguousarray(both_halves[:, 1])
        self._order = np.argsort(self.firsts).astype(np.int32)
        self._heads = self.firsts[self._order[::BLOCK]]  # NumPy's own search would copy the order into int64

    def __len__(self) -> int:
        return len(self.firsts)

    @property
    def nbytes(self) -> int:
        return self.firsts.nbytes + self.seconds.nbytes + self._order.nbytes + self._heads.nbytes

    def positions(self, keys: Keys) -> NDArray[np.int64]:
        """Of the ids with these first halves."""
        if not len(self):
            return np.full(len(keys), MISSING, dtype=np.int64)
        begins = np.maximum(self._heads.searchsorted(keys, "right") - 1, 0) * BLOCK
        block = self._order[np.minimum(begins[:, None] + np.arange(BLOCK), len(self) - 1)]
        found: NDArray[np.int64] = np.where(self.firsts[block] == keys[:, None], block, MISSING).max(axis=1)
        return found

    def positions_of(self, identifiers: Sequence[str]) -> NDArray[np.int64]:
        """Of these ids of 32 hex digits. Raises ValueError for another id."""
        wanted = halves(identifiers)
        found = self.positions(wanted[:, 0])
        wrong = (found != MISSING) & (self.seconds[found] != wanted[:, 1]) if len(self) else found != MISSING
        found[wrong] = MISSING
        return found

    def text(self, position: int) -> str:
        return f"{int(self.firsts[position]):016x}{int(self.seconds[position]):016x}"

    def texts(self, positions: NDArray[np.integer]) -> list[str]:
        digits = np.column_stack((self.firsts[positions], self.seconds[positions])).astype(">u8").tobytes().hex()
        return [digits[start : start + 32] for start in range(0, len(digits), 32)]


def find(keys: NDArray[Any], wanted: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Positions of `wanted` in `keys`, which ascend; MISSING for unknown ones."""
    if not len(keys) or not len(wanted):
        return np.full(len(wanted), MISSING, dtype=np.int64)
    wanted = wanted.astype(keys.dtype, copy=False)  # else NumPy copies all keys into the wider type
    positions = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
    return np.where(keys[positions] == wanted, positions, MISSING)
