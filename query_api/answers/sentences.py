"""The sentences that an answer is chosen from: those of the first hits' passages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from indexer.chunking.sentences import sentence_spans
from indexer.read.rows import PassageRow
from indexer.text_analysis import words_with_terms
from query_api.query.analysis import normalise_text
from schemas.hits import Hit
from schemas.ids import DocumentKey

HITS = 5  # whose sentences are looked at
MOST_SENTENCES = 100  # of all of them
LEAST_LETTERS = 3


class TermIdf(NamedTuple):
    """The idf of each term of a question; of one that the collection does not hold it is `unknown`, that of a document
    frequency of 0, which grows as the logarithm of the number of passages."""

    idf: Mapping[int, float]
    unknown: float


class Texts(NamedTuple):
    """What is asked of a collection's texts: the first passage of a document, and how many documents, of some that are
    looked at, have a sentence word for word."""

    first_passage: Callable[[DocumentKey], PassageRow | None]
    repeats: Callable[[str], int]


NO_TEXTS = Texts(lambda _: None, lambda _: 0)


class Sentence(NamedTuple):
    """`text` is `parent_text[start:end]` of the hit number `hit`, from 0, and its sentence number `place`, from 0;
    `terms` are those of the question that it holds."""

    hit: int
    place: int
    start: int
    end: int
    text: str
    terms: frozenset[int]

    @property
    def words(self) -> int:
        return len(self.text.split())

    @property
    def normalised(self) -> str:
        return f" {normalise_text(self.text)} "


def terms_in(text: str, start: int, end: int, idf: Mapping[int, float]) -> frozenset[int]:
    """The terms of the question that `text[start:end]` holds."""
    return frozenset(term for _, _, terms in words_with_terms(text, start, end, idf) for term in terms if term in idf)


def sentences_of_hits(hits: Sequence[Hit], idf: Mapping[int, float], most_words: int) -> list[Sentence]:
    """Those of the first hits in their order, each text once. `idf` has the question's terms; a sentence of more than
    `most_words` is cut after them, between two words."""
    found: list[Sentence] = []
    known: set[str] = set()
    for number, hit in enumerate(hits[:HITS]):
        for sentence in _sentences(number, hit.parent_text, idf, most_words):
            key = " ".join(sentence.text.casefold().split())
            if key not in known and len(found) < MOST_SENTENCES:
                known.add(key)
                found.append(sentence)
    return found


def _sentences(hit: int, passage: str, idf: Mapping[int, float], most_words: int) -> Iterator[Sentence]:
    spans = [(start, end) for start, end in sentence_spans(passage) if _says_something(passage[start:end])]
    for place, (start, whole_end) in enumerate(spans):
        end = _end_of_words(passage, start, whole_end, most_words)
        yield Sentence(hit, place, start, end, passage[start:end], terms_in(passage, start, end, idf))


def _says_something(text: str) -> bool:
    """Whether it has letters enough: a rule or a number alone is no sentence."""
    return sum(map(str.isalpha, text)) >= LEAST_LETTERS


def _end_of_words(text: str, start: int, end: int, most: int) -> int:
    """Where the first `most` words of `text[start:end]` end."""
    words = text[start:end].split(None, most)
    if len(words) <= most:
        return end
    return start + len(text[start : end - len(words[-1])].rstrip())
