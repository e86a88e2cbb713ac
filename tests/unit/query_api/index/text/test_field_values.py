"""Fields and values as a form of filters offers them: counted, and each value found again by its filter."""

from typing import Any

import pytest

from indexer.schema import DocumentRow, documents_table
from query_api.index.text.field_values import fields_of, values_of
from query_api.index.text.filter_evaluation import DocumentColumns, DocumentIndex
from query_api.index.text.text_segments import Segment, Segments
from schemas.errors import MalformedFilter
from schemas.filters import format_condition, parse_condition
from schemas.ids import DocumentKey

DAY_MS = 86_400_000


def row(name: str, metadata: dict[str, Any], collection: str = "c", **own: Any) -> DocumentRow:
    given: dict[str, Any] = {"title": name.title(), "timestamp_ms": 0, "content_type": "text/plain"} | own
    version = given.pop("version", None)
    return DocumentRow(DocumentKey(collection, name), version, 0, 1, revision="r", metadata=metadata, **given)


def index_of(*segments: list[DocumentRow], without: tuple[DocumentKey, ...] = ()) -> DocumentIndex:
    made = Segments[DocumentColumns]()
    for rows in segments:
        keys = [each.key for each in rows]
        columns = DocumentColumns.from_table(documents_table(rows))
        made = made.with_segment(Segment.create([str(key) for key in keys], keys, columns))
    return DocumentIndex(made.without(without))


OLDER = [
    row("one", {"status": "Draft", "tags": ["red", "red", "blue"], "made": "2001-07", "size": 3, "open": True}),
    row("two", {"status": "draft", "tags": ["blue"], "made": "8 May 2002", "size": "12", "title": "Other"}, version=7),
    row("three", {"status": "Draft|Final", "tags": [" blue "], "made": "soon", "deep": {"a": {"b": "x"}}}, uri="u"),
    row("four", {"status": "Final"}),
]
NEWER = [row("five", {"status": "Draft", "made": "1999"}, timestamp_ms=3 * DAY_MS), row("else", {"other": 1}, "d")]


@pytest.fixture(scope="module")
def index() -> DocumentIndex:
    return index_of(OLDER, NEWER, without=(DocumentKey("c", "four"),))


def test_the_fields_are_those_of_live_documents_of_the_collection_with_their_kinds(index: DocumentIndex) -> None:
    found = {field.name: (field.kind, field.documents) for field in fields_of(index, "c")}
    assert found == {
        "content_type": ("text", 4),
        "document": ("text", 4),
        "title": ("text", 4),
        "updated": ("date", 4),
        "made": ("date", 4),
        "status": ("text", 4),
        "tags": ("text", 3),
        "size": ("number", 2),
        "uri": ("text", 1),
        "version": ("number", 1),
        "deep.a.b": ("text", 1),
        "metadata.title": ("text", 1),
        "open": ("boolean", 1),
    }
    counts = [field.documents for field in fields_of(index, "c")]
    assert counts == sorted(counts, reverse=True)
    assert [field.name for field in fields_of(index, "d") if field.origin == "metadata"] == ["other"]


def listed(index: DocumentIndex, field: str, prefix: str, limit: int) -> tuple[list[tuple[str, int]], int]:
    found = values_of(index, field, "c", prefix, limit)
    return [(each.value, each.documents) for each in found.values], found.total


@pytest.mark.parametrize(
    ("field", "prefix", "expected"),
    [
        ("status", "", [("Draft", 3), ("Draft|Final", 1)]),
        ("status", " DRAFT", [("Draft", 3), ("Draft|Final", 1)]),
        ("status", "f", []),
        ("tags", "", [("blue", 3), ("red", 1)]),
        ("size", "", [("12", 1), ("3", 1)]),
        ("open", "t", [("true", 1)]),
        ("title", "t", [("Three", 1), ("Two", 1)]),
        ("metadata.title", "", [("Other", 1)]),
        ("deep.a.b", "", [("x", 1)]),
        ("updated", "", [("1970-01-01", 3), ("1970-01-04", 1)]),
        ("updated", "1970-01-04", [("1970-01-04", 1)]),
        ("uri", "", [("u", 1)]),
    ],
)
def test_values_are_counted_by_documents_those_of_most_first(
    index: DocumentIndex, field: str, prefix: str, expected: list[tuple[str, int]]
) -> None:
    assert listed(index, field, prefix, 10) == (expected, len(expected))


def test_a_list_of_values_is_cut_and_says_how_many_there_are(index: DocumentIndex) -> None:
    assert listed(index, "document", "", 2) == ([("five", 1), ("one", 1)], 4)


def test_an_unknown_field_is_refused_with_those_that_there_are(index: DocumentIndex) -> None:
    with pytest.raises(MalformedFilter, match=r"a field 'stauts'; there are document, .*status"):
        values_of(index, "stauts", "c", "", 10)


HARD = ["a|b", r"a\|b", "\\", "=x", ">= 1", "a=b!=c", "  blanks  ", "two\nlines", "ÄÖ ß", '"quoted"', "%26&+", "O'Ö"]


def test_every_value_is_found_again_by_its_filter() -> None:
    index = index_of([row(f"d{at}", {"field": value}) for at, value in enumerate(HARD)])
    found = values_of(index, "field", "c", "", 100)
    assert {each.value for each in found.values} == {value.strip() for value in HARD}
    for value, count, text in ((each.value, each.documents, each.filter) for each in found.values):
        assert text is not None
        let_through = index.scope("c", [parse_condition(text)]).documents
        assert let_through is not None
        assert [HARD[int(key.document_id[1:])].strip() for key in let_through] == [value] * count


@pytest.mark.parametrize(
    ("field", "value"), [("a=b", "x"), ("a|b", "x"), (" a", "x"), ("a", "  "), ("a", "x" * 2_000), ("", "x")]
)
def test_where_no_filter_can_be_written_there_is_none(field: str, value: str) -> None:
    assert format_condition(field, value) is None


def test_blank_and_overlong_texts_are_no_values() -> None:
    index = index_of([row("a", {"f": ["", "  ", "x" * 301, "x" * 300]})])
    assert listed(index, "f", "", 10) == ([("x" * 300, 1)], 1)
