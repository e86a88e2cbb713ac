"""What the fields of a document say of a claim: `PEP 8 was created in 2001`, `PEP 257 is rejected`.

The claim names the document; of its other words some are of the field's name, or those that people use for it, and the
rest, next to each other, are a value. They may be a value alone where other documents have it in this field. A field
excludes a value that it has not: a list of authors is whole. One that says what a document is about, or how it is
related to others, excludes nothing.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from indexer.extraction.relating_fields import DOCUMENTS as RELATING
from indexer.extraction.relating_fields import LISTS
from indexer.text_analysis import query_terms
from query_api.answers.document_fields import (
    FieldLine,
    FirstPassage,
    cue_terms,
    fields_of,
    line_of,
    named_in,
    own_terms,
)
from query_api.index.text.field_index import PARTS, Span, Word, date_span, phrase_of
from query_api.query.analysis import has_words, normalise_text
from query_api.query.dates import times_in
from query_api.query.field_constraints import TOPICAL
from schemas.hits import Hit

FieldsWith = Callable[[str], Collection[str]]
"""The fields in which documents have a value."""


class FieldDecision(NamedTuple):
    line: FieldLine
    supports: bool
    claimed: str
    stated: str


def by_fields(
    claim: str, hits: Sequence[Hit], fields_with: FieldsWith, first_passage: FirstPassage
) -> Iterator[FieldDecision]:
    """What is called by a title may be what the document is about: then a passage of it that has what is claimed
    keeps its fields from excluding that."""
    for hit, named in named_in(claim, hits):
        said = [word for word in named.rest if query_terms(word.text)]
        key = (hit.collection, hit.document_id)
        passages = " ".join(each.parent_text for each in hits if (each.collection, each.document_id) == key)
        for field, values in fields_of(hit).items():
            cues = own_terms(field) | cue_terms(field)
            value = [word for word in said if not cues.issuperset(query_terms(word.text))]
            if field in RELATING or not value or value != said[said.index(value[0]) :][: len(value)]:
                continue
            text = claim[value[0].start : value[-1].end]
            has_cue, is_known = len(value) < len(said), field in fields_with(phrase_of(text))
            supports = _supports(text, values) if has_cue or is_known else None
            if supports is False and (
                field in LISTS
                or field.rpartition(".")[2] in TOPICAL
                or not (has_cue or len(values) == 1)
                or not (is_known or _may_be(value, claim, values))
                or (not named.by_number and has_words(passages, normalise_text(text)))
            ):
                continue
            if supports is not None:
                yield FieldDecision(line_of(hit, field, values, hits, first_passage), supports, text, ", ".join(values))


def _supports(text: str, values: Sequence[str]) -> bool | None:
    """None where neither: a time that a value is part of, a part of what is claimed."""
    spans = [span for value in values if (span := date_span(value)) is not None]
    if spans and (claimed := _time_of(text)) is not None:
        if any(claimed.start <= span.start and span.end <= claimed.end for span in spans):
            return True
        return False if all(span.end <= claimed.start or claimed.end <= span.start for span in spans) else None
    stated = [f" {phrase_of(value)} " for value in values]
    if all(any(f" {phrase_of(part)} " in value for value in stated) for part in PARTS.split(text)):
        return True
    return False if set(phrase_of(text).split()).isdisjoint(" ".join(stated).split()) else None


def _time_of(text: str) -> Span | None:
    return date_span(text) or next((each.span for each in times_in(text)), None)


def _may_be(value: Sequence[Word], claim: str, values: Sequence[str]) -> bool:
    """Whether words may be a value of the kind that the field has: a time, or a name."""
    if any(date_span(each) is not None for each in values):
        return _time_of(claim[value[0].start : value[-1].end]) is not None
    are_names = not any(map(str.isdigit, "".join(values)))
    return are_names and all(claim[word.start].isupper() for word in value)
