"""What a document states of itself, beside what its producer sent."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from indexer.extraction import merged_metadata
from indexer.extraction.metadata import MAX_STATED_BYTES, MAX_VALUES

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
