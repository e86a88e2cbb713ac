"""When documents are from: by their own dates in any segment, else by when their records arrived."""

import pytest

from indexer.schema import DocumentRow
from query_api.index.text.dates import Span, date_span
from query_api.index.text.filters import DocumentColumns, DocumentIndex
from query_api.index.text.segments import Scope, Segments
from schemas.filters import parse_condition
from schemas.ids import DocumentKey
from tests.unit.query_api.index.text.test_filters import row, segment_of


def span(text: str) -> Span:
    read = date_span(text)
    assert read is not None
    return read


def arrived(name: str, day: str, **metadata: str | list[str]) -> DocumentRow:
    return row(name, metadata, timestamp_ms=span(day).start)


INDEX = DocumentIndex(
    Segments[DocumentColumns]()
    .with_segment(
        segment_of(
            arrived("gone", "2026-03-02", created="2026-03-01"),
            arrived("made", "2026-03-09", created="2020-01-01", updated="2026-03-02"),
            arrived("held", "2026-03-09", created="2026-03", held=["2026-03-02", "2026-04-01"]),
        )
    )
    .without([DocumentKey("c", "gone")])
    .with_segment(
        segment_of(
            arrived("gone", "2026-03-09", created="2021-05-05"), arrived("plain", "2026-03-02", author="Ann Lee")
        )
    )
)


@pytest.mark.parametrize(
    ("when", "wanted", "expected"),
    [
        ("2026-03-02", "", {"made", "plain"}),
        ("2026-03-02", "created", {"plain"}),
        ("2026-03", "created", {"held", "plain"}),
        ("2020", "created", {"made"}),
        ("2021", "", {"gone"}),
        ("1999", "", set()),
    ],
)
def test_documents_within_a_time(when: str, wanted: str, expected: set[str]) -> None:
    found, looked_at = INDEX.within(span(when), Scope("c"), lambda field: field == wanted)
    assert {key.document_id for key in found.documents or ()} == expected
    assert looked_at == ((wanted,) if wanted else ("created", "updated"))


def test_only_documents_of_the_scope_are_within_a_time() -> None:
    scope = INDEX.scope("c", [parse_condition("document!=plain")])
    found, _ = INDEX.within(span("2026-03-02"), scope, lambda _: False)
    assert {key.document_id for key in found.documents or ()} == {"made"}


@pytest.mark.parametrize(
    ("name", "before", "expected"),
    [
        ("made", "2026-12-31", "2026-03-02"),
        ("made", "2026-01-01", "2020-01-01"),
        ("held", "2026-12-31", "2026-03-01"),
        ("held", "2026-01-01", "2026-03-09"),
        ("gone", "2026-12-31", "2021-05-05"),
        ("plain", "2026-12-31", "2026-03-02"),
    ],
)
def test_a_document_is_from_its_newest_own_date_that_does_not_lie_ahead(name: str, before: str, expected: str) -> None:
    assert INDEX.date_of(DocumentKey("c", name), span(before).start) == span(expected).start


def test_a_document_that_is_not_there_is_from_nowhen() -> None:
    assert INDEX.date_of(DocumentKey("c", "nobody"), span("2026").start) == 0
