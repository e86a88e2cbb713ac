"""What a question asks of documents' own fields: ids, titles, values and times, and how much each tells."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.extracting.words import STOP_WORDS, word_set
from indexer.read.fields.phrases import LITERAL, MAX_WORDS, Fit, best_fits
from indexer.read.fields.words import Word, words_of
from indexer.read.resident.documents import Called, DocumentIndex
from query_api.channels.structured.times import times_in
from schemas.filters import Operator

MAX_QUESTION_WORDS = 64
MAX_CALLED_BY_ID = 10  # documents; an id that more share is no id
LEAST_WEIGHT = 0.05
MOST_BESIDE_A_TITLE = 2  # words
UNCERTAIN = 0.4  # what a single common word counts that happens to be a value
IDENTITY = ("document", "title")

# Words that people put around fields, by the beginnings of the fields' names they speak of.
_CUES = {
    "author": word_set("author authors authored by written wrote writer writers write propose proposed proposes"),
    "creator": word_set("author authors by created creator creators made"),
    "created": word_set("created written started begun dated"),
    "date": word_set("dated published appeared written date"),
    "published": word_set("published publication appeared dated"),
    "year": word_set("published year dated"),
    "delegate": word_set("delegate delegates delegated"),
    "sponsor": word_set("sponsor sponsors sponsored"),
    "editor": word_set("edited editor editors"),
}
# Words that ask for documents rather than say what they are about.
_DOCUMENTS = word_set(
    """article articles document documents entries entry file files page pages paper papers pep peps piece pieces post
    posts proposal proposals publication publications record records report reports rfc rfcs text texts"""
)
_ASKING = _DOCUMENTS | word_set(
    """author authored authors called created date dated find get give id kind labelled list marked name names number
    published search show status tell title titled type write writes written wrote year"""
)
# Fields that say what a document is about, which its text says better.
_TOPICAL = word_set("keyword keywords tag tags topic topics subject subjects category categories label labels")
_ID_CUES = word_set("document doc id file identifier")
_LITERAL = re.compile(r"[^\s\"'“”‘’()\[\]{}<>?!,;]+")
_QUOTES = "\"'“”‘’«»`"


@dataclass(frozen=True)
class Constraint:
    """One thing a question asks of a document: words `first..last` (exclusive) say it, `rows` are those that have it.

    `said` are these words as the question has them, `fields` those that may hold it, `bounds` what it asks of them, as
    filters have it: operators with values. `fits` is how each of `rows` has it, (n_rows,) of Fit.

    `weight`, in (0, 1], is how much it tells: how few documents have it, and how surely the words mean it. One that is
    not `sure` may be about the subject as well: a common word that happens to be a value, a keyword, a title.
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


def recognise(question: str, documents: DocumentIndex, live: NDArray[np.bool_]) -> Recognised:
    """What the question names among the live rows: the longest phrases first, no word for two constraints."""
    words = words_of(question)[:MAX_QUESTION_WORDS]
    total = int(live.sum())
    if not words or not total:
        return Recognised((), 0.0)
    speaking = _Speaking(question, words)
    found = [*_by_literal_id(question, words, documents, live), *_by_time(speaking, documents, live)]
    found += _by_phrase(speaking, documents, live)
    taken: set[int] = set()
    kept: list[Constraint] = []
    for each in sorted(found, key=lambda c: (not c.identity or c.last - c.first < 2, c.first - c.last, c.first)):
        span = set(range(each.first, each.last))
        if not span & taken:
            taken |= span
            kept.append(each)
    return Recognised(tuple(sorted(kept, key=lambda c: c.first)), _covered(words, kept))


class _Speaking:
    """A question's words, and which of them speak of which field."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self.text = text
        self.words = words
        self.said = frozenset(word.text for word in words)

    def cued(self, field: str) -> bool:
        """Whether the question speaks of a field, by its name or as people do."""
        name = field.rpartition(".")[2]
        parts = {part.text for part in words_of(name)}
        if parts & self.said or {f"{part}s" for part in parts} & self.said:
            return True
        return any(name.lower().startswith(begin) and cues & self.said for begin, cues in _CUES.items())

    def before_documents(self, last: int) -> bool:
        """Whether the word behind is one for documents, as in `withdrawn proposals`."""
        return last < len(self.words) and self.words[last].text in _DOCUMENTS

    def marked(self, first: int, last: int) -> bool:
        """Whether the words stand in quotes, or are written with capitals where a sentence would not have them."""
        start, end = self.words[first].start, self.words[last - 1].end
        if start and self.text[start - 1] in _QUOTES and self.text[end : end + 1] in tuple(_QUOTES):
            return True
        return first > 0 and self.text[start].isupper()


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
    for called in documents.called([LITERAL + literal.casefold() for literal, _, _ in spelt], live):
        literal, first, last = spelt[called.phrase]
        if len(called.rows) <= MAX_CALLED_BY_ID:
            yield _identity(first, last, literal, _by_spelling(literal, called, documents))


def _by_spelling(literal: str, called: Called, documents: DocumentIndex) -> Called:
    """Where an id is exactly this, the others are nearly it: who says `Case.md` means that more than `case.md`."""
    exact = np.array([key.document_id == literal for key in documents.keys(called.rows)], dtype=np.bool_)
    nearly = np.where(exact, called.fits, np.int8(Fit.NEARLY)) if exact.any() else called.fits
    return called._replace(fits=nearly)


def _by_time(speaking: _Speaking, documents: DocumentIndex, live: NDArray[np.bool_]) -> Iterable[Constraint]:
    """Times, in the fields that the question speaks of, else in those with one date a document."""
    times = times_in(speaking.text)
    if not times:
        return
    dated = documents.dated(live)
    wanted = [field for field in dated if speaking.cued(field.field)]
    wanted = wanted or [field for field in dated if len(field.rows) == len(np.unique(field.rows))]
    total = int(live.sum())
    for time in times:
        inside = [at for at, word in enumerate(speaking.words) if time.start <= word.start < time.end]
        if not inside:
            continue
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


def _by_phrase(speaking: _Speaking, documents: DocumentIndex, live: NDArray[np.bool_]) -> Iterable[Constraint]:
    """Ids in other spellings, titles and values of metadata, as whole words."""
    words = speaking.words
    spans = [(a, b) for a in range(len(words)) for b in range(a + 1, min(a + MAX_WORDS + 1, len(words)) + 1)]
    phrases = [" ".join(word.text for word in words[a:b]) for a, b in spans]
    by_span: dict[tuple[int, int], list[Called]] = {}
    for called in documents.called(phrases, live):
        by_span.setdefault(spans[called.phrase], []).append(called)
    total = int(live.sum())
    for (first, last), everything in by_span.items():
        said = _shown(speaking, first, last)
        ids = [each for each in everything if each.field == "document"]
        if ids:
            if len(ids[0].rows) <= MAX_CALLED_BY_ID:
                yield _identity(first, last, said, ids[0])
            continue
        single, marked = last - first == 1, speaking.marked(first, last)
        if single and (words[first].text in STOP_WORDS or len(words[first].text) < 2):
            continue
        values = [each for each in everything if each.field not in IDENTITY]
        titles = [each for each in everything if each.field == "title" and (marked or (not single and first == 0))]
        spoken_of = [each for each in values if speaking.cued(each.field)]
        chosen = spoken_of or values or titles
        if not chosen or (chosen is titles and len(titles[0].rows) > MAX_CALLED_BY_ID):
            continue
        rows, fits = best_fits((each.rows, each.fits) for each in chosen)
        topical = all(each.field.rpartition(".")[2].lower() in _TOPICAL for each in chosen)
        sure = bool(spoken_of) or (chosen is values and not topical and (marked or speaking.before_documents(last)))
        certainty = 1.0 if sure or (not single and not topical) else UNCERTAIN
        weight = max(LEAST_WEIGHT, certainty * _telling(len(rows), total))
        fields = tuple(each.field for each in chosen)
        bounds: tuple[tuple[Operator, str], ...] = (("=", _value_of(speaking, first, last, fields)),)
        yield Constraint(first, last, said, fields, bounds, rows, fits, weight, chosen is titles, sure)


def _identity(first: int, last: int, said: str, called: Called) -> Constraint:
    return Constraint(first, last, said, ("document",), (("=", said),), called.rows, called.fits, 1.0, identity=True)


def _shown(speaking: _Speaking, first: int, last: int) -> str:
    return speaking.text[speaking.words[first].start : speaking.words[last - 1].end]


def _value_of(speaking: _Speaking, first: int, last: int, fields: Sequence[str]) -> str:
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


def _covered(words: Sequence[Word], kept: Sequence[Constraint]) -> float:
    """The share of the words that say what is sought, that are part of a constraint.

    Constraints that are not sure count beside a sure one. A title counts where it is nearly all that was asked.
    """
    if not kept:
        return 0.0
    anchored = any(each.sure for each in kept)
    counting = [each for each in kept if each.sure or (anchored and not each.identity)]
    titles = [each for each in kept if each.identity and not each.sure]
    if titles and sum(each.last - each.first for each in titles) + MOST_BESIDE_A_TITLE >= len(words):
        counting = list(kept)
    taken = {at for each in counting for at in range(each.first, each.last)}
    fields = [field.rpartition(".")[2] for each in counting for field in each.fields]
    spoken = {word.text for field in fields for word in words_of(field)}
    spoken |= {cue for begin, cues in _CUES.items() if any(field.startswith(begin) for field in fields) for cue in cues}
    idle = STOP_WORDS | _ASKING | spoken
    telling = [at for at, word in enumerate(words) if at in taken or (word.text not in idle and len(word.text) > 1)]
    return sum(at in taken for at in telling) / len(telling) if telling else 0.0
