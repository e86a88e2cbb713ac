"""The cursor of a search: read back as written, refused when anything about it was changed."""

import pytest

from indexer.errors import MalformedCursor
from query_api.retrieval.cache_key import question_of
from query_api.retrieval.cursors import Cursor, read_cursor, write_cursor
from schemas.search import SearchRequest

CURSOR = Cursor("a-snapshot", "a-question", 40)


def test_a_cursor_is_read_as_it_was_written() -> None:
    assert read_cursor(write_cursor(CURSOR)) == CURSOR


@pytest.mark.parametrize(
    "text",
    ["", "x", "🦉", "AAAA" * 20, write_cursor(CURSOR)[:-1], write_cursor(CURSOR) + "A", "a b" + write_cursor(CURSOR)],
)
def test_what_no_page_gave_out_is_refused(text: str) -> None:
    with pytest.raises(MalformedCursor, match="next_cursor"):
        read_cursor(text)


def test_every_letter_of_a_cursor_counts() -> None:
    written = write_cursor(CURSOR)
    for at, letter in enumerate(written[:-1]):  # of the last letter not every bit is used
        changed = written[:at] + ("A" if letter != "A" else "B") + written[at + 1 :]
        with pytest.raises(MalformedCursor):
            read_cursor(changed)


def test_a_question_is_the_same_whatever_page_of_it_and_however_fresh() -> None:
    first = SearchRequest(q="the river", collection="a")
    same = {"k": 3, "offset": 20, "after": "0:7", "wait_seconds": 1, "cache": False}
    assert question_of(first.model_copy(update=same)) == question_of(first)
    for other in ({"q": "the River"}, {"collection": None}, {"mode": "graph"}, {"group": "chunk"}):
        assert question_of(first.model_copy(update=other)) != question_of(first)
