"""The constraints that a question puts on documents' own fields: ids, titles, values and times, with their weights."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

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
_WHO = word_set("who whose whom")  # then a person is the answer, and none is given, but after `by`


class FieldCues:
    """A question's words, and which of them refer to which field."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self.text = text
        self.words = words
        self.tokens = frozenset(word.text for word in words)

    def cued(self, field: str, first: int, last: int) -> bool:
        """Whether the question refers to a field with the words `first..last`: by its name beside them, or by a cue."""
        name = field.rpartition(".")[2]
        parts = {part.text for part in words_of(name)}
        parts |= {f"{part}s" for part in parts}
        beside = [*self.words[max(0, first - 1 - NEAR_WORDS) : last], *self.words[last : last + 1]]
        if parts & {word.text for word in beside}:
            return True
        tokens = self.tokens & {"by"} if self.tokens & _WHO else self.tokens
        return any(name.lower().startswith(begin) and cues & tokens for begin, cues in CUES.items())

    def called(self, first: int) -> bool:
        """Whether the word before introduces a name, as in `the page titled Terms`."""
        return first > 0 and self.words[first - 1].text in _CALLED

    def before_documents(self, last: int) -> bool:
        """Whether the next word is one for documents, as in `withdrawn proposals`."""
        return last < len(self.words) and self.words[last].text in DOCUMENTS

    def marked(self, first: int, last: int) -> bool:
        """Whether the words are in quotes, or capitalised where a sentence would not have it."""
        start, end = self.words[first].start, self.words[last - 1].end
        if start and self.text[start - 1] in _QUOTES and self.text[end : end + 1] in tuple(_QUOTES):
            return True
        return first > 0 and self.text[start].isupper()


MAX_QUESTION_WORDS = 64
MAX_DOCUMENTS_OF_ID = 10  # an id that more documents share is no id
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
    documents are spoken of; `our revenue of 2025` may stand in a report of another year."""
    times = times_in(cues.text)
    if not times:
        return
    dated = documents.date_fields(live)
    total = int(live.sum())
    for time in times:
        inside = [at for at, word in enumerate(cues.words) if time.start <= word.start < time.end]
        if not inside:
            continue
        cued = [field for field in dated if cues.cued(field.field, inside[0], inside[-1] + 1)]
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
    spans = [(a, b) for a in range(len(words)) for b in range(a + 1, min(a + MAX_WORDS + 1, len(words)) + 1)]
    phrases = [" ".join(word.text for word in words[a:b]) for a, b in spans]
    by_span: dict[tuple[int, int], list[NamedDocuments]] = {}
    for found in documents.named_by(phrases, live):
        by_span.setdefault(spans[found.phrase], []).append(found)
    total = int(live.sum())
    for (first, last), everything in by_span.items():
        ids = [each for each in everything if each.field == "document"]
        if not ids:
            phrase = " ".join(word.text for word in words[first:last])
            named = {each.field for each in everything if _are_names(each, phrase, documents)}
            constraint = _by_value(cues, first, last, everything, named, total, is_common)
            if constraint is not None:
                yield constraint
        elif len(ids[0].rows) <= MAX_DOCUMENTS_OF_ID:
            yield _identity(first, last, _text_of(cues, first, last), ids[0])


Reading = Literal["cued", "selecting", "name", "topical"]


def _readings(
    cues: FieldCues, first: int, last: int, everything: Sequence[NamedDocuments], named: Set[str]
) -> Mapping[Reading, list[NamedDocuments]]:
    """What words may mean, the likeliest first: a value of a field that the question refers to, one that selects, a
    name, a topic. `named` are the fields in which they are names."""
    values = [each for each in everything if each.field not in IDENTITY]
    topical = [each for each in values if _is_topical(each.field)]
    begins = last - first > 1 and first == 0
    may_be_name = cues.marked(first, last) or cues.called(first) or begins
    return {
        "cued": [each for each in values if cues.cued(each.field, first, last)],
        "selecting": [each for each in values if each.field not in named and not _is_topical(each.field)],
        "name": [each for each in everything if each.field in named] if may_be_name else [],
        "topical": topical,
    }


def _is_topical(field: str) -> bool:
    return field.rpartition(".")[2].lower() in TOPICAL


def _by_value(
    cues: FieldCues,
    first: int,
    last: int,
    everything: Sequence[NamedDocuments],
    named: Set[str],
    total: int,
    is_common: IsCommon,
) -> Constraint | None:
    """The constraint that words make by their likeliest reading, among `total` documents."""
    is_single, word = last - first == 1, cues.words[first].text
    if is_single and (word in STOP_WORDS or len(word) < 2):
        return None
    readings = _readings(cues, first, last, everything, named)
    reading = next((each for each, found in readings.items() if found), None)
    if reading is None:
        return None
    chosen, matched = readings[reading], _text_of(cues, first, last)
    rows, fits = best_fits((each.rows, each.fits) for each in chosen)
    if reading == "name":
        too_many = any(len(each.rows) > MAX_DOCUMENTS_OF_ID for each in chosen)
        if too_many or (is_single and not cues.called(first) and is_common(matched, rows)):
            return None
    sure = reading == "cued"
    if reading == "selecting":
        may_be_distinctive = cues.marked(first, last) and 2 * len(rows) <= total
        sure = cues.before_documents(last) or (may_be_distinctive and not is_common(matched, rows))
    certainty = 1.0 if sure or (not is_single and reading != "topical") else UNCERTAIN
    weight = max(MIN_WEIGHT, certainty * _idf_weight(len(rows), total))
    fields = tuple(each.field for each in chosen)
    bounds: tuple[tuple[Operator, str], ...] = (("=", _value_of(cues, first, last, fields)),)
    return Constraint(first, last, matched, fields, bounds, rows, fits, weight, reading == "name", sure)


def _are_names(named: NamedDocuments, phrase: str, documents: DocumentIndex) -> bool:
    """Whether they are named by their titles, or by a value that is part of the title of each, as a short one is."""
    if named.field == "title" or len(named.rows) > MAX_DOCUMENTS_OF_ID:
        return named.field == "title"
    return all(f" {phrase} " in f" {phrase_of(title)} " for title in documents.titles(named.rows))


def _identity(first: int, last: int, matched: str, named: NamedDocuments) -> Constraint:
    return Constraint(
        first, last, matched, ("document",), (("=", matched),), named.rows, named.fits, 1.0, identity=True
    )


def _text_of(cues: FieldCues, first: int, last: int) -> str:
    return cues.text[cues.words[first].start : cues.words[last - 1].end]


def _value_of(cues: FieldCues, first: int, last: int, fields: Sequence[str]) -> str:
    """The words without the name of their field, after which a bare number is found: `volume 12`."""
    for field in fields:
        name = [word.text for word in words_of(field.rpartition(".")[2])]
        after = first + len(name)
        if after < last and [word.text for word in cues.words[first:after]] == name:
            return _text_of(cues, after, last)
    return _text_of(cues, first, last)


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
    taken = {at for each in kept for at in range(each.first, each.last)} | of_time
    alone = all(word.text in STOP_WORDS | FINDING for at, word in enumerate(words) if at not in taken)
    counting = [each for each in kept if each.sure or (alone if each.identity else anchored)]
    taken = {at for each in counting for at in range(each.first, each.last)}
    idle = STOP_WORDS | ASKING | _words_of_fields(counting)
    others = [
        at
        for at, word in enumerate(words)
        if at not in taken | of_time and word.text not in idle and len(word.text) > 1
    ]
    return len(taken) / (len(taken) + len(others)) if taken or others else 0.0


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
