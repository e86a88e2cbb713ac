"""How words are used, in edited prose and in one document: which capitals make a name, which only their place.

A word is known by its stem, so `Patches` is the common word that `patch` is.
"""

import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

import Stemmer

from indexer.extraction.lexicon import SENTENCE_STARTERS, STOP_WORDS

COMMON_WORDS_FILE = "common_words.txt"
SHORTEST_STRESSED = 6  # letters; shorter ones are often names in code
COMMON = 0.8  # of a word's occurrences in edited prose
_JOINED = re.compile(r"[^\W\d_][\d_]|[\d_][^\W\d_]|\w-[A-Z]")
MOSTLY = 0.9  # of a word's occurrences in a document
TECHNICAL = 0.01  # of the words
_INSIDE = re.compile(r"(?<=[a-z,;] )[^\W\d_]+(?![\w-])")
_CODE = re.compile(
    r"\w+_\w+|\w\(\)|\b[a-z]+[A-Z]\w*|\w\.\w+\(|::|\b[a-z]\w+\.[a-z]{2,}\b|\w=\S|(?<!\S)--?[a-z]|\S/\S+/\S|[{}<>]"
)
_WORD = re.compile(r"[^\W\d_]+")
_COMMON_ENDING = re.compile(r"[a-z](?:ing|ly|ed|ions?|ness|ments?|able|ive|ful|less|ous|ity)$")
_stemmer = Stemmer.Stemmer("english")
_stemming = threading.Lock()  # a stemmer serves one thread at a time


def stems_of(words: Iterable[str]) -> list[str]:
    """The stem of each word, in lower case."""
    with _stemming:
        stems: list[str] = _stemmer.stemWords([word.lower() for word in words])
    return stems


@cache
def lower_case_shares() -> Mapping[str, float]:
    """{stem: share of its occurrences inside sentences of edited prose that are in lower case}; words that are seldom
    in lower case are not there. See `training/count_word_use.py`."""
    lines = (files("indexer.extraction") / COMMON_WORDS_FILE).read_text("utf-8").splitlines()
    return {stem: int(share) / 100 for stem, share in map(str.split, lines)}


class WordUse:
    """How often one document has each word in lower case, and with a capital.

    `is_technical` is whether at least one word in a hundred looks like code, or a block of it is there.
    """

    def __init__(self, texts: Sequence[str], *, has_code: bool = False) -> None:
        counts = Counter(word for text in texts for word in _WORD.findall(text))
        self._lower = _by_stem({word: times for word, times in counts.items() if word.islower()})
        inside = Counter(word for text in texts for word in _INSIDE.findall(text))
        self._inside = _by_stem(inside)
        self._inside_lower = _by_stem({word: times for word, times in inside.items() if word.islower()})
        code = sum(len(_CODE.findall(text)) for text in texts)
        self.is_technical = has_code or code > TECHNICAL * counts.total()

    def may_be_common(self, surface: str) -> bool:
        """Whether what is named only where a line or a sentence begins is nothing but words that may be common: each
        is also in lower case here, in some form, or the only one has the ending of a common word."""
        words = _plain_words(surface)
        if len(words) == 1 and _COMMON_ENDING.search(words[0]):
            return True
        known = lower_case_shares() if self.is_technical else {}
        return bool(words) and all(self._lower[stem] or stem in known for stem in stems_of(words))

    def is_common(self, surface: str) -> bool:
        """Whether a name is nothing but common words: each is one in edited prose, or is mostly in lower case inside
        sentences here."""
        words = _plain_words(surface)
        return bool(words) and all(
            lower_case_shares().get(stem, 0.0) >= COMMON or self._inside_lower[stem] > MOSTLY * self._inside[stem]
            for stem in stems_of(words)
        )

    def times_in_lower_case(self, surface: str) -> int:
        """How often the least frequent of its words is in lower case."""
        return min((self._lower[stem] for stem in stems_of(_plain_words(surface))), default=0)


def _by_stem(counts: Mapping[str, int]) -> Counter[str]:
    of_stems: Counter[str] = Counter()
    for times, stem in zip(counts.values(), stems_of(counts), strict=True):
        of_stems[stem] += times
    return of_stems


def is_common_word(word: str) -> bool:
    """Whether edited prose has it mostly in lower case."""
    return word.lower() in STOP_WORDS or lower_case_shares().get(stems_of([word])[0], 0.0) >= COMMON


def _plain_words(surface: str) -> list[str]:
    """Its words but for those that may begin any sentence; none where one has capitals or digits inside, or is joined
    to another (`int8`, `Content-Type`), or without any capital. A long word of capitals alone is taken for stressed."""
    if surface.islower() or _JOINED.search(surface):
        return []
    if surface.isupper() and len(surface) >= SHORTEST_STRESSED:
        surface = surface.lower()
    words = [word for word in _WORD.findall(surface) if len(word) > 1 and word.lower() not in SENTENCE_STARTERS]
    return words if all(word[1:].islower() for word in words) else []
