"""Typed mentions from the encoder's own token states: a small head on states that are there whenever a text is encoded.

Of each word the mean of its tokens' states after some layers of the frozen encoder, and its features, pass a projection
and three dilated convolutions with residuals (after Strubell et al. 2017, "Fast and Accurate Entity Recognition with
Iterated Dilated Convolutions"), which give the logarithm of the probability of each label: O, and B and I of each type
(Ramshaw and Marcus 1995). The best sequence in which every I follows a B or I of its type is found by Viterbi.

The weights are those of one encoder; `training/train_mentions.py` makes them.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
from numpy.typing import DTypeLike, NDArray
from safetensors import safe_open

from indexer.embedding.encoder import PromptedEncoder, TokenStates
from indexer.embedding.onnx_encoder import single_threaded
from indexer.embedding.onnx_graph import GraphBuilder, Precision, Shape, Weights
from indexer.extraction.word_features import FEATURES, Words, word_features, words_of

WEIGHTS_FILE = "mention_tagger.safetensors"
DILATIONS = (1, 2, 4)
NORM_EPSILON = 1e-5
STEPS = ".steps"  # behind the name of a matrix of bytes: the step of each of its rows
_ARITHMETIC = 1  # of what is not in the weights: words, features, layers, search
_FEATURES_INPUT, _OUTPUT = "features", "scores"
_IMPOSSIBLE = np.float32(-1e9)


class TaggedSpan(NamedTuple):
    """`text[start:end]` names an entity of a type. `confidence` is the mean probability of the type over its words."""

    start: int
    end: int
    entity_type: str
    confidence: float


class ScoredWords(NamedTuple):
    """The words of a text, and for each the logarithms of its labels' probabilities: (n_words, n_labels) float32."""

    words: Words
    scores: NDArray[np.float32]


class MentionTagger:
    """The head of one encoder. Safe to call from several threads. What it finds in a text is a pure function of the
    text and its states: each text is a run of its own."""

    def __init__(
        self, weights: Weights, entity_types: Sequence[str], encoder_digest: str, layers: int, precision: Precision
    ) -> None:
        """`entity_types` in the order of the labels, see `labels_of`. `layers` is the number of the encoder's layers
        whose states it reads."""
        self.entity_types = tuple(entity_types)
        self.encoder_digest = encoder_digest
        graph = tagger_graph(weights, layers, precision)
        self._session = onnxruntime.InferenceSession(graph.SerializeToString(), single_threaded())
        state = hashlib.sha256(json.dumps([_ARITHMETIC, precision, *self.entity_types, FEATURES]).encode())
        for name in sorted(weights):
            state.update(weights[name].tobytes())
        self.version = f"mentions-{state.hexdigest()[:12]}"

    @classmethod
    def read(cls, path: Path, precision: Precision) -> "MentionTagger":
        """From a file of `training/train_mentions.py`."""
        with safe_open(path, "numpy") as file:
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 -- no dict
            metadata = file.metadata()
        types = metadata["entity_types"].split(",")
        return cls(dequantised(stored), types, metadata["encoder"], int(metadata["layers"]), precision)

    def encode(
        self, encoder: PromptedEncoder, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[list[TaggedSpan]]]:
        """The vectors of `encoder.encode`, and the spans of each text, in one run of the encoder."""
        vectors, scored = encoder.encode_tokens(texts, self.score)
        return vectors, self.spans(scored)

    def score(self, text: str, states: TokenStates) -> ScoredWords:
        """The words of a text that the encoder's window holds, with the probabilities of their labels."""
        words = words_of(text)
        pooled = word_states(words, states)
        count = len(pooled[0]) if pooled else 0
        if not count:
            return ScoredWords(Words((), words.starts[:0], words.ends[:0]), np.empty((0, 1), dtype=np.float32))
        inputs = {f"states.{layer}": array for layer, array in enumerate(pooled)}
        inputs[_FEATURES_INPUT] = word_features(text, words)[:count]
        scores: NDArray[np.float32] = self._session.run([_OUTPUT], inputs)[0]
        return ScoredWords(Words(words.words[:count], words.starts[:count], words.ends[:count]), scores)

    def spans(self, scored: Sequence[ScoredWords]) -> list[list[TaggedSpan]]:
        """The spans of each text, by their start."""
        paths = best_labels([each.scores for each in scored], len(self.entity_types))
        return [list(self._spans_of(each, path)) for each, path in zip(scored, paths, strict=True)]

    def _spans_of(self, scored: ScoredWords, path: NDArray[np.int64]) -> Iterable[TaggedSpan]:
        begins = np.flatnonzero(path % 2 == 1).tolist()
        for begin, following in pairwise([*begins, len(path)]):
            label = int(path[begin])
            end = begin + 1
            while end < following and path[end] == label + 1:
                end += 1
            of_type = np.exp(scored.scores[begin:end, label : label + 2]).sum(axis=1)
            yield TaggedSpan(
                int(scored.words.starts[begin]),
                int(scored.words.ends[end - 1]),
                self.entity_types[label // 2],
                min(1.0, round(float(of_type.mean()), 3)),
            )


Tag = Callable[[Sequence[str]], tuple[NDArray[np.float32], list[list[TaggedSpan]]]]
"""Texts → their vectors, and the spans of each."""


def tag_with(encoder: PromptedEncoder) -> Tag | None:
    """As `MentionTagger.encode`; None where the encoder has no tagger."""
    tagger = tagger_for(encoder)
    return None if tagger is None else partial(tagger.encode, encoder)


def tagger_for(encoder: PromptedEncoder) -> MentionTagger | None:
    """The packaged head, where the encoder is the one it was trained on and gives its token states."""
    if not encoder.has_token_states:
        return None
    tagger = _packaged("int8" if encoder.provider == "onnx-int8" else "float32")
    return tagger if encoder.digest.startswith(tagger.encoder_digest) else None


@cache
def _packaged(precision: Precision) -> MentionTagger:
    with as_file(files("indexer.extraction") / WEIGHTS_FILE) as path:
        return MentionTagger.read(path, precision)


def labels_of(entity_types: Sequence[str]) -> list[str]:
    """O, then B and I of each type: the label of B of type t is 2t + 1."""
    return ["O", *(f"{part}-{kind}" for kind in entity_types for part in "BI")]


def tagger_graph(weights: Weights, layers: int, precision: Precision) -> onnx.ModelProto:
    """A model from `states.<n>`, (n_words, width) float32 each, and `features`, (n_words, FEATURES) float32, to
    `scores`, (n_words, n_labels) float32."""
    graph = GraphBuilder(weights, precision)
    states = [f"states.{layer}" for layer in range(layers)]
    hidden = graph.node("Concat", *states, axis=1)
    hidden = graph.node("Gelu", graph.named_dense(hidden, "project"))
    hidden = graph.node("Concat", hidden, _FEATURES_INPUT, axis=1)
    hidden = graph.node("Gelu", graph.named_dense(hidden, "join"))
    for number, distance in enumerate(DILATIONS):
        mixed = graph.node("Gelu", graph.named_dense(graph.shifted(hidden, distance), f"mix.{number}"))
        hidden = graph.norm(graph.node("Add", hidden, mixed), f"norm.{number}", NORM_EPSILON)
    graph.node("LogSoftmax", graph.named_dense(hidden, "label"), output=_OUTPUT, axis=-1)
    width = weights["project.weight"].shape[1] // layers
    inputs: dict[str, tuple[DTypeLike, Shape]] = dict.fromkeys(states, (np.float32, ("n_words", width)))
    inputs[_FEATURES_INPUT] = (np.float32, ("n_words", FEATURES))
    return graph.model("mention tagger", inputs, {_OUTPUT: ("n_words", len(weights["label.bias"]))})


def word_states(words: Words, states: TokenStates) -> list[NDArray[np.float32]]:
    """Of each layer the mean state of each word's tokens, (n_words, width) float32, of the words up to the last one
    that has a token; none where there is none."""
    if not words.words or not states.layers:
        return []
    offsets = np.array(states.offsets, dtype=np.int64)
    tokens = np.flatnonzero((offsets[:, 1] > offsets[:, 0]) & (offsets[:, 0] >= 0))
    word_of = np.searchsorted(words.starts, offsets[tokens, 0], side="right") - 1
    if not tokens.size:
        return []
    firsts = np.flatnonzero(np.diff(word_of, prepend=-1))
    counts = np.diff(firsts, append=len(tokens)).astype(np.float32)[:, np.newaxis]
    pooled: list[NDArray[np.float32]] = []
    for layer in states.layers:
        means = (np.add.reduceat(layer[tokens], firsts, axis=0) / counts).astype(np.float32, copy=False)
        if len(firsts) <= word_of[-1]:  # words without a token, such as control characters
            filled = np.zeros((int(word_of[-1]) + 1, layer.shape[1]), dtype=np.float32)
            filled[word_of[firsts]] = means
            means = filled
        pooled.append(means)
    return pooled


def best_labels(scores: Sequence[NDArray[np.float32]], types: int) -> list[NDArray[np.int64]]:
    """For each text the labels of its words, (n_words,), with the highest sum of scores, such that each I follows a B
    or I of its type (Viterbi 1967). All texts advance together, a word a step; no text changes another's numbers."""
    longest = max((len(each) for each in scores), default=0)
    if not longest:
        return [np.empty(0, dtype=np.int64) for _ in scores]
    labels = 2 * types + 1
    padded = np.full((longest, len(scores), labels), _IMPOSSIBLE, dtype=np.float32)
    padded[:, :, 0] = 0  # behind its end a text is O
    for text, each in enumerate(scores):
        padded[: len(each), text] = each
    before = np.zeros((longest, len(scores), labels), dtype=np.int64)
    reached = padded[0].copy()
    reached[:, 2::2] = _IMPOSSIBLE
    inside = np.arange(types) * 2
    for word in range(1, longest):
        of_type = reached[:, 1:].reshape(len(scores), types, 2)
        chosen = of_type.argmax(axis=2)
        before[word] = reached.argmax(axis=1)[:, np.newaxis]
        before[word, :, 2::2] = inside + 1 + chosen
        best = np.repeat(reached.max(axis=1)[:, np.newaxis], labels, axis=1)
        best[:, 2::2] = of_type.max(axis=2)
        reached = best + padded[word]
    path = np.empty((longest, len(scores)), dtype=np.int64)
    path[-1] = reached.argmax(axis=1)
    texts = np.arange(len(scores))
    for word in range(longest - 1, 0, -1):
        path[word - 1] = before[word, texts, path[word]]
    return [path[: len(each), text] for text, each in enumerate(scores)]


def quantised(weights: Weights) -> dict[str, NDArray[np.generic]]:
    """As they are stored: matrices as bytes with a step for each row, all else as it is."""
    stored: dict[str, NDArray[np.generic]] = {}
    for name, array in weights.items():
        if array.ndim == 2:
            steps = (np.abs(array).max(axis=1) / 127).clip(min=np.finfo(np.float32).tiny).astype(np.float32)
            stored[name] = np.rint(array / steps[:, np.newaxis]).astype(np.int8)
            stored[name + STEPS] = steps
        else:
            stored[name] = array.astype(np.float32)
    return stored


def dequantised(stored: dict[str, NDArray[np.generic]]) -> dict[str, NDArray[np.float32]]:
    """What `quantised` stored, as float32."""
    weights: dict[str, NDArray[np.float32]] = {}
    for name, array in stored.items():
        if not name.endswith(STEPS):
            weights[name] = array.astype(np.float32)
            if name + STEPS in stored:
                weights[name] *= stored[name + STEPS].astype(np.float32)[:, np.newaxis]
    return weights
