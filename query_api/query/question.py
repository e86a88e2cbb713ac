"""A question taken apart: its words, which of them carry weight, and the spans that may be names."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, Self

import Stemmer

from indexer.extraction.lexicon import STOP_WORDS
from schemas.ids import normalise_name

MAX_WORDS = 64  # of a question that are looked at for names and weights; the channels get the whole of it
MAX_NAME_WORDS = 12
MIN_SINGLE_WORD_LETTERS = 3
MIN_UNMARKED_WORDS = 3
KEPT_QUESTIONS = 256
KEPT_TEXTS = 8_192  # sentences; a search meets each of its parents' several times

_BRACKETS = str.maketrans("()[]{}", "      ")
_WORD = re.compile(r"[^\W_]+(?:['’.&+#/-][^\W_]+)*[+#]*")
_EDGES = " .-/&_"
_STEMMER_LANGUAGE = "english"


class Span(NamedTuple):
    """Words `first..last` (exclusive) of the question, and the normalised name they make.

    `marked` when it holds a capital or a digit, as names do.
    """

    first: int
    last: int
    name: str
    marked: bool


class Question:
    """Immutable once made. `stems` are the stems of the words that are no stop words, in order, each once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = tuple(match.group() for match in _WORD.finditer(text))[:MAX_WORDS]
        stemmer = Stemmer.Stemmer(_STEMMER_LANGUAGE)
        telling = [word.lower() for word in self.words if word.lower() not in STOP_WORDS]
        self.stems = tuple(dict.fromkeys(stemmer.stemWord(word) for word in telling))
        self.word_of_stem = {stemmer.stemWord(word): word for word in reversed(telling)}

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """Made at its first use: until then a search has begun to embed the question."""
        longest_first = sorted(self.stems, key=lambda stem: (-len(stem), stem))
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})") if longest_first else None

    @cached_property
    def normalised(self) -> str:
        return f" {normalise_text(self.text)} "

    def stems_in(self, text: str) -> frozenset[str]:
        """Which stems begin a word of the text."""
        return frozenset(self._pattern.findall(text.lower())) if self._pattern else frozenset()

    def names(self, name: str) -> bool:
        """Whether the question holds this normalised name as whole words."""
        return f" {name} " in self.normalised

    def spans(self) -> list[Span]:
        """Every run of words that may be a name, longest first, then left to right.

        A run counts when it holds a capital or a digit, or has three words and more; one of stop words alone when each
        has a capital, as in the name of the band For Against. A single word must be
        capitalised or hold a digit, be no stop word and have three letters. In a question without any capitals behind
        its first word, which says nothing about names, every word counts as capitalised.
        """
        cased = any(any(letter.isupper() for letter in word) for word in self.words[1:])
        marked = [not cased or not word.islower() or any(map(str.isdigit, word)) for word in self.words]
        telling = [word.lower() not in STOP_WORDS for word in self.words]
        capitals = [at > 0 and word[0].isupper() for at, word in enumerate(self.words)]
        bare = [normalise_text(word) for word in self.words]
        found = []
        for first in range(len(bare)):
            is_marked, tells, all_capitals = False, False, True
            for last in range(first + 1, min(first + MAX_NAME_WORDS, len(bare)) + 1):
                at, words = last - 1, last - first
                is_marked, tells, all_capitals = (
                    is_marked or marked[at],
                    tells or telling[at],
                    all_capitals and capitals[at],
                )
                said = tells or (words > 1 and all_capitals)
                if not said or (not is_marked and words < MIN_UNMARKED_WORDS):
                    continue
                name = " ".join(bare[first:last]).strip(_EDGES)
                if name and (words > 1 or len(name) >= MIN_SINGLE_WORD_LETTERS):
                    found.append(Span(first, last, name, is_marked))
        return sorted(found, key=lambda span: (span.first - span.last, span.first))


@lru_cache(KEPT_QUESTIONS)
def question_of(text: str) -> Question:
    """Made once for all who ask it: its pattern takes longer to make than to use."""
    return Question(text)


class WordWeights(NamedTuple):
    """How much each stem of a question tells."""

    idf: dict[str, float]
    total: float

    @classmethod
    def of(cls, question: Question, weights_of: Callable[[Sequence[str]], Sequence[float]]) -> Self:
        """By the idf of the collection; words that no text of it holds weigh nothing: no candidate can cover them."""
        weights = weights_of([question.word_of_stem[stem] for stem in question.stems])
        return cls(dict(zip(question.stems, weights, strict=True)), sum(weights))

    def share(self, stems: Iterable[str]) -> float:
        """The share of the question's weight that these stems carry, in [0, 1]."""
        return math.fsum(self.idf.get(stem, 0.0) for stem in stems) / self.total if self.total else 0.0


@lru_cache(KEPT_TEXTS)
def normalise_text(text: str) -> str:
    """A text normalised as names are, brackets opened rather than dropped: a name in it stands as whole words."""
    words = (word.strip(_EDGES) for word in normalise_name(text.translate(_BRACKETS)).split())
    return " ".join(word for word in words if word)
