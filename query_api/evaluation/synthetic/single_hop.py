"""Questions that one document answers, or a few.

- **exact**: four to six words in a row that one document alone has.
- **semantic**: the content words of a sentence without those of the title and the rarest, some in another form, in
  another order. Only a language model could say the same in words the collection does not have; these questions measure
  whether a text is found by a part of its words.
- **structured**: one name, or one or two field values that leave at most five documents.
- **temporal**: a word of titles within a year, a month, before or after a year, such that the word is also in the title
  of a document outside it: without the date the question has another answer.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import chain
from typing import TypeVar

from query_api.evaluation.synthetic.source import (
    GeneratedQuestion,
    IndexedDocument,
    Source,
    Vocabulary,
    sentences,
    words,
)

T = TypeVar("T")

PHRASE_WORDS = (4, 6)
SENTENCE_WORDS = (10, 40)
MIN_WORDS = 4
DROPPED = 0.5  # of a sentence's content words, the rarest
CHANGED = 0.5  # of what is left, as far as there are other forms
TRIES = 8
MAX_ANSWERS = 5
DATE_FORMATS = ("%Y-%m-%d", "%d-%b-%Y", "%d-%B-%Y", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%d/%m/%Y", "%Y-%m", "%Y")
DATED_SHARE = 0.5
FIELD_TRIES = 12

_NAMED = ("the document {}", "what does {} say?", "{}")
_ONE = ("documents whose {} is {}", "everything with the {} {}", "which documents have the {} {}?")
_TWO = ("documents whose {} is {} and whose {} is {}", "which documents with the {} {} have the {} {}?")
_IN_YEAR = ("documents of {year} about {word}", "what was written about {word} in {year}?")
_IN_MONTH = ("documents about {word} from {month}", "what came out about {word} in {month}?")
_BEFORE = ("documents about {word} from before {year}", "what was there about {word} before {year}?")
_AFTER = ("documents about {word} from after {year}", "what has been written about {word} since {year} ended?")


def exact(source: Source, rng: random.Random) -> Iterator[GeneratedQuestion]:
    """A phrase that only one document holds, ends included; each document is tried a few times, then the next."""
    texts = {document.id: _plain(f"{document.title} {document.text}") for document in source.documents}
    for document in _shuffled(source.documents, rng):
        plain = texts[document.id].split()
        for _ in range(TRIES):
            length = rng.randint(*PHRASE_WORDS)
            if len(plain) <= length:
                break
            start = rng.randrange(len(plain) - length)
            phrase = plain[start : start + length]
            if not any(source.vocabulary.is_content_word(word) for word in phrase):
                continue
            padded = f" {' '.join(phrase)} "
            if [id_ for id_, text in texts.items() if padded in text] == [document.id]:
                yield GeneratedQuestion("exact", padded.strip(), {document.id: 1})
                break


def semantic(source: Source, rng: random.Random) -> Iterator[GeneratedQuestion]:
    """Words of one sentence that no other document has all of, in any form."""
    for document in _shuffled(source.documents, rng):
        candidates = [each for each in sentences(document.text) if _fits(each)]
        for sentence in _shuffled(candidates, rng)[:TRIES]:
            paraphrased = paraphrase(sentence, document, source.vocabulary, rng)
            if len(paraphrased) < MIN_WORDS:
                continue
            if source.vocabulary.documents_with(source.vocabulary.stems(paraphrased)) == [document.id]:
                yield GeneratedQuestion("semantic", " ".join(paraphrased), {document.id: 1})
                break


def paraphrase(sentence: str, document: IndexedDocument, vocabulary: Vocabulary, rng: random.Random) -> list[str]:
    """The sentence's content words without those of the title and the rarest, some changed, shuffled."""
    title_stems = vocabulary.stems(words(document.title))
    content_words = [
        word
        for word in dict.fromkeys(words(sentence))
        if vocabulary.is_content_word(word) and not vocabulary.stems([word]) <= title_stems
    ]
    rarest = sorted(content_words, key=lambda word: (vocabulary.frequency(word), word))
    frequent = set(rarest[int(DROPPED * len(rarest)) :])
    changed = [
        vocabulary.other_form(word, rng) if rng.random() < CHANGED else word
        for word in content_words
        if word in frequent
    ]
    return _shuffled(changed, rng)


def _fits(sentence: str) -> bool:
    least, most = SENTENCE_WORDS
    return least <= len(words(sentence)) <= most


def _plain(text: str) -> str:
    """Words and numbers, in lower case, one blank before, between and after."""
    found = re.findall(r"\w+", text.lower())
    return f" {' '.join(found)} "


def _shuffled(items: Sequence[T], rng: random.Random) -> list[T]:
    return rng.sample(items, len(items))


def structured(source: Source, rng: random.Random) -> Iterator[GeneratedQuestion]:
    """By name, by one field and by two in turns."""
    holders = _documents_by_value(source.documents)
    own_names = {each.id: each.names[1:] or each.names for each in source.documents}
    named = Counter(name for names in own_names.values() for name in {each.lower() for each in names})
    for number, document in enumerate(_shuffled(source.documents, rng)):
        unique = [name for name in own_names[document.id] if named[name.lower()] == 1]
        if number % 3 == 0 and unique:
            yield GeneratedQuestion("structured", rng.choice(_NAMED).format(rng.choice(unique)), {document.id: 1})
            continue
        made = _by_values(document, 1 if number % 3 == 1 else 2, holders, rng)
        if made is not None:
            yield made


def _by_values(
    document: IndexedDocument, wanted: int, holders: Mapping[tuple[str, str], frozenset[str]], rng: random.Random
) -> GeneratedQuestion | None:
    """A question for so many values of a document, each of another field, that few documents have together. None where
    some tries find none."""
    values = [(field, value) for field, values in document.fields.items() for value in values]
    original = {(field, value.lower()): value for field, value in values}
    own = [(field, value.lower()) for field, value in values]
    if len(document.fields) < wanted:
        return None
    for _ in range(FIELD_TRIES):
        chosen = rng.sample(own, wanted)
        found = frozenset.intersection(*(holders[each] for each in chosen))
        decides = wanted == 1 or min(len(holders[each]) for each in chosen) > len(found)
        if len(dict(chosen)) == wanted and len(found) <= MAX_ANSWERS and decides:
            parts = chain.from_iterable((each[0].replace("_", " "), original[each]) for each in chosen)
            text = rng.choice(_ONE if wanted == 1 else _TWO).format(*parts)
            return GeneratedQuestion("structured", text, dict.fromkeys(sorted(found), 1))
    return None


def temporal(source: Source, rng: random.Random) -> Iterator[GeneratedQuestion]:
    """By year, month, before and after in turns, of the dates in the field that most documents have one in."""
    dates = dates_of(source.documents)
    dated = [document for document in source.documents if document.id in dates]
    by_word: dict[str, set[str]] = {}
    for document in dated:
        for word in filter(source.vocabulary.is_content_word, words(document.title)):
            by_word.setdefault(word, set()).add(document.id)
    for number, document in enumerate(_shuffled(dated, rng)):
        when = dates[document.id]
        wordings, year, fits = _within(when, number % 4)
        for word in _shuffled(sorted(set(words(document.title)) & by_word.keys()), rng):
            found = {name for name in by_word[word] if fits(dates[name])}
            if found < by_word[word] and len(found) <= MAX_ANSWERS:
                text = rng.choice(wordings).format(word=word, year=year, month=f"{when:%B %Y}")
                yield GeneratedQuestion("temporal", text, dict.fromkeys(sorted(found), 1))
                break


def _within(when: date, form: int) -> tuple[tuple[str, ...], int, Callable[[date], bool]]:
    """The wordings of a time around a date, the year that they name, and whether another date is within it."""
    forms: tuple[tuple[tuple[str, ...], int, Callable[[date], bool]], ...] = (
        (_IN_YEAR, when.year, lambda other: other.year == when.year),
        (_IN_MONTH, when.year, lambda other: (other.year, other.month) == (when.year, when.month)),
        (_BEFORE, when.year + 1, lambda other: other.year < when.year + 1),
        (_AFTER, when.year - 1, lambda other: other.year > when.year - 1),
    )
    return forms[form]


def dates_of(documents: Sequence[IndexedDocument]) -> dict[str, date]:
    """{document id: date} by the one field that most documents have a single date in; none where hardly any has."""
    found: dict[str, dict[str, date]] = {}
    for document in documents:
        for field, values in document.fields.items():
            if len(values) == 1 and (when := date_in(values[0])) is not None:
                found.setdefault(field, {})[document.id] = when
    best = max(found.values(), key=len, default={})
    return best if len(best) >= DATED_SHARE * len(documents) else {}


def date_in(value: str) -> date | None:
    """The date that is the whole value, the first of its month or year where it says no more."""
    for form in DATE_FORMATS:
        try:
            return datetime.strptime(value.strip()[:10] if form == "%Y-%m-%d" else value.strip(), form).date()  # noqa: DTZ007  (a date has no zone)
        except ValueError:
            continue
    return None


def _documents_by_value(documents: Sequence[IndexedDocument]) -> Mapping[tuple[str, str], frozenset[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for document in documents:
        for field, values in document.fields.items():
            for value in values:
                found.setdefault((field, value.lower()), set()).add(document.id)
    return {each: frozenset(ids) for each, ids in found.items()}
