"""What the fields of documents say: `Who wrote PEP 8?` is answered by its line `Author: …`.

A text speaks of a field where it names the document by its title or id, and its other words are of the field's name, or
those that people use for it (`CUES`). No field is known beforehand: those of a hit's metadata are looked at.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from indexer.extraction.relating_fields import DOCUMENTS as RELATING
from indexer.read.rows import PassageRow
from indexer.text_analysis import query_terms
from query_api.answers.features import SUBTITLE, Wanted, wanted
from query_api.index.text.field_index import Word, flattened, phrases_of, words_of
from query_api.query.field_constraints import CUES, FINDING
from schemas.hits import Hit
from schemas.ids import DocumentKey

FirstPassage = Callable[[DocumentKey], PassageRow | None]
STATED = 0.95  # how likely a field answers what asks for it

_ASKS_HOW = re.compile(r"\W*(?:why|how)\b", re.IGNORECASE)


class Named(NamedTuple):
    """The words of a text without the name of a document in it. `directly` if the word before the name is one of them
    that says something: `what replaced PEP 3`, not `what does PEP 3 replace`. `by_number` where the name has one."""

    rest: list[Word]
    directly: bool
    by_number: bool


class FieldLine(NamedTuple):
    """A field of a hit's document; its line is `hit.parent_text[start:end]` of this hit, or, where no text of the
    document has it, as YAML and HTML keep it, `text` alone, and `start` and `end` are the same. `is_alone` where the
    document was named by a number."""

    hit: Hit
    field: str
    text: str
    start: int
    end: int
    is_alone: bool = False


def asked_line(question: str, hits: Sequence[Hit], first_passage: FirstPassage) -> FieldLine | None:
    """That of the first document which the question names and asks a field of; None where there is none, or where it
    is in no text, so that no sentence could be cited."""
    if _ASKS_HOW.match(question):
        return None
    kind, says_by = wanted(question), any(word.text == "by" for word in words_of(question))
    for hit, named in named_in(question, hits):
        rest = frozenset(query_terms(" ".join(word.text for word in named.rest if word.text not in FINDING)))
        fields = fields_of(hit)
        fitting = [
            (len(rest - own), field)
            for field, values in fields.items()
            if rest
            and rest <= (own := own_terms(field)) | cue_terms(field)
            and _is_kind(kind, values)
            and (field not in RELATING or field.endswith("_by") == (says_by or named.directly))
        ]
        if fitting:
            field = min(fitting, key=lambda each: each[0])[1]
            line = line_of(hit, field, fields[field], hits, first_passage)
            if line.end:
                return line._replace(is_alone=named.by_number)
    return None


def named_in(text: str, hits: Sequence[Hit]) -> Iterator[tuple[Hit, Named]]:
    """Each document that a text names, once, by its first hit."""
    words = words_of(text)
    spelt = [word.text for word in words]
    for hit in {(hit.collection, hit.document_id): hit for hit in reversed(hits)}.values():
        of_fields = (("document", hit.document_id), ("title", hit.title), ("title", SUBTITLE.split(hit.title)[0]))
        names = {phrase for each in of_fields for phrase, _ in phrases_of(*each)} - {""}
        for name in sorted(names, key=lambda each: (-len(each), each)):
            run = name.split()
            places = range(len(spelt) - len(run) + 1)
            at = next((at for at in places if spelt[at : at + len(run)] == run), None)
            if at is not None:
                directly = at > 0 and bool(query_terms(spelt[at - 1]))
                yield hit, Named(words[:at] + words[at + len(run) :], directly, any(map(str.isdigit, name)))
                break


def fields_of(hit: Hit) -> Mapping[str, list[str]]:
    """{name: values} of a hit's document."""
    found: dict[str, list[str]] = {}
    for field, value in flattened(hit.metadata):
        found.setdefault(field, []).append(str(value))
    return found


def own_terms(field: str) -> frozenset[int]:
    return frozenset(query_terms(field.replace("_", " ")))


def cue_terms(field: str) -> frozenset[int]:
    """Of the words that people use for a field."""
    name = field.rpartition(".")[2]
    cues = [word for begin, words in CUES.items() if name.startswith(begin) for word in sorted(words)]
    return frozenset(query_terms(" ".join(cues)))


def _is_kind(kind: Wanted, values: Sequence[str]) -> bool:
    """Whether a field may hold what is asked for: a time or number has a digit, a person has none."""
    has_digit = any(map(str.isdigit, "".join(values)))
    return has_digit if kind in ("time", "number") else not has_digit if kind == "person" else True


def line_of(hit: Hit, field: str, values: Sequence[str], hits: Sequence[Hit], first_passage: FirstPassage) -> FieldLine:
    """In a passage that was found, or the first of the document."""
    key = DocumentKey(hit.collection, hit.document_id)
    name = field.rpartition(".")[2]
    spelt = r"[\s_-]+".join(map(re.escape, name.split("_")))
    written = re.compile(
        rf"^[^\w\n]*({spelt}s?\b[^\w\n]*:.*?{re.escape(values[0])}.*?)\s*$", re.IGNORECASE | re.MULTILINE
    )
    for each in (one for one in hits if (one.collection, one.document_id) == key):
        if match := written.search(each.parent_text):
            return FieldLine(each, field, match[1], *match.span(1))
    first = first_passage(key)
    if first and (match := written.search(first.text)):
        place = {"parent_text": first.text, "parent_start": first.start, "section": first.section}
        moved = hit.model_copy(update=place | {"passage_id": first.id})
        return FieldLine(moved, field, match[1], *match.span(1))
    return FieldLine(hit, field, f"{name}: {', '.join(values)}", 0, 0)
