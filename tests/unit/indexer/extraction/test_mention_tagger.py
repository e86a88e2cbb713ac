"""The head on token states: words, the search for labels, what is stored, and the packaged weights."""

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from indexer.embedding.backends import load_encoder
from indexer.embedding.encoder import PromptedEncoder, Prompts, TokenStates
from indexer.embedding.onnx_encoder import open_bert
from indexer.extraction.mention_tagger import (
    DILATIONS,
    NORM_EPSILON,
    MentionTagger,
    ScoredWords,
    best_labels,
    dequantised,
    labels_of,
    quantised,
    tagger_for,
    word_shares,
)
from indexer.extraction.word_features import FEATURES, word_features, words_of
from schemas.settings import EmbeddingSettings
from tests.unit.indexer.embedding.tiny_bert import write_model

WIDTH, HIDDEN, TYPES = 4, 8, ("person", "place")
LABELS = labels_of(TYPES)

Weights = dict[str, NDArray[np.float32]]


def random_weights(seed: int = 0, layers: int = 2) -> Weights:
    chance = np.random.default_rng(seed)

    def dense(name: str, taken: int, given: int) -> Weights:
        matrix, bias = chance.normal(size=(given, taken)), chance.normal(size=given)
        return {f"{name}.weight": matrix.astype(np.float32), f"{name}.bias": bias.astype(np.float32)}

    weights = dense("project", layers * WIDTH, HIDDEN) | dense("join", HIDDEN + FEATURES, HIDDEN)
    for number in range(len(DILATIONS)):
        weights |= dense(f"mix.{number}", 3 * HIDDEN, HIDDEN)
        weights |= {f"norm.{number}.weight": np.ones(HIDDEN, np.float32)}
        weights |= {f"norm.{number}.bias": np.zeros(HIDDEN, np.float32)}
    return weights | dense("label", HIDDEN, len(LABELS))


def states_of(text: str, layers: int = 2) -> TokenStates:
    """A token for each word, between two that stand for no character; other words have other states."""
    words = words_of(text)
    offsets = [(0, 0), *zip(words.starts.tolist(), words.ends.tolist(), strict=True), (0, 0)]
    chance = np.random.default_rng(len(text))
    return TokenStates([chance.normal(size=(len(offsets), WIDTH)).astype(np.float32) for _ in range(layers)], offsets)


def tagger(precision: str = "float32", seed: int = 0) -> MentionTagger:
    return MentionTagger(random_weights(seed), TYPES, "digest", 2, "int8" if precision == "int8" else "float32")


def gelu(value: NDArray[np.float64]) -> NDArray[np.float64]:
    from math import erf

    return value * (1 + np.vectorize(erf)(value / np.sqrt(2))) / 2


def plainly_scored(weights: Weights, text: str, states: TokenStates) -> NDArray[np.float64]:
    """What the graph computes, written plainly."""

    def dense(value: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        result: NDArray[np.float64] = value @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return result

    words = words_of(text)
    hidden = gelu(dense(np.concatenate([layer[1:-1] for layer in states.layers], axis=1), "project"))
    hidden = gelu(dense(np.concatenate([hidden, word_features(text, words)], axis=1), "join"))
    for number, distance in enumerate(DILATIONS):
        zeros = np.zeros((distance, HIDDEN))
        before = np.concatenate([zeros, hidden])[: len(hidden)]
        behind = np.concatenate([hidden, zeros])[distance:]
        mixed = hidden + gelu(dense(np.concatenate([before, hidden, behind], axis=1), f"mix.{number}"))
        centred = mixed - mixed.mean(axis=1, keepdims=True)
        hidden = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + NORM_EPSILON)
    logits = dense(hidden, "label")
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def test_the_graph_computes_what_is_written_plainly() -> None:
    text = "Anna Petrova lives in Omsk, a town on a river."
    (scored,) = tagger().score([text], [states_of(text)])
    assert scored.words.words == words_of(text).words
    np.testing.assert_allclose(scored.scores, plainly_scored(random_weights(), text, states_of(text)), atol=1e-4)


def test_a_word_has_the_mean_of_its_tokens() -> None:
    words = words_of("Omsk \x00 river")
    layer = np.array([[9.0], [1], [3], [5], [9]], dtype=np.float32)
    states = TokenStates([layer], [(0, 0), (0, 2), (2, 4), (7, 12), (0, 0)])
    np.testing.assert_array_equal(word_shares(words, states) @ layer, [[2], [0], [5]])  # the control has no token


def test_words_beyond_the_encoders_window_are_left_out() -> None:
    text = "Omsk river"
    whole = states_of(text)
    cut = TokenStates([layer[:2] for layer in whole.layers], whole.offsets[:2])
    assert tagger().score([text], [cut])[0].words.words == ["Omsk"]


@pytest.mark.parametrize(
    "states", [TokenStates((), ()), TokenStates([np.zeros((2, WIDTH), np.float32)] * 2, [(0, 0)] * 2)]
)
def test_a_text_without_words_has_no_spans(states: TokenStates) -> None:
    assert tagger().spans(tagger().score(["", " "], [states, states])) == [[], []]


def is_allowed(path: tuple[int, ...]) -> bool:
    return all(label % 2 or not label or before in (label - 1, label) for before, label in pairwise((0, *path)))


def test_the_best_labels_are_those_of_all_allowed_ones() -> None:
    chance = np.random.default_rng(3)
    texts = [chance.normal(size=(length, 5)).astype(np.float32) for length in (4, 1, 0, 3)]
    found = best_labels(texts, 2)
    for scores, path in zip(texts, found, strict=True):
        paths = [each for each in product(range(5), repeat=len(scores)) if is_allowed(each)]
        best = max(paths, key=lambda each: sum(scores[word, label] for word, label in enumerate(each)))
        assert tuple(path) == best


def test_spans_are_told_apart_where_they_touch() -> None:
    """B-person I-person B-person O B-place."""
    text = "Anna Petrova Holt in Omsk"
    certain = np.full((5, 5), np.log(0.025), dtype=np.float32)
    for word, label in enumerate((1, 2, 1, 0, 3)):
        certain[word, label] = np.log(0.9)
    (spans,) = tagger().spans([ScoredWords(words_of(text), certain)])
    assert [(text[span.start : span.end], span.entity_type) for span in spans] == [
        ("Anna Petrova", "person"),
        ("Holt", "person"),
        ("Omsk", "place"),
    ]
    assert {span.confidence for span in spans} == {0.925}


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_what_is_found_does_not_depend_on_the_neighbours(precision: str) -> None:
    texts = [f"{'Anna Petrova ' * count}lives in Omsk." for count in range(1, 9)]
    head = tagger(precision)
    together = head.spans(head.score(texts, list(map(states_of, texts))))
    assert any(together)
    assert together == [head.spans(head.score([text], [states_of(text)]))[0] for text in texts]


def test_weights_of_bytes_are_stored_and_read_as_they_are(tmp_path: Path) -> None:
    stored = quantised(random_weights())
    metadata = {"entity_types": ",".join(TYPES), "layers": "2", "encoder": "digest"}
    save_file(stored, tmp_path / "weights.safetensors", metadata)
    read = MentionTagger.read(tmp_path / "weights.safetensors", "float32")
    assert read.version == MentionTagger(dequantised(stored), TYPES, "digest", 2, "float32").version
    for name, array in random_weights().items():
        np.testing.assert_allclose(dequantised(stored)[name], array, atol=np.abs(array).max() / 254 + 1e-6)


def test_other_weights_are_another_version() -> None:
    assert len({tagger().version, tagger("int8").version, tagger(seed=1).version}) == 3


def test_an_encoder_of_another_model_has_no_tagger(tmp_path: Path) -> None:
    assert tagger_for(load_encoder(EmbeddingSettings(provider="hashing"))) is None
    assert tagger_for(PromptedEncoder(open_bert(str(write_model(tmp_path)), "onnx"))) is None


@pytest.mark.parametrize("provider", ["onnx-int8", "onnx"])
def test_the_packaged_weights_find_names_in_a_plain_text(provider: str) -> None:
    encoder = load_encoder(EmbeddingSettings.model_validate({"provider": provider}))
    head = tagger_for(encoder)
    assert head is not None
    texts = ["Trains. In March 1998 the engineer Peter Holt moved to Berlin and joined the Siberian Railway Company."]
    vectors, (spans,) = head.encode(encoder, texts)
    np.testing.assert_array_equal(vectors, encoder.encode(texts))
    found = {texts[0][span.start : span.end]: span.entity_type for span in spans}
    assert found["Peter Holt"] == "person"
    assert found["Berlin"] == "place"
    assert found["March 1998"] == "time"
    assert found["Siberian Railway Company"] == "organisation"


def test_prompts_and_shorter_vectors_do_not_change_what_is_found() -> None:
    plain = load_encoder(EmbeddingSettings(provider="onnx-int8"))
    model = open_bert("all-MiniLM-L6-v2", "onnx-int8")
    prompted = PromptedEncoder(model, Prompts(passage="passage: "), 128)
    head = tagger_for(prompted)
    assert head is tagger_for(plain)
    assert head is not None
    text = "Anna Petrova moved to Novosibirsk."
    _, (spans,) = head.encode(prompted, [text])
    assert [text[span.start : span.end] for span in spans] == ["Anna Petrova", "Novosibirsk"]


HOSTILE = [
    "", " \n\t", "\x00\x01", "…!?" * 500, "A" * 10_000, "Ann " * 5_000, "\ud800 Ann \u202e Ann", "a\u0301" * 300,
    "Аnn Ολγα 東京",
]  # fmt: skip


def test_hostile_texts_have_spans_within_them() -> None:
    encoder = load_encoder(EmbeddingSettings(provider="onnx-int8"))
    head = tagger_for(encoder)
    assert head is not None
    vectors, found = head.encode(encoder, HOSTILE)
    np.testing.assert_array_equal(vectors, encoder.encode(HOSTILE))
    assert any(found)
    for text, spans in zip(HOSTILE, found, strict=True):
        places = [place for span in spans for place in (span.start, span.end)]
        assert places == sorted(places)
        assert all(0 <= place <= len(text) for place in places)
        assert all(0 < span.confidence <= 1 for span in spans)
