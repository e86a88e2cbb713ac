"""Whether sentences of the hits say what a language model wrote: an overlap of words, without any model.

It does not know who did what to whom among the same words. What it makes sure of is that nothing is named, counted,
denied or linked that is not in the sources.
"""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple, Self

from indexer.extraction.lexicon import SENTENCE_STARTERS
from indexer.extraction.prose.word_classes import DENIAL as _DENIES
from indexer.text_analysis import terms_of
from query_api.answers.features import AskedFor
from query_api.answers.sentences import Sentence, sentences_of_hits
from schemas.answers import MOST_WORDS
from schemas.hits import Hit
from schemas.ids import DocumentKey

OWN_WORDS = 0.25  # of a sentence's content words, which may be the model's: a verb in another word
MOST_SPANS = 3  # sentences that together support one

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WITHIN_NAME = re.compile(r"\W{1,2}(?:(?:of|the|and|for|de|van|von) )*")
_MARKUP = re.compile(r"\]\(|\]\[|\]:|!\[|<[A-Za-z/!?]")
_ADDRESS = re.compile(r"(?:[A-Za-z][\w+.-]*://|www\.|data:|mailto:|javascript:)\S+", re.IGNORECASE)
_NUMBER = AskedFor("number", frozenset())


class Source(NamedTuple):
    """A sentence of a hit, its terms, those of the hit's title, and of this and the headings."""

    sentence: Sentence
    document: DocumentKey
    terms: frozenset[int]
    title: frozenset[int]
    context: frozenset[int]


class Word(NamedTuple):
    """A content word of a written sentence. One of a name, and a number, is `exact`, and must be in a source; the words
    of a name are one `unit`."""

    terms: list[int]
    exact: bool
    unit: int

    @classmethod
    def all_of(cls, text: str) -> list[Self]:
        words: list[Self] = []
        end = 0
        for match in _WORD.finditer(text):
            word = match[0]
            is_name = any(map(str.isupper, word)) and (match.start() > 0 or word.lower() not in SENTENCE_STARTERS)
            if (terms := terms_of(word)) and not _DENIES.search(word):
                exact = is_name or any(map(str.isdigit, word)) or _NUMBER.is_in(word)
                goes_on = bool(words) and words[-1].exact and exact and _WITHIN_NAME.fullmatch(text, end, match.start())
                words.append(cls(terms, exact, words[-1].unit if goes_on else len(words)))
                end = match.end()
        return words

    def is_in(self, held: Collection[int]) -> bool:
        """Whether it is among these terms, as a whole or in all its parts (`GraphView`)."""
        whole, *parts = self.terms
        return whole in held or (bool(parts) and all(part in held for part in parts))


def sources_of(hits: Sequence[Hit]) -> list[list[Source]]:
    """The sentences of each hit."""
    sources = []
    for number, hit in enumerate(hits):
        title = frozenset(terms_of(hit.title))
        about = (DocumentKey(hit.collection, hit.document_id), title, title.union(terms_of(" ".join(hit.section))))
        sentences = [each._replace(hit=number) for each in sentences_of_hits([hit], {}, MOST_WORDS)]
        sources.append([Source(each, about[0], frozenset(terms_of(each.text)), *about[1:]) for each in sentences])
    return sources


def says_only(written: str, said: Sequence[str], named: Sequence[str] = ()) -> bool:
    """Whether each content word is one of what was `said`, or of a name or number in `named`, of which there is one at
    least; and nothing is denied, or marked up, that is not there."""
    words, texts = Word.all_of(written), " ".join(said)
    names = (word for text in named for word in Word.all_of(text) if word.exact)
    held = {*terms_of(texts), *(term for name in names for term in name.terms)}
    denies = _DENIES.search(written) and not _DENIES.search(texts)
    return bool(words) and all(word.is_in(held) for word in words) and not denies and not _MARKUP.search(written)


def supporting(written: str, cited: Sequence[Source]) -> list[Sentence]:
    """The sentences, one or at most three of those `cited`, that say what is written; none where they do not: where
    they lack one of its names or numbers, or more than a quarter of its content words; where one denies and the other
    does not; where it holds markup, or an address that they have not.

    Several count together where each says two words that those before do not (a name is one), and those of another
    document than the first have a title that it names: else any number would do that is in any of them."""
    words = Word.all_of(written)
    if not words or _MARKUP.search(written):
        return []
    alone = max(
        cited, key=lambda source: sum(word.is_in(source.terms | source.context) for word in words), default=None
    )
    for chosen in ([] if alone is None else [alone], _together(words, cited)):
        if _says(chosen, written, words):
            return sorted((source.sentence for source in chosen), key=lambda each: (each.hit, each.start))
    return []


def _together(words: Sequence[Word], cited: Sequence[Source]) -> list[Source]:
    """One by one those that add the most words, at least two by what they say; a name counts as one."""
    named = frozenset(term for word in words for term in word.terms)
    chosen: list[Source] = []
    missing = list(words)
    while len(chosen) < MOST_SPANS:
        if chosen:
            first = chosen[0].document
            cited = [source for source in cited if source.document == first or source.title <= named]
        cited = [each for each in cited if len({word.unit for word in missing if word.is_in(each.terms)}) >= 2]
        if not cited:
            break
        lacking = [[word for word in missing if not word.is_in(each.terms | each.context)] for each in cited]
        best = min(range(len(cited)), key=lambda at: len(lacking[at]))
        chosen.append(cited[best])
        missing = lacking[best]
    return chosen


def _says(chosen: Sequence[Source], written: str, words: Sequence[Word]) -> bool:
    held = frozenset[int]().union(*(source.terms | source.context for source in chosen))
    missing = [word for word in words if not word.is_in(held)]
    if not any(word.is_in(source.terms) for source in chosen for word in words):
        return False
    if any(word.exact for word in missing) or len(missing) > OWN_WORDS * len(words):
        return False
    said = " ".join(source.sentence.text for source in chosen)
    addresses = [address.rstrip(".,;:!?)'\"") for address in _ADDRESS.findall(written)]
    return bool(_DENIES.search(written)) == bool(_DENIES.search(said)) and all(each in said for each in addresses)
