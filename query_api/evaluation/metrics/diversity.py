"""How much of a collection an answer shows: its sources, its categories, its years.

Each is a coverage: distinct ones among the first k hits, as a share of the most that k hits could show. After subtopic
recall (Zhai, Cohen and Lafferty 2003, "Beyond Independent Relevance"), with a document's own metadata as its subtopics.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

CATEGORY_FIELDS = ("category", "categories", "topic", "topics", "tag", "tags", "type", "kind", "subject")
DATE_FIELDS = ("date", "created", "published", "year", "created_at", "published_at", "updated")

_YEAR = re.compile(r"(?<!\d)(1\d{3}|20\d{2})(?!\d)")


class Diversity(msgspec.Struct, frozen=True):
    """Means over the questions that have hits. `sources` are documents; null for what no document's metadata tells."""

    sources: float | None
    categories: float | None
    years: float | None


def diversity(answers: Sequence[Sequence[str]], metadata: Mapping[str, Mapping[str, Any]]) -> Diversity:
    """Of the documents of each question's hits; `metadata` is that of every document of the collection."""
    categories = {document: categories_of(fields) for document, fields in metadata.items()}
    years = {document: years_of(fields) for document, fields in metadata.items()}
    sources = {document: frozenset((document,)) for document in {each for answer in answers for each in answer}}
    return Diversity(
        sources=_coverage(answers, sources, None),
        categories=_coverage(answers, categories, len(frozenset().union(*categories.values()))),
        years=_coverage(answers, years, len(frozenset().union(*years.values()))),
    )


def categories_of(fields: Mapping[str, Any]) -> frozenset[str]:
    """What a document's metadata files it under: the values of the first of CATEGORY_FIELDS that it has."""
    for name in CATEGORY_FIELDS:
        given = fields.get(name)
        values = given if isinstance(given, list) else [given]
        if found := frozenset(value for value in values if isinstance(value, str) and value):
            return found
    return frozenset()


def years_of(fields: Mapping[str, Any]) -> frozenset[str]:
    """The year, of four digits, of the first of DATE_FIELDS that has one."""
    for name in DATE_FIELDS:
        given = fields.get(name)
        if isinstance(given, str | int) and not isinstance(given, bool) and (year := _YEAR.search(str(given))):
            return frozenset((year[1],))
    return frozenset()


def _coverage(
    answers: Sequence[Sequence[str]], values: Mapping[str, frozenset[str]], distinct: int | None
) -> float | None:
    """`distinct` is how many values the collection has; None where every document has one of its own."""
    if distinct == 0:
        return None
    nothing: frozenset[str] = frozenset()
    shares = [
        min(
            1.0,
            len(nothing.union(*(values.get(document, nothing) for document in answer)))
            / (len(answer) if distinct is None else min(len(answer), distinct)),
        )
        for answer in answers
        if answer
    ]
    return round(sum(shares) / len(shares), 6) if shares else None
