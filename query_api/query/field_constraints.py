"""What a question asks of documents' own fields: ids, titles, values and times, and how much each tells."""

import math
import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.extraction.lexicon import STOP_WORDS, word_set
from query_api.index.text.filters import DocumentIndex, NamedDocuments
from query_api.index.text.phrases import LITERAL, MAX_WORDS, Fit, Word, best_fits, phrase_of, words_of
from query_api.query.dates import time_words, times_in
from schemas.filters import Operator
from schemas.hits import FieldInQuestion

NEAR_WORDS = 3  # between a field's name and the value that it speaks of
_QUOTES = "\"'“”‘’«»`"

# Words that people put around fields, by the beginnings of the fields' names they speak of.
CUES = {
    "author": word_set("author authors authored by written wrote writer writers write propose proposed proposes"),
    "creator": word_set("author authors by created creator creators made"),
    "created": word_set("created written started begun dated"),
    "date": word_set("dated published appeared written date"),
    "published": word_set("published publication appeared dated"),
    "year": word_set("published year dated"),
    "delegate": word_set("delegate delegates delegated"),
    "sponsor": word_set("sponsor sponsors sponsored"),
    "editor": word_set("edited editor editors"),
    "tag": word_set("tagged"),
    "label": word_set("labelled labeled"),
}
# Words that ask for documents rather than say what they are about.
DOCUMENTS = word_set(
    """article articles document documents entries entry file files page pages paper papers pep peps piece pieces post
    posts proposal proposals publication publications record records report reports rfc rfcs text texts"""
)
FINDING = DOCUMENTS | word_set("called find get give list name named open read say says search show tell title titled")
ASKING = FINDING | word_set(
    """author authored authors created date dated id kind labelled marked names number published status type write
    writes written wrote year"""
)
# Fields that say what a document is about, which its text says better.
TOPICAL = word_set("keyword keywords tag tags topic topics subject subjects category categories label labels")
_CALLED = word_set("title titled called named")
_WHO = word_set("who whose whom")  # then a person is asked for, and none is given, but behind `by`


class FieldCues:
    """A question's words, and which of them speak of which field."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self.text = text
        self.words = words
        self.said = frozenset(word.text for word in words)

    def cued(self, field: str, first: int, last: int) -> bool:
        """Whether the question speaks of a field with the words `first..last`: by its name beside them, or as people
        do."""
        name = field.rpartition(".")[2]
        parts = {part.text for part in words_of(name)}
        parts |= {f"{part}s" for part in parts}
        beside = [*self.words[max(0, first - 1 - NEAR_WORDS) : last], *self.words[last : last + 1]]
        if parts & {word.text for word in beside}:
            return True
        said = self.said & {"by"} if self.said & _WHO else self.said
        return any(name.lower().startswith(begin) and cues & said for begin, cues in CUES.items())

    def called(self, first: int) -> bool:
        """Whether the word before is one that names are behind, as in `the page titled Terms`."""
        return first > 0 and self.words[first - 1].text in _CALLED

    def before_documents(self, last: int) -> bool:
        """Whether the word behind is one for documents, as in `withdrawn proposals`."""
        return last < len(self.words) and self.words[last].text in DOCUMENTS

    def marked(self, first: int, last: int) -> bool:
        """Whether the words stand in quotes, or are written with capitals where a sentence would not have them."""
        start, end = self.words[first].start, self.words[last - 1].end
        if start and self.text[start - 1] in _QUOTES and self.text[end : end + 1] in tuple(_QUOTES):
            return True
        return first > 0 and self.text[start].isupper()


MAX_QUESTION_WORDS = 64
MAX_CALLED_BY_ID = 10  # documents; an id that more share is no id
LEAST_WEIGHT = 0.05
UNCERTAIN = 0.4  # what a single common word counts that happens to be a value
IDENTITY = ("document", "title")

_ID_CUES = word_set("document doc id file identifier")
_LITERAL = re.compile(r"[^\s\"'“”‘’()\[\]{}<>?!,;]+")

IsCommon = Callable[[str, NDArray[np.int64]], bool]
"""Whether words are used in more other documents than those (rows) that are called so or have them as a value."""


@dataclass(frozen=True)
class Constraint:
    """One thing a question asks of a document: words `first..last` (exclusive) say it, `rows` are those that have it.

    `said` are these words as the question has them, `fields` those that may hold it, `bounds` what it asks of them, as
    filters have it: operators with values. `fits` is how each of `rows` has it, (n_rows,) of Fit.

    `weight`, in (0, 1], is how much it tells: how few documents have it, and how surely the words mean it. One that is
    not `sure` may be about the subject as well: a common word that happens to be a value, a keyword, a name. An
    `identity` is what documents are called: an id, a title, a value that stands in the title as well.
    """

    first: int
    last: int
    said: str
    fields: tuple[str, ...]
    bounds: tuple[tuple[Operator, str], ...]
    rows: NDArray[np.int64]
    fits: NDArray[np.int8]
    weight: float
    identity: bool = False
    sure: bool = True

    @property
    def label(self) -> str:
        return f"{'|'.join(self.fields)}={self.said}"


@dataclass(frozen=True)
class Recognised:
    """All constraints of a question, and the share of its telling words that they cover, in [0, 1]."""

    constraints: tuple[Constraint, ...]
    covered: float


def recognise(question: str, documents: DocumentIndex, live: NDArray[np.bool_], is_common: IsCommon) -> Recognised:
    """What the question names among the live rows: the longest phrases first, no word for two constraints."""
    words = words_of(question)[:MAX_QUESTION_WORDS]
    total = int(live.sum())
    if not words or not total:
        return Recognised((), 0.0)
    speaking = FieldCues(question, words)
    found = [*_by_literal_id(question, words, documents, live), *_by_time(speaking, documents, live)]
    found += _by_phrase(speaking, documents, live, is_common)
    taken: set[int] = set()
    kept: list[Constraint] = []
    for each in sorted(found, key=lambda c: (not c.identity or c.last - c.first < 2, c.first - c.last, c.first)):
        span = set(range(each.first, each.last))
        if not span & taken:
            taken |= span
            kept.append(each)
    return Recognised(tuple(sorted(kept, key=lambda c: c.first)), _covered(words, kept, _of_time(question, words)))


def _by_literal_id(
    question: str, words: Sequence[Word], documents: DocumentIndex, live: NDArray[np.bool_]
) -> Iterable[Constraint]:
    """Ids as they are spelt: those with other signs than letters, and any behind `document` or `id`."""
    spelt: list[tuple[str, int, int]] = []
    for match in _LITERAL.finditer(question):
        literal, start = match.group().rstrip(".:"), match.start()
        inside = [at for at, word in enumerate(words) if start <= word.start < start + len(literal)]
        if not inside:
            continue
        before = words[inside[0] - 1].text if inside[0] else ""
        if before in _ID_CUES or (not literal.isalpha() and not literal.replace(".", "").isdigit()):
            spelt.append((literal, inside[0], inside[-1] + 1))
    for called in documents.named_by([LITERAL + literal.casefold() for literal, _, _ in spelt], live):
        literal, first, last = spelt[called.phrase]
        if len(called.rows) <= MAX_CALLED_BY_ID:
            yield _identity(first, last, literal, _by_spelling(literal, called, documents))


def _by_spelling(literal: str, called: NamedDocuments, documents: DocumentIndex) -> NamedDocuments:
    """Where an id is exactly this, the others are nearly it: who says `Case.md` means that more than `case.md`."""
    exact = np.array([key.document_id == literal for key in documents.keys(called.rows)], dtype=np.bool_)
    nearly = np.where(exact, called.fits, np.int8(Fit.NEARLY)) if exact.any() else called.fits
    return called._replace(fits=nearly)


def _by_time(speaking: FieldCues, documents: DocumentIndex, live: NDArray[np.bool_]) -> Iterable[Constraint]:
    """Times, in the fields that the question speaks of, else in those with one date a document."""
    times = times_in(speaking.text)
    if not times:
        return
    dated = documents.date_fields(live)
    total = int(live.sum())
    for time in times:
        inside = [at for at, word in enumerate(speaking.words) if time.start <= word.start < time.end]
        if not inside:
            continue
        wanted = [field for field in dated if speaking.cued(field.field, inside[0], inside[-1] + 1)]
        wanted = wanted or documents.own_date_fields(live)
        by_field = {
            field.field: np.unique(
                field.rows[(field.spans[:, 0] >= time.span.start) & (field.spans[:, 1] <= time.span.end)]
            )
            for field in wanted
        }
        named = {field: rows for field, rows in by_field.items() if len(rows)}
        if named:
            rows = np.unique(np.concatenate(list(named.values())))
            said, weight = speaking.text[time.start : time.end], _telling(len(rows), total)
            fits = np.full(len(rows), Fit.WHOLE, dtype=np.int8)
            yield Constraint(inside[0], inside[-1] + 1, said, tuple(named), time.bounds, rows, fits, weight)


def _by_phrase(
    speaking: FieldCues, documents: DocumentIndex, live: NDArray[np.bool_], is_common: IsCommon
) -> Iterable[Constraint]:
    """Ids in other spellings, names and values of metadata, as whole words.

    A value selects documents where the question speaks of its field, calls it a kind of document, or marks it while the
    collection uses these words for little else. What documents are called, by title or by a value that stands in it,
    may as well be the subject of others.
    """
    words = speaking.words
    spans = [(a, b) for a in range(len(words)) for b in range(a + 1, min(a + MAX_WORDS + 1, len(words)) + 1)]
    phrases = [" ".join(word.text for word in words[a:b]) for a, b in spans]
    by_span: dict[tuple[int, int], list[NamedDocuments]] = {}
    for called in documents.named_by(phrases, live):
        by_span.setdefault(spans[called.phrase], []).append(called)
    total = int(live.sum())
    for (first, last), everything in by_span.items():
        said = _shown(speaking, first, last)
        ids = [each for each in everything if each.field == "document"]
        if ids:
            if len(ids[0].rows) <= MAX_CALLED_BY_ID:
                yield _identity(first, last, said, ids[0])
            continue
        single, marked, named_so = last - first == 1, speaking.marked(first, last), speaking.called(first)
        if single and (words[first].text in STOP_WORDS or len(words[first].text) < 2):
            continue
        values = [each for each in everything if each.field not in IDENTITY]
        spoken_of = [each for each in values if speaking.cued(each.field, first, last)]
        topical = [each for each in values if each.field.rpartition(".")[2].lower() in TOPICAL]
        named = {each.field for each in everything if _are_names(each, phrases[each.phrase], documents)}
        selecting = [each for each in values if each.field not in named | {of.field for of in topical}]
        names = [
            each for each in everything if each.field in named and (marked or named_so or (not single and first == 0))
        ]
        chosen = spoken_of or selecting or names or topical
        if not chosen or (chosen is names and any(len(each.rows) > MAX_CALLED_BY_ID for each in names)):
            continue
        rows, fits = best_fits((each.rows, each.fits) for each in chosen)
        sure = bool(spoken_of)
        if chosen is selecting:
            tells = marked and 2 * len(rows) <= total and not is_common(said, rows)
            sure = tells or speaking.before_documents(last)
        if chosen is names and single and not named_so and is_common(said, rows):
            continue
        certainty = 1.0 if sure or (not single and chosen is not topical) else UNCERTAIN
        weight = max(LEAST_WEIGHT, certainty * _telling(len(rows), total))
        fields = tuple(each.field for each in chosen)
        bounds: tuple[tuple[Operator, str], ...] = (("=", _value_of(speaking, first, last, fields)),)
        yield Constraint(first, last, said, fields, bounds, rows, fits, weight, chosen is names, sure)


def _are_names(called: NamedDocuments, phrase: str, documents: DocumentIndex) -> bool:
    """Whether they are called by their titles, or by a value that stands in the title of each, as a short one does."""
    if called.field == "title" or len(called.rows) > MAX_CALLED_BY_ID:
        return called.field == "title"
    return all(f" {phrase} " in f" {phrase_of(title)} " for title in documents.titles(called.rows))


def _identity(first: int, last: int, said: str, called: NamedDocuments) -> Constraint:
    return Constraint(first, last, said, ("document",), (("=", said),), called.rows, called.fits, 1.0, identity=True)


def _shown(speaking: FieldCues, first: int, last: int) -> str:
    return speaking.text[speaking.words[first].start : speaking.words[last - 1].end]


def _value_of(speaking: FieldCues, first: int, last: int, fields: Sequence[str]) -> str:
    """What the words say without the name of their field, behind which a bare number is found: `volume 12`."""
    for field in fields:
        name = [word.text for word in words_of(field.rpartition(".")[2])]
        behind = first + len(name)
        if behind < last and [word.text for word in speaking.words[first:behind]] == name:
            return _shown(speaking, behind, last)
    return _shown(speaking, first, last)


def _telling(having: int, total: int) -> float:
    """1 - ln(df) / ln(n): 1 for what one document has, 0 for what all have."""
    return max(LEAST_WEIGHT, 1.0 - math.log(having) / math.log(total)) if total > 1 else 1.0


def _of_time(question: str, words: Sequence[Word]) -> frozenset[int]:
    """The words that tell a time from today, which is a filter, or ask for what is newest."""
    spans = time_words(question)
    return frozenset(at for at, word in enumerate(words) if any(start <= word.start < end for start, end in spans))


def _covered(words: Sequence[Word], kept: Sequence[Constraint], of_time: Set[int]) -> float:
    """The share of the words that say what is sought, but for those `of_time`, that are part of a constraint.

    Constraints that are not sure count beside a sure one. A name counts where it is all that was asked.
    """
    if not kept:
        return 0.0
    anchored = any(each.sure for each in kept)
    taken = {at for each in kept for at in range(each.first, each.last)} | of_time
    alone = all(word.text in STOP_WORDS | FINDING for at, word in enumerate(words) if at not in taken)
    counting = [each for each in kept if each.sure or (alone if each.identity else anchored)]
    taken = {at for each in counting for at in range(each.first, each.last)}
    fields = [field.rpartition(".")[2] for each in counting for field in each.fields]
    spoken = {word.text for field in fields for word in words_of(field)}
    spoken |= {cue for begin, cues in CUES.items() if any(field.startswith(begin) for field in fields) for cue in cues}
    idle = STOP_WORDS | ASKING | spoken
    telling = [
        at
        for at, word in enumerate(words)
        if at in taken or (word.text not in idle and len(word.text) > 1 and at not in of_time)
    ]
    return sum(at in taken for at in telling) / len(telling) if telling else 0.0


def shown_fields(recognised: Recognised) -> tuple[FieldInQuestion, ...]:
    """In the order of the question; a range is two of them, a lower and an upper bound."""
    return tuple(
        FieldInQuestion(words=each.said, fields=each.fields, operator=operator, value=value)
        for each in recognised.constraints
        for operator, value in each.bounds
    )
