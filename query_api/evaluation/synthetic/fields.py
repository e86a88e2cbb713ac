"""Questions answered by fields: what documents are, and when.

**structured**: one name, one value or two that leave at most five documents. **temporal**: a word of titles within a
year, a month, before or after a year, such that the word is also in the title of a document outside it: without the
date the question has another answer.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import chain

from query_api.evaluation.synthetic.made import Made, Material
from query_api.evaluation.synthetic.reading import IndexedDocument
from query_api.evaluation.synthetic.vocabulary import words

MOST_ANSWERS = 5
DATE_FORMATS = ("%Y-%m-%d", "%d-%b-%Y", "%d-%B-%Y", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%d/%m/%Y", "%Y-%m", "%Y")
DATED_SHARE = 0.5
TRIES = 12

_NAMED = ("the document {}", "what does {} say?", "{}")
_ONE = ("documents whose {} is {}", "everything with the {} {}", "which documents have the {} {}?")
_TWO = ("documents whose {} is {} and whose {} is {}", "which documents with the {} {} have the {} {}?")
_IN_YEAR = ("documents of {year} about {word}", "what was written about {word} in {year}?")
_IN_MONTH = ("documents about {word} from {month}", "what came out about {word} in {month}?")
_BEFORE = ("documents about {word} from before {year}", "what was there about {word} before {year}?")
_AFTER = ("documents about {word} from after {year}", "what has been written about {word} since {year} ended?")


def structured(material: Material, chance: random.Random) -> Iterator[Made]:
    """By name, by one field and by two in turns."""
    holders = _holders(material.documents)
    names: dict[str, set[str]] = {}
    for document in material.documents:
        for name in document.names[1:] or document.names:
            names.setdefault(name.lower(), set()).add(document.id)
    for number, document in enumerate(chance.sample(material.documents, len(material.documents))):
        own = [(field, value.lower()) for field, values in document.fields.items() for value in values]
        spelt = {(field, value.lower()): value for field, values in document.fields.items() for value in values}
        telling = [name for name in document.names[1:] or document.names if len(names[name.lower()]) == 1]
        if number % 3 == 0 and telling:
            yield Made("structured", chance.choice(_NAMED).format(chance.choice(telling)), {document.id: 1})
            continue
        wanted = 1 if number % 3 == 1 else 2
        for _ in range(TRIES):
            if len({field for field, _ in own}) < wanted:
                break
            chosen = chance.sample(own, wanted)
            found = frozenset.intersection(*(holders[each] for each in chosen))
            alone = min(len(holders[each]) for each in chosen)
            if len({field for field, _ in chosen}) < wanted or len(found) > MOST_ANSWERS:
                continue
            if wanted == 2 and alone <= len(found):
                continue  # the second value would decide nothing
            parts = chain.from_iterable((_field_words(field), spelt[field, value]) for field, value in chosen)
            wording = chance.choice(_ONE if wanted == 1 else _TWO)
            yield Made("structured", wording.format(*parts), dict.fromkeys(sorted(found), 1))
            break


def temporal(material: Material, chance: random.Random) -> Iterator[Made]:
    """By year, month, before and after in turns, of the dates in the field that most documents have one in."""
    dates = dates_of(material.documents)
    by_word: dict[str, set[str]] = {}
    for document in material.documents:
        for word in words(document.title):
            if document.id in dates and material.vocabulary.tells(word):
                by_word.setdefault(word, set()).add(document.id)
    dated = [document for document in material.documents if document.id in dates]
    for number, document in enumerate(chance.sample(dated, len(dated))):
        when = dates[document.id]
        for word in chance.sample(own := sorted(set(words(document.title)) & by_word.keys()), len(own)):
            about = by_word[word]
            wordings, found = (
                (_IN_YEAR, {id_ for id_ in about if dates[id_].year == when.year}),
                (_IN_MONTH, {id_ for id_ in about if (dates[id_].year, dates[id_].month) == (when.year, when.month)}),
                (_BEFORE, {id_ for id_ in about if dates[id_].year < when.year + 1}),
                (_AFTER, {id_ for id_ in about if dates[id_].year > when.year - 1}),
            )[number % 4]
            year = {_BEFORE: when.year + 1, _AFTER: when.year - 1}.get(wordings, when.year)
            if found < about and len(found) <= MOST_ANSWERS:
                text = chance.choice(wordings).format(word=word, year=year, month=f"{when:%B %Y}")
                yield Made("temporal", text, dict.fromkeys(sorted(found), 1))
                break


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


def _holders(documents: Sequence[IndexedDocument]) -> Mapping[tuple[str, str], frozenset[str]]:
    held: dict[tuple[str, str], set[str]] = {}
    for document in documents:
        for field, values in document.fields.items():
            for value in values:
                held.setdefault((field, value.lower()), set()).add(document.id)
    return {each: frozenset(ids) for each, ids in held.items()}


def _field_words(field: str) -> str:
    return field.replace("_", " ")
