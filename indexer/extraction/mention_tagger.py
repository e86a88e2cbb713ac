"""Typed mentions from the encoder's own token states: a small head on states that are there whenever a text is encoded.

Of each word the mean of its tokens' states after some layers of the frozen encoder, and its features, pass a projection
and three dilated convolutions with residuals (after Strubell et al. 2017, "Fast and Accurate Entity Recognition with
Iterated Dilated Convolutions"), which give the logarithm of the probability of each label: O, and B and I of each type
(Ramshaw and Marcus 1995). The best sequence in which every I follows a B or I of its type is found by Viterbi.

The weights are those of one encoder; `training/train_mentions.py` makes them.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.resources import as_file, files
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
_ARITHMETIC = 2  # of what is not in the weights: words, features, layers, search
_SHARES_INPUT, _FEATURES_INPUT, _OUTPUT = "shares", "features", "scores"
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

    def score(self, texts: Sequence[str], states: Sequence[TokenStates]) -> list[ScoredWords]:
        """The words of each text that the encoder's window holds, with the probabilities of their labels."""
        words = [words_of(text) for text in texts]
        shares = [word_shares(each, its_states) for each, its_states in zip(words, states, strict=True)]
        features = [word_features(text, each) for text, each in zip(texts, words, strict=True)]
        return [self._score(*of_text) for of_text in zip(words, states, shares, features, strict=True)]

    def _score(
        self, words: Words, states: TokenStates, shares: NDArray[np.float32], features: NDArray[np.float32]
    ) -> ScoredWords:
        count = len(shares)
        if not count:
            return ScoredWords(Words((), words.starts[:0], words.ends[:0]), np.empty((0, 1), dtype=np.float32))
        inputs = {f"states.{layer}": array for layer, array in enumerate(states.layers)}
        inputs |= {_SHARES_INPUT: shares, _FEATURES_INPUT: features[:count]}
        scores: NDArray[np.float32] = self._session.run([_OUTPUT], inputs)[0]
        return ScoredWords(Words(words.words[:count], words.starts[:count], words.ends[:count]), scores)

    def spans(self, scored: Sequence[ScoredWords]) -> list[list[TaggedSpan]]:
        """The spans of each text, by their start."""
        found: list[list[TaggedSpan]] = [[] for _ in scored]
        texts = [number for number, each in enumerate(scored) if len(each.scores)]
        if not texts:
            return found
        paths = best_labels([scored[number].scores for number in texts], len(self.entity_types))
        path = np.concatenate(paths)  # all texts behind each other: none begins with an I, so no span crosses
        begins = np.flatnonzero(path % 2 == 1)
        if not begins.size:
            return found
        others = np.flatnonzero((path == 0) | (path % 2 == 1))
        ends = np.append(others, len(path))[np.searchsorted(others, begins, side="right")]
        confidences = _confidences(np.concatenate([scored[number].scores for number in texts]), path, begins, ends)
        text_of = np.repeat(texts, [len(each) for each in paths])
        starts = np.concatenate([scored[number].words.starts for number in texts])
        stops = np.concatenate([scored[number].words.ends for number in texts])
        columns = (text_of[begins], starts[begins], stops[ends - 1], path[begins] // 2, confidences)
        for text, start, end, kind, confidence in zip(*(column.tolist() for column in columns), strict=True):
            found[text].append(TaggedSpan(start, end, self.entity_types[kind], round(confidence, 3)))
        return found


def _confidences(
    scores: NDArray[np.float32], path: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The mean over each span's words of the probability of its type, B and I together; at most 1."""
    named = np.flatnonzero(path)
    first = (path[named] - 1) // 2 * 2 + 1
    of_type = np.zeros(len(path) + 1)
    of_type[named] = np.exp(scores[named, first].astype(np.float64)) + np.exp(scores[named, first + 1])
    sums = np.add.reduceat(of_type, np.stack([begins, ends], axis=1).ravel())[::2]
    means: NDArray[np.float64] = np.minimum(1, sums / (ends - begins))
    return means


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
    """A model from `states.<n>`, (n_tokens, width) each, `shares`, (n_words, n_tokens), and `features`, (n_words,
    FEATURES), to `scores`, (n_words, n_labels); all float32.

    Tokens are projected before the mean of each word's is taken, which is the same and moves less.
    """
    graph = GraphBuilder(weights, precision)
    states = [f"states.{layer}" for layer in range(layers)]
    hidden = graph.node("Concat", *states, axis=1)
    hidden = graph.node("MatMul", _SHARES_INPUT, graph.named_dense(hidden, "project"))
    hidden = graph.node("Gelu", hidden)
    hidden = graph.node("Concat", hidden, _FEATURES_INPUT, axis=1)
    hidden = graph.node("Gelu", graph.named_dense(hidden, "join"))
    for number, distance in enumerate(DILATIONS):
        mixed = graph.node("Gelu", graph.convolution(hidden, f"mix.{number}", distance))
        hidden = graph.norm(graph.node("Add", hidden, mixed), f"norm.{number}", NORM_EPSILON)
    graph.node("LogSoftmax", graph.named_dense(hidden, "label"), output=_OUTPUT, axis=-1)
    width = weights["project.weight"].shape[1] // layers
    inputs: dict[str, tuple[DTypeLike, Shape]] = dict.fromkeys(states, (np.float32, ("n_tokens", width)))
    inputs[_SHARES_INPUT] = (np.float32, ("n_words", "n_tokens"))
    inputs[_FEATURES_INPUT] = (np.float32, ("n_words", FEATURES))
    return graph.model("mention tagger", inputs, {_OUTPUT: ("n_words", len(weights["label.bias"]))})


def word_shares(words: Words, states: TokenStates) -> NDArray[np.float32]:
    """(n_words, n_tokens) by which a product with the tokens' states gives each word the mean of those of its tokens;
    of the words up to the last one that has a token. A word without one, such as a control character, has zeros."""
    tokens, word_of = _tokens_of(words, states)
    if not tokens.size:
        return np.empty((0, len(states.offsets)), dtype=np.float32)
    counts = np.bincount(word_of)
    shares = np.zeros((len(counts), len(states.offsets)), dtype=np.float32)
    shares[word_of, tokens] = 1 / counts[word_of]
    return shares


def _tokens_of(words: Words, states: TokenStates) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The tokens that stand for characters of the text, and the word of each."""
    if not words.words or not states.layers:
        nothing = np.empty(0, dtype=np.int64)
        return nothing, nothing
    offsets = np.array(states.offsets, dtype=np.int64)
    tokens = np.flatnonzero((offsets[:, 1] > offsets[:, 0]) & (offsets[:, 0] >= 0))
    return tokens, np.searchsorted(words.starts, offsets[tokens, 0], side="right") - 1


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
