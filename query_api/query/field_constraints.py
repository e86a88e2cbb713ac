"""The constraints that a question puts on documents' own fields: ids, titles, values and times, with their weights."""

import math
import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.extraction.lexicon import STOP_WORDS, word_set
from query_api.index.text.field_index import LITERAL, MAX_WORDS, Fit, Word, best_fits, phrase_of, words_of
from query_api.index.text.filter_evaluation import DocumentIndex, NamedDocuments
from query_api.query.dates import speaks_of_documents, time_words, times_in
from schemas.filters import Operator
from schemas.hits import FieldInQuestion

NEAR_WORDS = 3  # between a field's name and its value
_QUOTES = "\"'“”‘’«»`"

# Words that people put around fields, by the beginnings of the fields' names they speak of.
CUES = {
    "author": word_set(
        "author authors authored by created creator written wrote writer writers write propose proposed proposes"
    ),
    "creator": word_set("author authors by created creator creators made"),
    "created": word_set("created written started begun dated"),
    "date": word_set("dated published appeared written date"),
    "published": word_set("published publication appeared dated"),
    "year": word_set("published year dated"),
    "delegate": word_set("delegate delegates delegated"),
    "sponsor": word_set("sponsor sponsors sponsored"),
    "editor": word_set("edited editor editors"),
    "owner": word_set("own owned owner owners owns"),
    "updated": word_set("changed edited last latest modified revised updated"),
    "modified": word_set("changed edited last latest modified revised updated"),
    "last_": word_set("changed edited last latest modified revised updated"),
    "status": word_set("current state status"),
    "state": word_set("current state status"),
    "type": word_set("kind type"),
    "kind": word_set("kind type"),
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
_WHO = word_set("who whose whom")  # then a person is the answer, and none is given, but after `by`


class FieldCues:
    """A question's words, and which of them refer to which field."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self.text = text
        self.words = words
        self.tokens = frozenset(word.text for word in words)


class Phrase(NamedTuple):
    """The words `first..last` (exclusive) of a question."""

    question: FieldCues
    first: int
    last: int

    @property
    def text(self) -> str:
        """As written."""
        words = self.question.words
        return self.question.text[words[self.first].start : words[self.last - 1].end]

    @property
    def words(self) -> list[str]:
        return [word.text for word in self.question.words[self.first : self.last]]

    @property
    def is_single(self) -> bool:
        return self.last - self.first == 1

    @property
    def is_idle(self) -> bool:
        """Whether it is one word that says nothing by itself."""
        return self.is_single and (self.words[0] in STOP_WORDS or len(self.words[0]) < 2)

    def cued(self, field: str) -> bool:
        """Whether the question refers to a field with it: by its name beside it, or by a cue."""
        words, tokens = self.question.words, self.question.tokens
        name = field.rpartition(".")[2]
        parts = {part.text for part in words_of(name)}
        parts |= {f"{part}s" for part in parts}
        if not parts.isdisjoint(word.text for word in words[max(0, self.first - 1 - NEAR_WORDS) : self.last + 1]):
            return True
        referring = tokens & {"by"} if tokens & _WHO else tokens
        return any(name.lower().startswith(begin) and cues & referring for begin, cues in CUES.items())

    @property
    def called(self) -> bool:
        """Whether the word before introduces a name, as in `the page titled Terms`."""
        return self.first > 0 and self.question.words[self.first - 1].text in _CALLED

    @property
    def before_documents(self) -> bool:
        """Whether the next word is one for documents, as in `withdrawn proposals`."""
        words = self.question.words
        return self.last < len(words) and words[self.last].text in DOCUMENTS

    @property
    def marked(self) -> bool:
        """Whether it is in quotes, or capitalised where a sentence would not have it."""
        text, words = self.question.text, self.question.words
        start, end = words[self.first].start, words[self.last - 1].end
        if start and text[start - 1] in _QUOTES and text[end : end + 1] in tuple(_QUOTES):
            return True
        return self.first > 0 and text[start].isupper()


MAX_QUESTION_WORDS = 64
MAX_DOCUMENTS_OF_ID = 10  # an id that more documents share is not an id
MIN_WEIGHT = 0.05
UNCERTAIN = 0.4  # the weight of a single common word that happens to be a value
IDENTITY = ("document", "title")

_ID_CUES = word_set("document doc id file identifier")
_LITERAL = re.compile(r"[^\s\"'“”‘’()\[\]{}<>?!,;]+")

IsCommon = Callable[[str, NDArray[np.int64]], bool]
"""Whether words are used in more other documents than those (rows) that have them as a name or value."""


@dataclass(frozen=True)
class Constraint:
    """A constraint, in the words `first..last` (exclusive) of the question; `rows` are the documents that meet it.

    `matched_text` are these words as written, `fields` those that may hold the value, `bounds` the operators and values
    of a filter that says the same. `fits` is how each of `rows` meets it, (n_rows,) of Fit.

    `weight`, in (0, 1], is higher for fewer documents and surer words. One that is not `sure` may be about the subject
    as well: a common word that happens to be a value, a keyword, a name, the time of something. An `identity` is the
    name of a document: an id, a title, a value that is in the title as well.
    """

    first: int
    last: int
    matched_text: str
    fields: tuple[str, ...]
    bounds: tuple[tuple[Operator, str], ...]
    rows: NDArray[np.int64]
    fits: NDArray[np.int8]
    weight: float
    identity: bool = False
    sure: bool = True

    @property
    def label(self) -> str:
        return f"{'|'.join(self.fields)}={self.matched_text}"


@dataclass(frozen=True)
class Recognised:
    """All constraints of a question, and the share of its content words that they cover, in [0, 1]."""

    constraints: tuple[Constraint, ...]
    covered: float


def recognise(question: str, documents: DocumentIndex, live: NDArray[np.bool_], is_common: IsCommon) -> Recognised:
    """The constraints on the live rows: the longest phrases first, no word for two constraints."""
    words = words_of(question)[:MAX_QUESTION_WORDS]
    total = int(live.sum())
    if not words or not total:
        return Recognised((), 0.0)
    cues = FieldCues(question, words)
    found = [*_by_literal_id(question, words, documents, live), *_by_time(cues, documents, live)]
    found += _by_phrase(cues, documents, live, is_common)
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
    """Ids as they are spelt: those with other signs than letters, and any after `document` or `id`."""
    literals: list[tuple[str, int, int]] = []
    for match in _LITERAL.finditer(question):
        literal, start = match.group().rstrip(".:"), match.start()
        inside = [at for at, word in enumerate(words) if start <= word.start < start + len(literal)]
        if not inside:
            continue
        before = words[inside[0] - 1].text if inside[0] else ""
        if before in _ID_CUES or (not literal.isalpha() and not literal.replace(".", "").isdigit()):
            literals.append((literal, inside[0], inside[-1] + 1))
    for named in documents.named_by([LITERAL + literal.casefold() for literal, _, _ in literals], live):
        literal, first, last = literals[named.phrase]
        if len(named.rows) <= MAX_DOCUMENTS_OF_ID:
            yield _identity(first, last, literal, _by_spelling(literal, named, documents))


def _by_spelling(literal: str, named: NamedDocuments, documents: DocumentIndex) -> NamedDocuments:
    """Where an id is exactly this, others in another case fit it nearly: `Case.md` matches itself before `case.md`."""
    exact = np.array([key.document_id == literal for key in documents.keys(named.rows)], dtype=np.bool_)
    nearly = np.where(exact, named.fits, np.int8(Fit.NEARLY)) if exact.any() else named.fits
    return named._replace(fits=nearly)


def _by_time(cues: FieldCues, documents: DocumentIndex, live: NDArray[np.bool_]) -> Iterable[Constraint]:
    """Times, in the fields that the question refers to, else in those with one date a document. Sure where a field or
    documents are spoken of; `our revenue of 2025` may be in a report of another year."""
    times = times_in(cues.text)
    if not times:
        return
    dated = documents.date_fields(live)
    total = int(live.sum())
    for time in times:
        inside = [at for at, word in enumerate(cues.words) if time.start <= word.start < time.end]
        if not inside:
            continue
        cued = [field for field in dated if Phrase(cues, inside[0], inside[-1] + 1).cued(field.field)]
        wanted = cued or documents.own_date_fields(live)
        sure = bool(cued) or speaks_of_documents(cues.text, time.start, time.end)
        by_field = {
            field.field: np.unique(
                field.rows[(field.spans[:, 0] >= time.span.start) & (field.spans[:, 1] <= time.span.end)]
            )
            for field in wanted
        }
        named = {field: rows for field, rows in by_field.items() if len(rows)}
        if named:
            rows = np.unique(np.concatenate(list(named.values())))
            weight = max(MIN_WEIGHT, (1.0 if sure else UNCERTAIN) * _idf_weight(len(rows), total))
            yield Constraint(
                inside[0],
                inside[-1] + 1,
                cues.text[time.start : time.end],
                tuple(named),
                time.bounds,
                rows,
                np.full(len(rows), Fit.WHOLE, dtype=np.int8),
                weight,
                sure=sure,
            )


def _by_phrase(
    cues: FieldCues, documents: DocumentIndex, live: NDArray[np.bool_], is_common: IsCommon
) -> Iterable[Constraint]:
    """Ids in other spellings, names and values of metadata, as whole words.

    A value selects documents where the question refers to its field, uses it as a kind of document, or marks it while
    the collection uses these words for little else. A document's name, by title or by a value in it, may as well be the
    subject of others.
    """
    words = cues.words
    phrases = [
        Phrase(cues, first, last)
        for first in range(len(words))
        for last in range(first + 1, min(first + MAX_WORDS + 1, len(words)) + 1)
    ]
    by_phrase: dict[int, list[NamedDocuments]] = {}
    for found in documents.named_by([" ".join(phrase.words) for phrase in phrases], live):
        by_phrase.setdefault(found.phrase, []).append(found)
    total = int(live.sum())
    for number, everything in by_phrase.items():
        phrase = phrases[number]
        ids = [each for each in everything if each.field == "document"]
        if not ids:
            named = {each.field for each in everything if _are_names(each, " ".join(phrase.words), documents)}
            constraint = None if phrase.is_idle else _by_value(phrase, everything, named, total, is_common)
            if constraint is not None:
                yield constraint
        elif len(ids[0].rows) <= MAX_DOCUMENTS_OF_ID:
            yield _identity(phrase.first, phrase.last, phrase.text, ids[0])


Reading = Literal["cued", "selecting", "name", "topical"]


def _reading(
    phrase: Phrase, everything: Sequence[NamedDocuments], named: Set[str]
) -> tuple[Reading, list[NamedDocuments]] | None:
    """The likeliest of what a phrase may mean: a value of a field that the question refers to, one that selects, a
    name, a topic. `named` are the fields in which it is a name."""
    values = [each for each in everything if each.field not in IDENTITY]
    may_be_name = phrase.marked or phrase.called or (phrase.first == 0 and not phrase.is_single)
    readings: tuple[tuple[Reading, Sequence[NamedDocuments], Callable[[str], bool]], ...] = (
        ("cued", values, phrase.cued),
        ("selecting", values, lambda field: field not in named and not _is_topical(field)),
        ("name", everything if may_be_name else (), named.__contains__),
        ("topical", values, _is_topical),
    )
    found = ((reading, [one for one in of if fits(one.field)]) for reading, of, fits in readings)
    return next((each for each in found if each[1]), None)


def _is_topical(field: str) -> bool:
    return field.rpartition(".")[2].lower() in TOPICAL


def _by_value(
    phrase: Phrase, everything: Sequence[NamedDocuments], named: Set[str], total: int, is_common: IsCommon
) -> Constraint | None:
    """The constraint that a phrase makes by its likeliest reading, among `total` documents."""
    likeliest = _reading(phrase, everything, named)
    if likeliest is None:
        return None
    reading, chosen = likeliest
    rows, fits = best_fits((each.rows, each.fits) for each in chosen)
    if reading == "name" and not _is_distinct(phrase, chosen, rows, is_common):
        return None
    sure = reading == "cued" or (reading == "selecting" and _selects(phrase, rows, total, is_common))
    certainty = 1.0 if sure or (not phrase.is_single and reading != "topical") else UNCERTAIN
    return Constraint(
        phrase.first,
        phrase.last,
        phrase.text,
        tuple(each.field for each in chosen),
        (("=", _value_of(phrase, [each.field for each in chosen])),),
        rows,
        fits,
        max(MIN_WEIGHT, certainty * _idf_weight(len(rows), total)),
        reading == "name",
        sure,
    )


def _is_distinct(
    phrase: Phrase, chosen: Iterable[NamedDocuments], rows: NDArray[np.int64], is_common: IsCommon
) -> bool:
    """Whether it is the name of few documents, rather than a word that others use as well."""
    are_few = all(len(each.rows) <= MAX_DOCUMENTS_OF_ID for each in chosen)
    return are_few and (not phrase.is_single or phrase.called or not is_common(phrase.text, rows))


def _selects(phrase: Phrase, rows: NDArray[np.int64], total: int, is_common: IsCommon) -> bool:
    """Whether it is used as a kind of document, or marked while the collection uses it for little else."""
    may_be_distinctive = phrase.marked and 2 * len(rows) <= total
    return phrase.before_documents or (may_be_distinctive and not is_common(phrase.text, rows))


def _are_names(named: NamedDocuments, phrase: str, documents: DocumentIndex) -> bool:
    """Whether they are named by their titles, or by a value that is part of the title of each, as a short one is."""
    if named.field == "title" or len(named.rows) > MAX_DOCUMENTS_OF_ID:
        return named.field == "title"
    return all(f" {phrase} " in f" {phrase_of(title)} " for title in documents.titles(named.rows))


def _identity(first: int, last: int, matched: str, named: NamedDocuments) -> Constraint:
    return Constraint(
        first, last, matched, ("document",), (("=", matched),), named.rows, named.fits, 1.0, identity=True
    )


def _value_of(phrase: Phrase, fields: Sequence[str]) -> str:
    """A phrase without the name of its field, after which a bare number is found: `volume 12`."""
    for field in fields:
        name = [word.text for word in words_of(field.rpartition(".")[2])]
        if len(name) < len(phrase.words) and phrase.words[: len(name)] == name:
            return phrase._replace(first=phrase.first + len(name)).text
    return phrase.text


def _idf_weight(having: int, total: int) -> float:
    """1 - ln(df) / ln(n): 1 for what one document has, 0 for what all have."""
    return max(MIN_WEIGHT, 1.0 - math.log(having) / math.log(total)) if total > 1 else 1.0


def _of_time(question: str, words: Sequence[Word]) -> frozenset[int]:
    """The words of a time relative to today, which is a filter, or of a wish for the newest."""
    spans = time_words(question)
    return frozenset(at for at, word in enumerate(words) if any(start <= word.start < end for start, end in spans))


def _covered(words: Sequence[Word], kept: Sequence[Constraint], of_time: Set[int]) -> float:
    """The share of the content words, but for those `of_time`, that are part of a constraint.

    Constraints that are not sure count beside a sure one. A name counts where it is the whole question.
    """
    if not kept:
        return 0.0
    anchored = any(each.sure for each in kept)
    alone = (STOP_WORDS | FINDING).issuperset(_without(words, _places(kept) | of_time))
    counting = [each for each in kept if each.sure or (alone if each.identity else anchored)]
    taken = _places(counting)
    idle = STOP_WORDS | ASKING | _words_of_fields(counting)
    others = [word for word in _without(words, taken | of_time) if word not in idle and len(word) > 1]
    return len(taken) / (len(taken) + len(others)) if taken or others else 0.0


def _places(constraints: Iterable[Constraint]) -> set[int]:
    return {at for each in constraints for at in range(each.first, each.last)}


def _without(words: Sequence[Word], places: Set[int]) -> list[str]:
    return [word.text for at, word in enumerate(words) if at not in places]


def _words_of_fields(constraints: Sequence[Constraint]) -> set[str]:
    """The words of the fields' names, and those that refer to them."""
    fields = [field.rpartition(".")[2] for each in constraints for field in each.fields]
    referring = (cues for begin, cues in CUES.items() if any(field.startswith(begin) for field in fields))
    return {word.text for field in fields for word in words_of(field)}.union(*referring)


def shown_fields(recognised: Recognised) -> tuple[FieldInQuestion, ...]:
    """In the order of the question; a range is two of them, a lower and an upper bound."""
    return tuple(
        FieldInQuestion(words=each.matched_text, fields=each.fields, operator=operator, value=value)
        for each in recognised.constraints
        for operator, value in each.bounds
    )
