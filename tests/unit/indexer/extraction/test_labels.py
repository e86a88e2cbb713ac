"""What of the metadata counts as words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.extraction.labels import MAX_LABEL_CHARACTERS, MAX_LABEL_WORDS, MAX_WORD_CHARACTERS, label_text

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
