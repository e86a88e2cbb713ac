"""Metadata: what a document states of itself beside what its producer sent, and what of it counts as words."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.extraction.metadata import (
    MAX_LABEL_CHARACTERS,
    MAX_LABEL_WORDS,
    MAX_STATED_BYTES,
    MAX_VALUES,
    MAX_WORD_CHARACTERS,
    label_text,
    merged_metadata,
)

LIMIT = 64 * 1024
HEADER = (
    ("pep", "8"),
    ("title", "Style Guide"),
    ("author", "Guido van Rossum <guido@example.org>, Fred L. Drake, Jr."),
    ("status", "Active"),
    ("created", "05-Jul-2001"),
    ("requires", "7, 257"),
    ("python_version", "3.5"),
)


def test_a_header_becomes_metadata_value_by_value() -> None:
    assert merged_metadata({}, HEADER, LIMIT) == {
        "pep": "8",
        "author": ["Guido van Rossum", "Fred L. Drake, Jr."],
        "status": "Active",
        "created": "05-Jul-2001",
        "requires": ["7", "257"],
        "python_version": "3.5",
        "stated_fields": ["pep", "author", "status", "created", "requires", "python_version"],
    }


def test_what_the_producer_sent_wins_whatever_its_case() -> None:
    sent = {"Status": "Withdrawn", "author": {"name": "Ada"}, "year": 2001}
    merged = merged_metadata(sent, (*HEADER, ("author.name", "Ben"), ("year", "1999")), LIMIT)
    assert merged.items() >= sent.items()
    assert merged["stated_fields"] == ["pep", "created", "requires", "python_version"]


def test_a_document_that_states_nothing_keeps_what_was_sent() -> None:
    assert merged_metadata({"year": 2001}, (), LIMIT) == {"year": 2001}
    assert merged_metadata({"year": 2001}, (("year", "1999"), ("title", "T")), LIMIT) == {"year": 2001}


def test_a_field_said_several_times_is_a_list_of_its_values() -> None:
    assert merged_metadata({}, [("tags", "a"), ("tags", "b"), ("tags", "a")], LIMIT)["tags"] == ["a", "b"]


def test_texts_and_the_names_that_parsers_use_are_no_metadata() -> None:
    fields = (("page_starts", "0"), ("stated_fields", "a"), ("abstract", "x" * 501), ("n" * 65, "v"), ("kind", "note"))
    assert merged_metadata({}, fields, LIMIT) == {"kind": "note", "stated_fields": ["kind"]}


def test_what_does_not_fit_is_left_out_and_the_next_that_does_is_taken() -> None:
    fields = [(f"field{number}", "x" * 400) for number in range(40)]
    merged = merged_metadata({}, [*fields, ("status", "Final")], LIMIT)
    assert merged["stated_fields"][-1] == "status"
    assert 10 < len(merged["stated_fields"]) < 30
    assert merged_metadata({"note": "y" * 100}, fields, 120) == {"note": "y" * 100}
    assert len(merged_metadata({}, [("tags", f"t{n}") for n in range(100)], LIMIT)["tags"]) == MAX_VALUES


@given(
    sent=st.dictionaries(st.text(max_size=6), st.integers() | st.text(max_size=30), max_size=5),
    fields=st.lists(st.tuples(st.sampled_from(["a", "b.c", "author", "tags", ""]), st.text(max_size=600)), max_size=40),
    limit=st.integers(0, 3_000),
)
def test_any_header_stays_within_its_bounds(sent: dict[str, Any], fields: list[tuple[str, str]], limit: int) -> None:
    merged = merged_metadata(sent, fields, limit)
    assert merged.items() >= sent.items()
    size, of_sent = len(msgspec.json.encode(merged)), len(msgspec.json.encode(sent))
    assert size <= max(limit, of_sent)
    assert size <= of_sent + MAX_STATED_BYTES


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)


def test_authors_keywords_and_status_are_read_in_the_order_of_their_fields() -> None:
    metadata = {
        "status": "draft",
        "keywords": "paging, virtual memory; Multics",
        "authors": ["Prieve, B. G.", "Fabry, R. S."],
        "date": "October, 1976",
        "cr_categories": ["4.30", "4.32"],
    }
    assert label_text(metadata) == "Prieve B. G., Fabry R. S., paging virtual memory Multics, draft"


@pytest.mark.parametrize("word", ["C/C++", "client/server", "utf8", "May Ford", "decade", "Ada-95", "Zürich", "B-tree"])
def test_a_word_is_read(word: str) -> None:
    assert label_text({"keywords": [word]}) == word


@pytest.mark.parametrize(
    "value",
    [
        "https://example.org/a",
        "www.example.org",
        "mailto:/ada",
        "ada@example.org",
        "/usr/share/doc",
        "C:\\texts\\a.txt",
        "figures/heron.png",
        "a/b/c",
        "550e8400-e29b-41d4-a716-446655440000",
        "9e107d9d372bb6826bd81d3542a419d6",
        "sha256:9e107d9d372bb6826bd81d3542a419d6",
        "3f2a9bc",
        "2024-01-02T10:00:00Z",
        "Tue, 12 May 2021",
        "1958",
        "",
        "x" * (MAX_WORD_CHARACTERS + 1),
        "word " * MAX_LABEL_CHARACTERS,
        1958,
        True,
        None,
        {"name": "inside"},
        [["inside"]],
    ],
)
def test_what_is_no_word_is_left_out(value: Any) -> None:
    assert label_text({"a": value}) == ""
    assert label_text({"a": [value, "draft"]}) == "draft"


def test_a_document_has_room_for_so_many_words() -> None:
    read = label_text({"keywords": [f"word{number}x" for number in range(1_000)], "status": "draft"})
    assert len(read.split()) == MAX_LABEL_WORDS


def test_what_the_text_itself_says_of_its_document_is_not_read_twice() -> None:
    header = {"author": ["Ada Lovelace", "Ben Okri"], "status": "Final", "stated_fields": ["author", "status"]}
    assert label_text(header) == "Ada Lovelace, Ben Okri, Final"
    assert label_text(header, "Notes by Ada Lovelace. Status: final.") == "Ben Okri"
    assert label_text({"status": "Final"}, "Status: final.") == "Final", "what the producer sent is as ever"


@pytest.mark.parametrize(
    ("field", "value"),
    [("description", "A tale"), ("layout", "post"), ("published", "true"), ("dc.description", "A tale"), ("id", "n1")],
)
def test_what_describes_or_sets_a_document_is_no_label(field: str, value: str) -> None:
    assert label_text({field: value, "stated_fields": [field]}) == ""


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=8))
def test_any_metadata_is_read_the_same_in_any_order(metadata: dict[str, Any]) -> None:
    read = label_text(metadata)
    assert label_text(dict(reversed(metadata.items()))) == read
    assert len(read.split()) <= MAX_LABEL_WORDS
