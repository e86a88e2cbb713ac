"""Judgements of documents that a collection lacks: most are misspelt ids. All are reported at once, with the ids that
are nearest to it, or are left out if that is asked for."""

from collections import defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from rapidfuzz import fuzz, process

from schemas.analytics import EvaluatedQuestion, UnknownDocument

MOST_REPORTED = 200
MOST_WITH_SUGGESTIONS = 20  # each is compared with all ids of the collection
SUGGESTIONS = 3
MIN_SIMILARITY = 70.0  # of 100


class LeftOut(NamedTuple):
    """The questions that are measured nevertheless, and the ids of what is not: documents, and questions none of whose
    relevant documents is there."""

    kept: list[EvaluatedQuestion]
    documents: list[str]
    questions: list[str]


def unknown_documents(questions: Sequence[EvaluatedQuestion], present: AbstractSet[str]) -> list[UnknownDocument]:
    """By id, the first MOST_REPORTED, with the questions that name them."""
    named: dict[str, list[str]] = defaultdict(list)
    for question in questions:
        for document in question.relevant.keys() - present:
            named[document].append(question.id)
    ids = list(present)
    return [
        UnknownDocument(
            id=document,
            questions=named[document],
            suggestions=_nearest(document, ids) if place < MOST_WITH_SUGGESTIONS else [],
        )
        for place, document in enumerate(sorted(named)[:MOST_REPORTED])
    ]


def _nearest(document: str, ids: Sequence[str]) -> list[str]:
    """The best first; of equals the first by id."""
    found = process.extract(document, ids, scorer=fuzz.ratio, limit=SUGGESTIONS, score_cutoff=MIN_SIMILARITY)
    return [name for name, _, _ in sorted(found, key=lambda each: (-each[1], each[0]))]


def without_unknown(questions: Sequence[EvaluatedQuestion], present: AbstractSet[str]) -> LeftOut:
    """The questions without judgements of documents that are not there; a question none of whose relevant documents is
    there is left out."""
    kept: list[EvaluatedQuestion] = []
    documents: set[str] = set()
    lost: list[str] = []
    for question in questions:
        documents |= question.relevant.keys() - present
        relevant = {document: grade for document, grade in question.relevant.items() if document in present}
        if any(relevant.values()):
            kept.append(question.model_copy(update={"relevant": relevant}))
        else:
            lost.append(question.id)
    return LeftOut(kept, sorted(documents), lost)
