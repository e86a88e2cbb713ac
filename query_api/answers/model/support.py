"""Whether sentences of the hits say what a language model wrote: an overlap of words, without any model.

It cannot tell who did what to whom among the same words. What it makes sure of is that nothing is named, counted,
denied or linked that is not in the sources.
"""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple, Self

from indexer.extraction.lexicon import SENTENCE_STARTERS
from indexer.text_analysis import terms_of
from query_api.answers.features import AskedFor
from query_api.answers.sentences import Sentence, sentences_of_hits
from schemas.answers import MOST_WORDS
from schemas.hits import Hit

OWN_WORDS = 0.25  # of a sentence's content words, which may be the model's: a verb in another word
MOST_SPANS = 3  # sentences that together support one

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_DENIES = re.compile(
    r"\b(?:not|never|neither|nor|none|nobody|nothing|without|cannot|no(?!\.))\b|n['’]t\b", re.IGNORECASE
)
_MARKUP = re.compile(r"\]\(|\]\[|\]:|!\[|<[A-Za-z/!?]")
_ADDRESS = re.compile(r"(?:[A-Za-z][\w+.-]*://|www\.|data:|mailto:|javascript:)\S+", re.IGNORECASE)
_NUMBER = AskedFor("number", frozenset())


class Source(NamedTuple):
    """A sentence of a hit, its terms, and those of the hit's title and headings."""

    sentence: Sentence
    terms: frozenset[int]
    context: frozenset[int]


class Word(NamedTuple):
    """A content word of a written sentence; a name or a number is `exact`, and must be in a source."""

    terms: list[int]
    exact: bool

    @classmethod
    def all_of(cls, text: str) -> list[Self]:
        words = []
        for match in _WORD.finditer(text):
            word = match[0]
            is_name = any(map(str.isupper, word)) and (match.start() > 0 or word.lower() not in SENTENCE_STARTERS)
            if terms := terms_of(word):
                words.append(cls(terms, is_name or any(map(str.isdigit, word)) or _NUMBER.is_in(word)))
        return words

    def is_in(self, held: Collection[int]) -> bool:
        """Whether it is among these terms, as a whole or in all its parts (`GraphView`)."""
        whole, *parts = self.terms
        return whole in held or (bool(parts) and all(part in held for part in parts))


def sources_of(hits: Sequence[Hit]) -> list[list[Source]]:
    """The sentences of each hit."""
    sources = []
    for number, hit in enumerate(hits):
        context = frozenset(terms_of(" ".join([hit.title, *hit.section])))
        sentences = [each._replace(hit=number) for each in sentences_of_hits([hit], {}, MOST_WORDS)]
        sources.append([Source(each, frozenset(terms_of(each.text)), context) for each in sentences])
    return sources


def supporting(written: str, cited: Sequence[Source]) -> list[Sentence]:
    """The sentences, at most three of those `cited`, that together say what is written; none where they do not: where
    they lack one of its names or numbers, or more than a quarter of its content words; where one denies and the other
    does not; where it holds markup, or an address that they have not."""
    words = Word.all_of(written)
    chosen: list[Source] = []
    held: frozenset[int] = frozenset()
    while len(chosen) < MOST_SPANS:
        missing = [word for word in words if not word.is_in(held)]
        best, most = None, 0
        for source in cited:
            gained = sum(word.is_in(held | source.terms | source.context) for word in missing)
            if gained > most and any(word.is_in(source.terms) for word in missing):
                best, most = source, gained
        if best is None:
            break
        chosen.append(best)
        held |= best.terms | best.context
    missing = [word for word in words if not word.is_in(held)]
    if not chosen or any(word.exact for word in missing) or len(missing) > OWN_WORDS * len(words):
        return []
    said = " ".join(source.sentence.text for source in chosen)
    if bool(_DENIES.search(written)) != bool(_DENIES.search(said)) or _MARKUP.search(written):
        return []
    if any(address.rstrip(".,;:!?)'\"") not in said for address in _ADDRESS.findall(written)):
        return []
    return sorted((source.sentence for source in chosen), key=lambda each: (each.hit, each.start))
