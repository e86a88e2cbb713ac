"""The scorer of sentences: a forest of small decision trees (Breiman 2001, "Random Forests"), walked in numpy.

The weights are made by `training/train_answers.py`, which says on what.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import as_file, files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from query_api.answers.features import FEATURES
from query_api.answers.refusal import SIGNS

WEIGHTS_FILE = "answers.safetensors"
LEAF = -1


class Forest(NamedTuple):
    """Trees as flat arrays: of node i, a row goes to `left[i]` where its feature `feature[i]` is at most
    `threshold[i]`, else to `right[i]`; at a leaf, whose feature is -1, `values[i]` are the shares of the sentences that
    answer and that support an answer."""

    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    values: NDArray[np.float16]

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 2) for (n, n_features): how likely each sentence holds the answer, and is needed for it."""
        if not len(rows):
            return np.zeros((0, self.values.shape[1]))
        inputs = rows.astype(np.float32)
        nodes = np.tile(self.roots, (len(rows), 1))
        row = np.arange(len(rows))[:, None]
        while (inner := self.feature[nodes] != LEAF).any():
            goes_left = inputs[row, self.feature[nodes]] <= self.threshold[nodes]
            nodes = np.where(inner, np.where(goes_left, self.left[nodes], self.right[nodes]), nodes)
        means: NDArray[np.float64] = self.values[nodes].mean(axis=1, dtype=np.float64)
        return means


class AnswerWeights(NamedTuple):
    """The forest, and the regression that says whether anything answers: its intercept and the weights of SIGNS."""

    forest: Forest
    intercept: float
    signs: NDArray[np.float64]

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> "AnswerWeights":
        forest = Forest(*(arrays[name] for name in Forest._fields))
        return cls(forest, float(arrays["intercept"][0]), arrays["signs"].astype(np.float64))

    def answered(self, signs: NDArray[np.float64]) -> float:
        """How likely something that was found answers."""
        return float(1 / (1 + np.exp(-(self.intercept + signs @ self.signs))))


@cache
def packaged_weights() -> AnswerWeights:
    """Those that come with the program. Raises RuntimeError where they are of other features."""
    with as_file(files(__package__) / WEIGHTS_FILE) as path, safe_open(path, "numpy") as file:
        metadata = file.metadata()
        if metadata["features"].split() != list(FEATURES) or metadata["signs"].split() != list(SIGNS):
            raise RuntimeError(f"{WEIGHTS_FILE} was made for other features: run training/train_answers.py")
        return AnswerWeights.of({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 -- no dict
