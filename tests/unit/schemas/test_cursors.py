"""Cursors come back as the places they were made of; anything else is refused with a sentence."""

from typing import Any, NamedTuple

import pytest

from query_api.entities.node_search import Place as NodePlace
from query_api.retrieval.pagination import Cursor
from schemas.cursors import MalformedCursor, read_cursor, write_cursor
from schemas.ids import DocumentKey


class Ranked(NamedTuple):
    decided: int
    score: float
    id: str


PLACES = [
    Cursor("a-snapshot", "a-question", 40),
    DocumentKey("a", "b"),
    DocumentKey("é'", "x/y/😀"),
    DocumentKey("a" * 128, "b" * 2000),
    NodePlace("entity", "petrel", "1", "notes"),
    Ranked(1, -0.25, "x"),
]
WRITTEN = write_cursor(DocumentKey("a", "b"))


@pytest.mark.parametrize("place", PLACES)
def test_cursor_is_read_as_it_was_written(place: Any) -> None:
    cursor = write_cursor(place)
    assert read_cursor(cursor, type(place), "a list") == place
    assert cursor.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "🦉", "é", "!!!!", "////", "WyJhIl0", "AAAA" * 20, WRITTEN[:-1], WRITTEN + "A", f"a b{WRITTEN}",
     *(write_cursor(each) for each in ({"a": 1}, ["a"], [1, 2], PLACES[-1]))],
)  # fmt: skip
def test_what_no_page_gave_out_is_refused(cursor: str) -> None:
    with pytest.raises(MalformedCursor, match=r"is not a cursor of a list of documents: give the `next_cursor`"):
        read_cursor(cursor, DocumentKey, "a list of documents")


def test_every_letter_of_a_cursor_counts() -> None:
    for at, letter in enumerate(WRITTEN[:-1]):  # of the last letter not every bit is used
        changed = WRITTEN[:at] + ("A" if letter != "A" else "B") + WRITTEN[at + 1 :]
        with pytest.raises(MalformedCursor):
            read_cursor(changed, DocumentKey, "a list")
