"""The network in torch is the graph that is shipped, and training is the same each time."""

import numpy as np

from indexer.embedding.encoder import TokenStates
from indexer.extraction.mention_tagger import MentionTagger, dequantised, quantised
from indexer.extraction.word_features import word_features, words_of
from training.mention_data import UNKNOWN, Example
from training.mention_model import probabilities, train, weights_of

TYPES = ("person", "place")
LABELS, WIDTH, LAYERS = 5, 6, 2
TEXTS = ["Anna lives in Omsk.", "Peter Holt came from Tomsk, too, in 1998.", "No name is here.", "Omsk"]


def example(text: str) -> Example:
    """States that are the same for the same word; capital words are places, and the first of each text is unknown."""
    words = words_of(text).words
    states = [np.random.default_rng(sum(map(ord, word))).normal(size=LAYERS * WIDTH) for word in words]
    labels = np.array([3 if word[0].isupper() else 0 for word in words])
    labels[0] = UNKNOWN
    features = word_features(text, words_of(text)).astype(np.uint8)
    return Example(0, np.array(states, dtype=np.float16), features, labels)


def states_of(text: str) -> TokenStates:
    words = words_of(text)
    layers = np.split(example(text).states.astype(np.float32), LAYERS, axis=1)
    return TokenStates(layers, list(zip(words.starts.tolist(), words.ends.tolist(), strict=True)))


def test_the_shipped_graph_computes_what_was_trained() -> None:
    examples = [example(text) for text in TEXTS]
    network = train(examples, LABELS, epochs=3, dropout=0.1, seed=1)
    tagger = MentionTagger(weights_of(network), TYPES, "", LAYERS, "float32")
    scored = tagger.score(TEXTS, [states_of(text) for text in TEXTS])
    for found, expected in zip(scored, probabilities([network], examples), strict=True):
        np.testing.assert_allclose(np.exp(found.scores), expected, atol=1e-4)


def test_training_learns_and_is_the_same_each_time() -> None:
    examples = [example(text) for text in TEXTS]
    once, again = (train(examples, LABELS, epochs=20, dropout=0.1, seed=1) for _ in range(2))
    for name, array in weights_of(once).items():
        np.testing.assert_array_equal(array, weights_of(again)[name])
    tagger = MentionTagger(dequantised(quantised(weights_of(once))), TYPES, "", LAYERS, "int8")
    text = TEXTS[1]
    (spans,) = tagger.spans(tagger.score([text], [states_of(text)]))
    assert "Tomsk" in [text[span.start : span.end] for span in spans]


def test_a_teacher_is_followed_where_no_label_is() -> None:
    examples = [example(text) for text in TEXTS]
    for each in examples:
        each.labels = np.full(len(each.labels), UNKNOWN)
        each.teacher = np.tile(np.eye(LABELS, dtype=np.float32)[1], (len(each.labels), 1))
    network = train(examples, LABELS, epochs=20, dropout=0.1, seed=1)
    assert all((each.argmax(axis=1) == 1).all() for each in probabilities([network], examples))
