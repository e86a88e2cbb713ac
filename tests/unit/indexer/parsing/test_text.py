"""Plain text."""

import pytest

from indexer.documents import ParsedDocument
from indexer.parsing import parse


def read(content: str) -> ParsedDocument:
    return parse(content.encode(), "text/plain")


def test_lines_of_running_text_are_joined_and_laid_out_ones_kept() -> None:
    prose = "  The current is fastest in the thalweg of a river,\n  and boats going down the river keep to it."
    table = "a      b      c\n1      2      3"
    verse = "Fest steht\nund treu"
    code = "for river in rivers_of_the_whole_world_in_order_of_length:\n    print(river)"
    parsed = read(f"{prose}\n\n{table}\n\n{verse}\n\n{code}")
    assert parsed.text.split("\n\n") == [" ".join(prose.split()), table, verse, code]


def test_list_items_stand_on_lines() -> None:
    parsed = read("- one that goes on\n  in the next line\n- two\n1) three")
    assert parsed.text == "- one that goes on in the next line\n- two\n1) three"


def test_headings_are_not_guessed() -> None:
    parsed = read("1. INTRODUCTION\n\nTitle\n=====\n\nText.")
    assert [section.headings for section in parsed.sections] == [()]


def test_a_header_block_becomes_fields() -> None:
    parsed = read("Title: The Bed\nAuthor: Ada\n  Lovelace\nX-Empty:\n\nText.\n")
    assert parsed.fields == (("title", "The Bed"), ("author", "Ada Lovelace"))
    assert parsed.title == "The Bed"
    assert parsed.text == "Title: The Bed\nAuthor: Ada Lovelace\n\nText."


@pytest.mark.parametrize("content", ["Note: one line is no header.\n\nText.", "Who: me\nand then prose\n\nText."])
def test_what_only_looks_like_a_header_is_text(content: str) -> None:
    assert read(content).fields == ()


def test_addresses_become_links() -> None:
    parsed = read("See https://example.org/a_(b), please.")
    assert [link.target for link in parsed.links] == ["https://example.org/a_(b"]


@pytest.mark.processor_seconds(20)
@pytest.mark.parametrize("content", [" " * 2_000_000 + "x", "[" * 100_000, "x" * 5_000_000, "\t|" * 200_000])
def test_odd_lines_cost_little(content: str) -> None:
    assert read(content).text
