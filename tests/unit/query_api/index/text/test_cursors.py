"""Cursors of document lists."""

import pytest

from indexer.errors import MalformedCursor
from query_api.index.text.snapshot import read_cursor, write_cursor
from schemas.ids import DocumentKey


@pytest.mark.parametrize(
    "key", [DocumentKey("a", "b"), DocumentKey("é'", "x/y/😀"), DocumentKey("a" * 128, "b" * 2000)]
)
def test_a_cursor_comes_back_as_the_key_it_was_made_of(key: DocumentKey) -> None:
    cursor = write_cursor(key)
    assert read_cursor(cursor) == key
    assert cursor.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("cursor", ["", "x", "é", "!!!!", "WyJhIl0", "eyJhIjoxfQ", "WzEsMl0", "////"])
def test_anything_else_is_refused(cursor: str) -> None:
    with pytest.raises(MalformedCursor, match="list of documents"):
        read_cursor(cursor)
