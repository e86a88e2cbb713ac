"""The analyzer of the keyword channel: texts to index terms, for passages and queries.

Words are lower-cased, without accents, without stop words, and stemmed (Porter 2001, the English Snowball stemmer). A
compound such as `GraphView` or `utf8` counts as a whole and in its parts; a word with digits in several places, such as
a hash or a serial number, only as a whole. A term is the CRC-32 of its stem: two stems collide about once in four
thousand million pairs.
"""

import re
import threading
import unicodedata
import zlib
from collections.abc import Container, Iterator
from functools import lru_cache
from itertools import chain

import Stemmer

from indexer.extraction.lexicon import word_set

MAX_WORD_CHARACTERS = 64
CACHED_QUERIES = 256  # of at most some 100 kB each
CACHED_WORDS = 65_536

# an accent may be a combining character; letters are matched in runs, which takes two thirds of the time
_WORD = re.compile(r"[^\W_]+(?:(?:[\u0300-\u036f]|['’](?=[^\W_]))[^\W_]*)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_DIGITS = re.compile(r"\d+")
_POSSESSIVE = re.compile(r"'s$", re.IGNORECASE)
_STOP_WORDS = word_set(
    """a about an and are as at be been but by can did do does for from had has have he her his how i if in into is it
    its no not of on or our she so such that the their them then there these they this to was we were what when where
    which who whom whose why will with would you your"""
)
_STEMMER = Stemmer.Stemmer("english")
_STEMMING = threading.Lock()  # a stemmer serves one thread at a time


def terms_of(text: str) -> list[int]:
    """The terms of a text, in order and with repetitions; each in [0, 2³²)."""
    words = _WORD.findall(text)
    if max(map(len, words), default=0) > MAX_WORD_CHARACTERS:
        words = [word[:MAX_WORD_CHARACTERS] for word in words]
    return list(chain.from_iterable(map(_terms_of_word, words)))


def words_with_terms(
    text: str, start: int, end: int, wanted: Container[int]
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """(start, end, terms) of each word of `text[start:end]` with a wanted term, in characters of `text`."""
    for word in _WORD.finditer(text, start, end):
        terms = _terms_of_word(word[0][:MAX_WORD_CHARACTERS])
        for term in terms:
            if term in wanted:
                yield word.start(), word.end(), terms
                break


@lru_cache(CACHED_QUERIES)
def query_terms(text: str) -> tuple[int, ...]:
    """`terms_of`, cached."""
    return tuple(terms_of(text))


@lru_cache(CACHED_WORDS)
def _terms_of_word(word: str) -> tuple[int, ...]:
    plain = _POSSESSIVE.sub("", _plain(word))
    if plain.lower() in _STOP_WORDS:
        return ()
    parts = _PART.findall(plain) if plain.isascii() and len(_DIGITS.findall(plain)) <= 1 else []
    spelt = [plain, *parts] if len(parts) > 1 else [plain]
    with _STEMMING:
        stems = _STEMMER.stemWords([part.lower() for part in spelt if part])
    return tuple(zlib.crc32(stem.encode("utf-8", "replace")) for stem in stems)


def _plain(word: str) -> str:
    """Without accents, and with the ASCII apostrophe."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word.replace("’", "'"))
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))
