"""Columns of texts: few different ones as numbers, many as they are, and very many compressed in blocks."""

import threading
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zstandard
from numpy.typing import NDArray

from indexer.read.strings import Strings
from query_api.graph.arrays.packed import Packed

LEAST_COMPRESSED = 4_096  # texts; fewer take little anyway, and newest documents should not wait for a dictionary
BLOCK_BITS = 5
BLOCK = 1 << BLOCK_BITS  # texts compressed together, so read together
KEPT_BLOCKS = 32  # of the last ones that a thread has read
BETWEEN = b"\xff"  # stands in no UTF-8
LEVEL = 3
MOST_SAMPLES = 2_048
DICTIONARY_SHARE = 64  # the dictionary takes this part of what the texts do
MOST_DICTIONARY_BYTES = 112 * 1024


@dataclass(frozen=True, slots=True)
class Codes:
    """A column of few different strings, each row a number in as many bits as they are many."""

    values: tuple[str, ...]
    codes: Packed

    @classmethod
    def build(cls, texts: pa.Array, order: NDArray[np.int64]) -> "Codes":
        """The texts of these rows, in this order."""
        encoded = pc.dictionary_encode(texts)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return cls(tuple(encoded.dictionary.to_pylist()), Packed(codes[order]))

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes

    def __getitem__(self, position: int) -> str:
        return self.values[self.codes[position]]

    def of(self, rows: NDArray[np.integer]) -> list[str]:
        if len(self.values) == 1:
            return [self.values[0]] * len(rows)
        return [self.values[code] for code in self.codes.at(rows).tolist()]

    def texts(self, rows: NDArray[np.integer]) -> pa.Array:
        codes = pa.array(self.codes.at(rows).astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, pa.array(self.values, pa.string())).cast(pa.string())


class Plain(Strings):
    """Texts as they are."""

    def texts(self, rows: NDArray[np.integer]) -> pa.Array:
        """The texts of these rows, as an array."""
        return self.array.take(pa.array(rows))


class Compressed:
    """Texts in blocks of 32, each compressed by itself with a dictionary learnt from all of them (zstd: RFC 8878).

    A text is read with its block, in a few microseconds. Immutable; safe to use from several threads.
    """

    def __init__(self, array: pa.Array) -> None:
        """Raises zstandard.ZstdError for too few texts, or such as have nothing in common."""
        blocks = _blocks(array)
        size = min(sum(map(len, blocks)) // DICTIONARY_SHARE, MOST_DICTIONARY_BYTES)
        samples: list[bytes | bytearray | memoryview] = [*blocks[:: -(-len(blocks) // MOST_SAMPLES)]]
        self._dictionary = zstandard.train_dictionary(size, samples, level=LEVEL)
        compressor = zstandard.ZstdCompressor(level=LEVEL, dict_data=self._dictionary, write_dict_id=False)
        compressed = [compressor.compress(block) for block in blocks]
        self._content = memoryview(b"".join(compressed))
        begins = np.zeros(len(blocks) + 1, dtype=np.int64 if len(self._content) >= 1 << 32 else np.uint32)
        np.cumsum([len(block) for block in compressed], out=begins[1:])
        self._begins = begins.data
        self._length = len(array)
        self._of_thread = _OfThread(self._dictionary)

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        return len(self._content) + self._begins.nbytes + len(self._dictionary)

    def __getitem__(self, row: int) -> str:
        """Counted from the first row."""
        return str(self._block(row >> BLOCK_BITS)[row & (BLOCK - 1)], "utf-8")

    def of(self, rows: NDArray[np.integer]) -> list[str]:
        """The texts of these rows."""
        return [str(self._block(row >> BLOCK_BITS)[row & (BLOCK - 1)], "utf-8") for row in rows.tolist()]

    def texts(self, rows: NDArray[np.integer]) -> pa.Array:
        """The texts of these rows, as an array."""
        every = [text for number in range(len(self._begins) - 1) for text in self._block(number)]
        return pa.array(every, pa.binary()).take(pa.array(rows)).cast(pa.string())

    def _block(self, number: int) -> list[bytes]:
        kept = self._of_thread.kept
        block = kept.get(number)
        if block is None:
            content = self._content[self._begins[number] : self._begins[number + 1]]
            block = self._of_thread.decompressor.decompress(content).split(BETWEEN)
            if len(kept) >= KEPT_BLOCKS:
                del kept[next(iter(kept))]
            kept[number] = block
        return block


class _OfThread(threading.local):
    """What each thread has to itself: a decompressor, which serves one at a time, and the blocks it read last."""

    def __init__(self, dictionary: zstandard.ZstdCompressionDict) -> None:
        self.decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)
        self.kept: dict[int, list[bytes]] = {}


Texts = Plain | Compressed


def texts_of(array: pa.Array) -> Texts:
    """The texts of an array of strings without nulls, compressed where that is worth it."""
    if len(array) >= LEAST_COMPRESSED:
        try:
            compressed = Compressed(array)
        except zstandard.ZstdError:
            return Plain(array)
        if compressed.nbytes < array.nbytes:
            return compressed
    return Plain(array)


def _blocks(array: pa.Array) -> list[bytes]:
    begins = np.append(np.arange(0, len(array), BLOCK, dtype=np.int32), np.int32(len(array)))
    lists = pa.ListArray.from_arrays(pa.array(begins), array.cast(pa.binary()))
    blocks: list[bytes] = pc.binary_join(lists, BETWEEN).to_pylist()
    return blocks
