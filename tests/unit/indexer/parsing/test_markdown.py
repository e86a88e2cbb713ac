"""Markdown and its front matter."""

import itertools

import pytest

from indexer.documents import Figure, ParsedDocument, TextLink
from indexer.errors import UnparsableDocument
from indexer.parsing import parse


def read(content: str) -> ParsedDocument:
    return parse(content.encode(), "text/markdown")


def test_front_matter_becomes_fields_as_it_was_written() -> None:
    parsed = read(
        "---\ntitle: The Bed\nauthor: [Meyer, Braun]\ndate: 2024-01-05\nversion: 1.10\ndraft: yes\nempty:\n"
        "Replaces-Doc:\n  - old\nnested: {a: 1}\n---\n# Heading\n\nText.\n"
    )
    assert parsed.fields == (
        ("title", "The Bed"),
        ("author", "Meyer"),
        ("author", "Braun"),
        ("date", "2024-01-05"),
        ("version", "1.10"),
        ("draft", "yes"),
        ("replaces_doc", "old"),
        ("nested.a", "1"),
    )
    assert parsed.title == "The Bed"
    assert parsed.text == "Heading\n\nText."


def test_front_matter_that_is_no_yaml_is_read_line_by_line() -> None:
    parsed = read('---\ntitle: Rivers: a history\nauthor: "Meyer"\n---\nText.\n')
    assert parsed.fields == (("title", "Rivers: a history"), ("author", "Meyer"))


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (
            "---\nauthor: Meyer\ntitle: Rivers: a history\n---\nText.\n",
            "is not plain YAML (line 3: mapping values are not allowed here): of its lines only `name: value` was",
        ),
        ("---\na: &x 1\nb: *x\n---\nText.\n", "(an alias in front matter)"),
        (f"---\nk: {'x' * 70_000}\n---\nText.\n", "has 70,003 characters, more than 65,536"),
        ("---\ntitle: Rivers\n\nText.\n", "no line `---` ends it: it was read as text."),
    ],
)
def test_front_matter_that_cannot_be_read_as_it_was_meant_is_noted(content: str, note: str) -> None:
    parsed = read(content)
    assert "Text." in parsed.text
    (told,) = parsed.notes
    assert note in told


@pytest.mark.parametrize(
    "content", ["---\ntitle: Rivers\n---\nText.\n", "---\n---\nText.\n", "---\n# none yet\n---\nText.\n", "Text.\n"]
)
def test_front_matter_in_order_or_none_needs_no_note(content: str) -> None:
    assert (read(content).text, read(content).notes) == ("Text.", ())


def test_text_between_two_lines_at_the_beginning_is_no_front_matter() -> None:
    parsed = read("---\n\nOnce upon a time.\n\n---\n\nThe end.\n")
    assert (parsed.text, parsed.fields, parsed.notes) == ("Once upon a time.\n\nThe end.", (), ())


@pytest.mark.parametrize(
    ("between", "why"),
    [
        ("@ nothing is stated here,\n\tit is only said.", "is not plain YAML (line 2: found character '@'"),
        ('"Come in," he said: "there\nis room."', "is not plain YAML (line 2:"),
        ("Once upon a time: " + "and on " * 10_000, "has 70,018 characters, more than 65,536"),
    ],
)
def test_text_between_two_lines_that_is_no_yaml_either_is_not_lost(between: str, why: str) -> None:
    parsed = read(f"---\n{between}\n---\nThe end.\n")
    assert between.split(maxsplit=1)[0].strip('"') in parsed.text
    assert parsed.text.endswith("The end.")
    assert parsed.fields == ()
    (told,) = parsed.notes
    assert told.startswith(f"What is between the first two lines of dashes {why}")
    assert told.endswith("begins with no `name:`: it was read as text.")


@pytest.mark.parametrize("begin", ["", "\n", "# drafted by hand\n\n  # twice\n", "Last-Read: 2001\n"])
def test_front_matter_may_begin_with_blank_lines_and_comments(begin: str) -> None:
    parsed = read(f"---\n{begin}title: Rivers: a history\n---\nText.\n")
    assert (parsed.text, parsed.title, len(parsed.notes)) == ("Text.", "Rivers: a history", 1)


@pytest.mark.processor_seconds(10)
@pytest.mark.parametrize(
    "front_matter",
    [
        "a: &a [x, x]\n" + "\n".join(f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}]" for a, b in itertools.pairwise("abcdefghi")),
        "[" * 50_000,
        "k: " + "x" * 200_000,
        "n: " + "9" * 10_000,
    ],
)
def test_front_matter_made_to_explode_does_not(front_matter: str) -> None:
    parsed = read(f"---\n{front_matter}\n---\nText.\n")
    assert parsed.text.endswith("Text.")
    assert len(parsed.fields) <= 500


def test_code_keeps_its_lines() -> None:
    parsed = read("Before\n\n```python\ndef f():\n\n    return 1\n```\n\nafter")
    assert parsed.text == "Before\n\ndef f():\n\n    return 1\n\nafter"


def test_items_of_nested_lists_stand_on_lines_of_their_own() -> None:
    parsed = read("1. one\n2. two\n\n   more of two\n   - inner\n3. three\n")
    assert parsed.text == "1. one\n2. two\n  more of two\n  - inner\n3. three"


def test_links_say_where_their_text_stands() -> None:
    parsed = read("See [the *atlas*](maps/atlas.md), https://example.org/a. and [here](#fragment).")
    assert parsed.links == (
        TextLink("maps/atlas.md", "the atlas", 4),
        TextLink("https://example.org/a", "https://example.org/a", 15),
    )
    for link in parsed.links:
        assert parsed.text[link.start :].startswith(link.text)


@pytest.mark.parametrize(
    "content",
    [
        "Words.\n\n![a map](map.png)\n\nFigure 1: The bed.\n\nMore.",
        "Words.\n\n![a map](map.png)\nFigure 1: The bed.\n\nMore.",
    ],
)
def test_a_line_near_an_image_that_begins_with_figure_is_its_caption(content: str) -> None:
    parsed = read(content)
    [figure] = parsed.figures
    assert figure.caption == "Figure 1: The bed."
    assert parsed.text[figure.start : figure.end].startswith("a map")
    assert parsed.text[figure.start : figure.end].endswith("The bed.")


def test_a_caption_may_stand_above_its_image() -> None:
    parsed = read("Words.\n\nFig. 2. Above.\n\n![](map.png)\n\nMore.")
    assert parsed.figures == (Figure(8, 22, "Fig. 2. Above."),)


def test_an_image_with_nothing_near_has_its_alternative_text() -> None:
    parsed = read("Words.\n\n![a map](map.png)\n\nMore, see Figure 3.")
    assert [figure.caption for figure in parsed.figures] == ["a map"]


def test_html_inside_is_read_as_text() -> None:
    parsed = read("<div>One <b>two</b></div>\n\nThree<br>four <script>five</script>\n\n<!-- six -->\n")
    assert parsed.text.startswith("One two\n\nThree\nfour")
    assert "six" not in parsed.text


@pytest.mark.processor_seconds(20)
@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        "![[" * 20_000,
        "*" * 50_000 + "a" + "*" * 50_000,
        "`a " * 30_000,
        "word " * 1_000_000,
    ],
)
def test_markup_made_to_be_slow_is_read_all_the_same(content: str) -> None:
    parsed = parse(content.encode() + b"\n\nend", "text/markdown")
    assert parsed.text.endswith("end")


@pytest.mark.parametrize("mark", ["- ", "> "])
def test_nesting_without_end_is_refused_and_nothing_is_dropped(mark: str) -> None:
    assert read(mark * 30 + "deep\n\nend").text.endswith("deep\n\nend")
    for depth in (120, 500, 50_000):
        with pytest.raises(UnparsableDocument) as caught:
            read(mark * depth + "deep\n\nend")
        assert caught.value.reason == "too_deep"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (
            "# ADR 7: Queues\n\n- Status: Accepted\n- Date: 2024-01-02\n\nWe use queues.\n",
            [("status", "Accepted"), ("date", "2024-01-02")],
        ),
        (
            "* Status: superseded by [ADR 9](0009-logs.md)\n* Deciders: Ann Lee, Bo Ek\n",
            [("status", "superseded by ADR 9"), ("deciders", "Ann Lee, Bo Ek")],
        ),
        (
            "ADR 7\n=====\n\n**Status:** Accepted  \n**Decision Date**: `2024-01-02`\\\n**Owner:** Ann\n\nText.\n",
            [("status", "Accepted"), ("decision_date", "2024-01-02"), ("owner", "Ann")],
        ),
        ("# One\n\n**Status:** Draft\n\n**Version:** 2\n", [("status", "Draft"), ("version", "2")]),
        (
            "+ __Status:__ Accepted by\n  the board\n  - of Ek\n+ Author: Ann\n",
            [("status", "Accepted by the board"), ("author", "Ann")],
        ),
        ("---\nstatus: Draft\n---\n# One\n- Status: Final\n- Owner: Ann\n", [("status", "Draft"), ("owner", "Ann")]),
    ],
)
def test_a_list_at_the_top_that_states_something_of_the_document_becomes_fields(
    text: str, fields: list[tuple[str, str]]
) -> None:
    assert list(read(text).fields) == fields


@pytest.mark.parametrize(
    "text",
    [
        "# Tool\n\n- Fast: it takes a moment\n- Small: it takes no room\n",
        "# Tool\n\n- Status: Accepted\n- and much else\n",
        "# Tool\n\nIt is good.\n\n- Status: Accepted\n",
        "# Tool\n\nStatus: nobody knows.\n",
        "# Tool\n\n- Status:\n- Date:\n",
    ],
)
def test_any_other_list_is_text_alone(text: str) -> None:
    assert list(read(text).fields) == []


def test_a_list_that_becomes_fields_stays_in_the_text() -> None:
    assert "Status: Accepted" in read("# ADR\n\n- Status: Accepted\n- Date: 2024-01-02\n").text
