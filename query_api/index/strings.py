"""Strings in an Arrow array, read one by one: a few rows cost a fraction of Arrow's own `take`."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class Strings:
    """One Arrow array of strings without nulls. Immutable; thread-safe."""

    def __init__(self, array: pa.Array) -> None:
        """Raises ValueError for an array of another type, or with nulls."""
        if array.type not in (pa.string(), pa.large_string()) or array.null_count:
            raise ValueError(f"An array of strings without nulls is read here, not {array.null_count} of {array.type}.")
        self.array = array
        _, offsets, content = array.buffers()
        width = np.int32 if array.type == pa.string() else np.int64
        numbers = np.zeros(1, dtype=width) if offsets is None else np.frombuffer(offsets, dtype=width)
        self._offsets: NDArray[Any] = numbers[array.offset : array.offset + len(array) + 1]
        self._content = memoryview(b"" if content is None else content)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, row: int) -> str:
        return str(self._content[self._offsets[row] : self._offsets[row + 1]], "utf-8")

    @property
    def nbytes(self) -> int:
        return int(self.array.nbytes)

    def of(self, rows: NDArray[np.integer]) -> list[str]:
        bounds = zip(self._offsets[rows].tolist(), self._offsets[rows + 1].tolist(), strict=True)
        return [str(self._content[start:end], "utf-8") for start, end in bounds]


class StringLists:
    """One Arrow array of lists of strings without nulls. Immutable; thread-safe."""

    def __init__(self, array: pa.Array) -> None:
        self._starts = array.offsets.to_numpy()
        self._strings = Strings(array.values)

    @property
    def nbytes(self) -> int:
        return int(self._starts.nbytes) + self._strings.nbytes

    def of(self, rows: NDArray[np.integer]) -> list[list[str]]:
        """Each a new list."""
        bounds = zip(self._starts[rows].tolist(), self._starts[rows + 1].tolist(), strict=True)
        return [[self._strings[at] for at in range(start, end)] for start, end in bounds]


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, however much it holds."""
    if column.num_chunks > 1 and column.type == pa.string():
        column = column.cast(pa.large_string())
    return column.combine_chunks()
