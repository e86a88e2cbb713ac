"""The words of a text and what each looks like: the input of the mention tagger beside the encoder's token states.

The encoder is uncased, so case is known from here alone. No feature depends on blanks: `(1990)` and `( 1990 )`, as
tokenised training data have it, are the same.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.extraction.lexicon import (
    CLOSING_NOUNS,
    CONNECTORS,
    DAYS,
    GIVEN_NAMES,
    HONORIFICS,
    MONTHS,
    ORGANISATION_WORDS,
    PARTICLES,
    PLACE_WORDS,
    SENTENCE_STARTERS,
    STOP_WORDS,
    WORK_WORDS,
)

CACHED_WORDS = 65_536
_WORD = re.compile(r"\w+|[^\w\s]")
_AFTER_TITLE = ". "
_LONGEST_TITLE = 240
_SENTENCE_ENDS = frozenset(".!?")
_PUNCTUATION = (".", ",", "-–—", "()[]", "\"'“”‘’`", "&", ":;", "/")
_LISTS = (
    MONTHS,
    DAYS,
    GIVEN_NAMES,
    HONORIFICS,
    ORGANISATION_WORDS,
    PLACE_WORDS,
    WORK_WORDS | CLOSING_NOUNS,
    STOP_WORDS,
    SENTENCE_STARTERS,
    CONNECTORS,
    PARTICLES,
)
_OWN = 11 + len(_PUNCTUATION) + len(_LISTS)  # of the word itself
FEATURES = _OWN + 6


class Words(NamedTuple):
    """The words and punctuation marks of a text, with their offsets in it."""

    words: Sequence[str]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def words_of(text: str) -> Words:
    matches = list(_WORD.finditer(text))
    spans = np.array([match.span() for match in matches], dtype=np.int64).reshape(-1, 2)
    return Words([match[0] for match in matches], spans[:, 0], spans[:, 1])


def own_start(text: str) -> int:
    """Where a text that is embedded as `<title>. <text>` begins after its title; 0 where it has none in front."""
    at = text.find(_AFTER_TITLE, 0, _LONGEST_TITLE)
    return at + len(_AFTER_TITLE) if at >= 0 else 0


def word_features(text: str, words: Words) -> NDArray[np.float32]:
    """(n_words, FEATURES) of 0 and 1; a pure function of the text."""
    features = np.zeros((len(words.words), FEATURES), dtype=np.float32)
    if not words.words:
        return features
    own = np.frombuffer(b"".join(map(_features_of, words.words)), dtype=np.uint8)
    features[:, :_OWN] = own.reshape(len(words.words), _OWN)
    features[_beginnings(text, words), _OWN] = 1
    after_title = own_start(text)
    features[words.starts == after_title, _OWN] = 1
    lowered = [word.lower() for word in words.words]
    prefix = int(np.searchsorted(words.starts, after_title))
    if prefix:
        features[:prefix, _OWN + 1] = 1
        of_title = {word for word in lowered[:prefix] if word.isalnum()} - STOP_WORDS
        features[:, _OWN + 2] = [word in of_title for word in lowered]
    in_lower_case = {word for word in words.words if word.islower()}
    features[:, _OWN + 3] = [
        word in in_lower_case and spelt not in in_lower_case for word, spelt in zip(lowered, words.words, strict=True)
    ]
    features[0, _OWN + 4] = features[-1, _OWN + 5] = 1
    return features


def _beginnings(text: str, words: Words) -> list[int]:
    """The words that begin the text, a line, or a sentence, as far as a mark before them shows."""
    last = len(words.words) - 1
    found = [0, *(at + 1 for at, word in enumerate(words.words) if word in _SENTENCE_ENDS and at < last)]
    if "\n" in text:
        lines = [at for at, character in enumerate(text) if character == "\n"]
        found += [at for at in np.searchsorted(words.starts, lines).tolist() if at <= last]
    return found


@lru_cache(CACHED_WORDS)
def _features_of(word: str) -> bytes:
    """A byte for each feature of the word itself."""
    lowered = word.lower()
    initial = word[0]
    letters = word.isalpha()
    features = (
        initial.isupper() and word[1:].islower(),  # case
        word.isupper() and len(word) > 1 and letters,
        initial.isupper() and len(word) == 1,
        word.islower() and letters,
        letters and not word.islower() and not word.isupper() and not word[1:].islower(),
        initial.isupper(),
        word.isdigit(),
        word.isdigit() and len(word) == 4,
        word.isdigit() and len(word) <= 2,
        not letters and not word.isdigit() and word.isalnum(),
        "_" in word,
        *(word in marks for marks in _PUNCTUATION),
        *(lowered in words for words in _LISTS),
    )
    return bytes(features)
