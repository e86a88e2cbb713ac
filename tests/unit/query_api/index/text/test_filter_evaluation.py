"""Filters against documents in memory: what each lets through, what is refused, and that no history shows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.schema import DocumentRow, documents_table
from query_api.index.text.field_index import Span, date_span
from query_api.index.text.filter_evaluation import DocumentColumns, DocumentIndex
from query_api.index.text.text_segments import Scope, Segment, Segments
from schemas.errors import MalformedFilter
from schemas.filters import parse_condition
from schemas.graph_documents import EDGE_TYPE, NODE_TYPE
from schemas.ids import DocumentKey

DAY_MS = 86_400_000


def row(name: str, metadata: dict[str, Any], collection: str = "c", **own: Any) -> DocumentRow:
    given_fields: dict[str, Any] = {"title": name.title(), "timestamp_ms": 0, "content_type": "text/plain"} | own
    version = given_fields.pop("version", None)
    return DocumentRow(DocumentKey(collection, name), version, 0, 1, revision="r", metadata=metadata, **given_fields)


def segment_of(*rows: DocumentRow) -> Segment[DocumentColumns]:
    keys = [each.key for each in rows]
    return Segment.create([str(key) for key in keys], keys, DocumentColumns.from_table(documents_table(rows)))


PROPOSALS = [
    row(
        "pep-1", {"status": "Active", "authors": ["Ann Lee", "Bo Ek"], "created": "13-Jun-2000", "pages": 12}, version=3
    ),
    row("pep-2", {"status": "withdrawn", "authors": ["Bo Ek"], "created": "2001-07-07", "pages": 9.5}),
    row("pep-3", {"status": "Final", "nested": {"topic": {"name": "Typing"}}, "created": "July, 2001", "draft": True}),
    row(
        "note",
        {"version": "3.10", "pages": "100"},
        uri="file:n.md",
        timestamp_ms=365 * DAY_MS,
        content_type="text/html",
    ),
    row("pep-1", {"secret": 1}, "other"),
]


def test_collections_hold_what_is_live_in_any_segment_and_are_gone_with_their_last_document() -> None:
    more = segment_of(row("pep-9", {}, chunks=4, passages=2), row("late", {}, "new", chunks=3, passages=1))
    segments = Segments[DocumentColumns]().with_segment(segment_of(*PROPOSALS)).with_segment(more)
    known = DocumentIndex(segments.without([DocumentKey("other", "pep-1")])).collections()
    assert known == {"c": (5, 0, 2, 4), "new": (1, 0, 1, 3)}
    assert DocumentIndex(Segments()).collections() == {}


def test_nodes_and_edges_are_not_counted_as_documents() -> None:
    made = [row("node:ann", {}, content_type=f"{NODE_TYPE}; charset=utf-8"), row("edge:e", {}, content_type=EDGE_TYPE)]
    index = DocumentIndex(Segments[DocumentColumns]().with_segment(segment_of(PROPOSALS[0], *made)))
    assert (index.collections()["c"][:2], index.n_made) == ((1, 2), 2)
    assert index.content_type(DocumentKey("c", "edge:e")) == EDGE_TYPE


def through(*filters: str, collection: str | None = "c", rows: list[DocumentRow] | None = None) -> set[str]:
    index = DocumentIndex(Segments[DocumentColumns]().with_segment(segment_of(*(rows or PROPOSALS))))
    scope = index.scope(collection, [parse_condition(text) for text in filters])
    assert scope.documents is not None
    assert all(scope.allows(key) for key in scope.documents)
    return {key.document_id for key in scope.documents}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["status=final"], {"pep-3"}),
        (["status=Final|WITHDRAWN"], {"pep-2", "pep-3"}),
        (["status!=Final"], {"pep-1", "pep-2", "note"}),
        (["authors=bo ek"], {"pep-1", "pep-2"}),
        (["authors=bo ek", "status=active"], {"pep-1"}),
        (["authors!=Ann Lee"], {"pep-2", "pep-3", "note"}),
        (["nested.topic.name=typing"], {"pep-3"}),
        (["draft=true"], {"pep-3"}),
        (["created=2001"], {"pep-2", "pep-3"}),
        (["created=2001-07"], {"pep-2", "pep-3"}),
        (["created=7 July 2001"], {"pep-2"}),
        (["created>2000"], {"pep-2", "pep-3"}),
        (["created>=2000"], {"pep-1", "pep-2", "pep-3"}),
        (["created<2001"], {"pep-1"}),
        (["created<=2001-06"], {"pep-1"}),
        (["pages>9", "pages<=12"], {"pep-1", "pep-2"}),
        (["pages>99"], {"note"}),
        (["pages=9.50"], {"pep-2"}),
        (["status>b"], {"pep-2", "pep-3"}),
        (["document=pep-1|note"], {"pep-1", "note"}),
        (["title=Pep-2"], {"pep-2"}),
        (["content_type=text/html"], {"note"}),
        (["uri=file:n.md"], {"note"}),
        (["updated<1971"], {"pep-1", "pep-2", "pep-3"}),
        (["updated=1971-01-01"], {"note"}),
        (["version=3"], {"pep-1"}),
        (["metadata.version=3.10"], {"note"}),
        (["metadata.version=3.1"], set()),
        (["draft!=false"], {"pep-1", "pep-2", "pep-3", "note"}),
        (["status=5"], set()),
        (["title=2001-99-99"], set()),
        (["title=1958"], set()),
    ],
)
def test_a_filter_lets_through(filters: list[str], expected: set[str]) -> None:
    assert through(*filters) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("author=Bo Ek", "no.* field 'author'; there are document, title, .*authors, created, .*nested.topic.name"),
        ("created>=banana", "'banana' cannot be compared by >= with any value of 'created'"),
        ("updated<yesterday", "'yesterday' cannot be compared"),
        ("updated=yesterday", "'yesterday' cannot be compared by = with any value of 'updated'"),
        ("updated!=yesterday", "'yesterday' cannot be compared by !="),
        ("version=abc", "'abc' cannot be compared"),
        ("pages=9.5|many", "'many' cannot be compared"),
        ("created=banana", "'banana' cannot be compared"),
        ("draft=maybe", "'maybe' cannot be compared"),
        ("created=2001-99-99", "'2001-99-99' cannot be compared"),
        ("secret=1", "collection 'c' has a field 'secret'"),
    ],
)
def test_what_the_documents_cannot_answer_is_refused(text: str, says: str) -> None:
    with pytest.raises(MalformedFilter, match=f"(?i){says}"):
        through(text)


@pytest.mark.parametrize("operator", ["=", "!=", ">=", "<"])
def test_a_day_that_there_is_not_is_refused_where_a_field_has_days_and_words(operator: str) -> None:
    rows = [row("a", {"created": "2001-07-07", "code": "x"}), row("b", {"created": "unknown", "code": "2001-99-98"})]
    with pytest.raises(MalformedFilter, match="'2001-99-99' cannot be compared"):
        through(f"created{operator}2001-99-99", rows=rows)
    assert through("created=unknown", rows=rows) == {"b"}
    assert through("code=2001-99-99", rows=rows) == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title=Tide", {"own", "meta"}),
        ("title!=Tide", {"else"}),
        ("metadata.title=Tide", {"meta"}),
        ("metadata.title!=Tide", {"own", "else"}),
        ("version=9.9", {"meta"}),
        ("version>=2", {"meta", "else"}),
        ("uri=9|k:own", {"own", "else"}),
        ("updated>=2020", {"else"}),
    ],
)
def test_a_name_that_documents_and_metadata_have_means_either(text: str, expected: set[str]) -> None:
    rows = [
        row("own", {}, title="Tide", uri="k:own"),
        row("meta", {"title": "tide", "version": "9.9"}),
        row("else", {"uri": 9, "updated": "2021-04-01"}, version=3),
    ]
    assert through(text, rows=rows) == expected


def test_a_version_is_a_number_also_where_no_document_has_one() -> None:
    with pytest.raises(MalformedFilter, match="'abc' cannot be compared by = with any value of 'version'"):
        through("version=abc", rows=[row("a", {})])
    assert through("version>=3", rows=[row("a", {})]) == set()


def test_a_value_may_fit_the_documents_of_any_segment() -> None:
    segments = (
        Segments[DocumentColumns]()
        .with_segment(segment_of(row("a", {"n": 1})))
        .with_segment(segment_of(row("b", {"n": "many"})))
    )
    index = DocumentIndex(segments)
    assert index.scope("c", [parse_condition("n=few")]).documents == set()
    assert index.scope("c", [parse_condition("n=1|many")]).documents == {DocumentKey("c", "a"), DocumentKey("c", "b")}


def test_a_collection_without_documents_lets_nothing_through() -> None:
    assert through("anything=1", collection="empty") == set()


def test_all_collections_are_filtered_at_once_by_what_any_of_them_has() -> None:
    assert through("secret=1", collection=None) == {"pep-1"}


def test_what_a_parser_put_beside_the_metadata_is_no_field() -> None:
    with pytest.raises(MalformedFilter):
        through("page_starts=0", rows=[row("a", {"page_starts": [0, 7], "b": 1})])


@given(st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 3)), max_size=30))
def test_documents_that_come_change_and_go_leave_no_trace(history: list[tuple[int, int | None]]) -> None:
    segments, state = Segments[DocumentColumns](), {}
    for name, value in history:
        key = DocumentKey("c", str(name))
        segments = segments.without([key])
        state.pop(key, None)
        if value is not None:
            segments = segments.with_segment(
                segment_of(row(str(name), {"value": value, f"field{value}": [value, "x"]}))
            )
            state[key] = value
        index = DocumentIndex(segments)
        for wanted in range(4):
            expected = {key for key, held in state.items() if held == wanted}
            if expected:
                assert index.scope("c", [parse_condition(f"value={wanted}")]).documents == expected
                assert index.scope(None, [parse_condition(f"field{wanted}=x")]).documents == expected
            elif state:
                with pytest.raises(MalformedFilter):
                    index.scope("c", [parse_condition(f"field{wanted}=x")])
        assert index.fields("c") == sorted({"value"} | {f"field{held}" for held in state.values()} if state else [])


def test_the_values_of_a_document_are_told_once_each_and_without_regard_to_case() -> None:
    doubled = row("pep-4", {"authors": ["Cy", "cy", "Bo Ek"], "pages": 3})
    older, newer = segment_of(*PROPOSALS), segment_of(doubled)
    index = DocumentIndex(Segments((older, newer)))
    assert index.values("authors", DocumentKey("c", "pep-4")) == ("cy", "bo ek")
    assert index.values("authors", DocumentKey("c", "pep-1")) == ("ann lee", "bo ek")
    assert index.values("metadata.nested.topic.name", DocumentKey("c", "pep-3")) == ("typing",)
    assert index.values("title", DocumentKey("c", "pep-2")) == ("pep-2",)
    assert index.values("authors", DocumentKey("c", "pep-3")) == ()
    assert index.values("authors", DocumentKey("c", "nowhere")) == ()


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
