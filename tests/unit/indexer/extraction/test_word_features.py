"""The words of a text and what they look like."""

import numpy as np

from indexer.extraction.word_features import FEATURES, own_start, word_features, words_of

TITLE_CASE, CAPITALS, INITIAL, LOWER = range(4)


def test_words_and_punctuation_marks_have_their_offsets() -> None:
    text = "J. Holt's snake_case (1990)"
    words = words_of(text)
    assert words.words == ["J", ".", "Holt", "'", "s", "snake_case", "(", "1990", ")"]
    assert [text[start:end] for start, end in zip(words.starts, words.ends, strict=True)] == words.words


def test_case_is_told_word_by_word() -> None:
    text = "Omsk IBM J river"
    features = word_features(text, words_of(text))
    assert features.shape == (4, FEATURES)
    np.testing.assert_array_equal(features[:, [TITLE_CASE, CAPITALS, INITIAL, LOWER]], np.eye(4))


def test_blanks_do_not_count() -> None:
    joined, apart = "Omsk. In Omsk (1990), rain", "Omsk . In Omsk ( 1990 ) , rain"
    features = word_features(joined, words_of(joined))
    np.testing.assert_array_equal(features[3:], word_features(apart, words_of(apart))[3:])


def test_a_text_begins_after_its_title() -> None:
    assert own_start("Heron Club. The club is old.") == len("Heron Club. ")
    assert own_start("Heron Club") == 0
    assert own_start(f"{'a' * 300}. b") == 0


def test_a_text_without_words_has_no_features() -> None:
    assert word_features(" \n", words_of(" \n")).shape == (0, FEATURES)
