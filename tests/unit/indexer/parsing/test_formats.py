"""The same document in each format, and what every format has in common."""

import pytest

from indexer.chunking.splitter import ChunkingParameters, chunk
from indexer.errors import UnparsableDocument
from indexer.parsing import formats, media_type_of, parse
from schemas.ids import DocumentKey

KEY = DocumentKey("default", "rivers")
FLOW = (
    "A river flows along its thalweg, the line that joins the lowest points of its bed. Dr. Meyer measured it in 1821. "
    "The current is fastest there, and boats going down the river keep to it wherever they can."
)
FLOW_ON_LINES = FLOW.replace("boats going", "boats\ngoing").replace("1821. ", "1821.\n")
BED = "The bed moves with every flood. What was the deepest place in spring may be a bank of gravel in autumn."

MARKDOWN = f"""# Rivers

{FLOW}

## The bed

{BED}

- sand is carried
- gravel is rolled

| grain | size |
|---|---|
| sand | 1 mm |

### Notes

## Maps

See [the atlas](atlas.md) *today*.
"""
HTML = f"""<!doctype html><html><head><title>Rivers</title><style>p {{ color: red }}</style></head><body>
<nav><a href="/">Home</a></nav>
<h1>Rivers</h1><p>{FLOW.replace("the line", "<span>the</span> line")}</p>
<h2>The bed</h2><p>{BED}</p><ul><li>sand is carried</li><li>gravel is rolled</li></ul>
<table><tr><th>grain</th><th>size</th></tr><tr><td>sand</td><td>1 mm</td></tr></table>
<h3>Notes</h3><h2>Maps</h2><p>See <a href="atlas.md">the atlas</a> <em>today</em>.</p>
<script>alert("no text")</script></body></html>"""
RESTRUCTURED_TEXT = f"""Rivers
======

{FLOW_ON_LINES}

The bed
-------

{BED}

* sand is carried
* gravel is rolled

===== ====
grain size
===== ====
sand  1 mm
===== ====

Notes
~~~~~

Maps
----

See `the atlas <atlas.md>`_ *today*.
"""
PLAIN = f"""{FLOW_ON_LINES}

{BED}

- sand is carried
- gravel is rolled
"""


def chunk_texts(content: str, media_type: str) -> list[str]:
    chunked = chunk(KEY, parse(content.encode(), media_type), ChunkingParameters())
    return [one.text for one in chunked.chunks]


@pytest.mark.parametrize(("content", "media_type"), [(HTML, "text/html"), (RESTRUCTURED_TEXT, "text/x-rst")])
def test_a_document_is_the_same_in_every_format_with_headings(content: str, media_type: str) -> None:
    expected = parse(MARKDOWN.encode(), "text/markdown")
    parsed = parse(content.encode(), media_type)
    assert parsed.text == expected.text
    assert parsed.sections == expected.sections
    assert parsed.links == expected.links
    assert parsed.emphasised == expected.emphasised == ("today",)
    assert parsed.title == expected.title == "Rivers"
    assert chunk_texts(content, media_type) == chunk_texts(MARKDOWN, "text/markdown")


def test_plain_text_has_the_same_words_without_the_headings() -> None:
    parsed = parse(PLAIN.encode(), "text/plain")
    assert parsed.text == f"{FLOW}\n\n{BED}\n\n- sand is carried\n- gravel is rolled"
    assert [section.headings for section in parsed.sections] == [()]


def test_each_section_has_its_stack_of_headings_and_one_without_content_is_left_out() -> None:
    parsed = parse(MARKDOWN.encode(), "text/markdown")
    assert [section.headings for section in parsed.sections] == [
        ("Rivers",),
        ("Rivers", "The bed"),
        ("Rivers", "Maps"),
    ]
    bed = parsed.sections[1]
    assert parsed.text[bed.start : bed.end] == (
        f"{BED}\n\n- sand is carried\n- gravel is rolled\n\ngrain | size\nsand | 1 mm"
    )


def test_a_heading_without_content_still_stands_above_its_children() -> None:
    parsed = parse(b"# A\n## B\n### C\nwords\n# D\nmore", "text/markdown")
    assert [section.headings for section in parsed.sections] == [("A", "B", "C"), ("D",)]


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"# One\n\n## Two", "text/markdown"),
        (b"<h1>One</h1><h2>Two</h2>", "text/html"),
        (b"One\n===\n\nTwo\n---\n", "text/x-rst"),
    ],
)
def test_a_document_of_headings_alone_has_them_as_content(content: bytes, media_type: str) -> None:
    parsed = parse(content, media_type)
    assert parsed.text == "One\n\nTwo"
    assert [(section.start, section.end) for section in parsed.sections] == [(0, 8)]


@pytest.mark.parametrize("media_type", [known.media_type for known in formats()])
@pytest.mark.parametrize("content", [b" \n\t ", b"\xef\xbb\xbf"])
def test_content_without_words_is_refused(content: bytes, media_type: str) -> None:
    with pytest.raises(UnparsableDocument) as caught:
        parse(content, media_type)
    assert caught.value.reason == "empty_content"


def test_an_unknown_media_type_is_refused_and_says_where_the_known_ones_are_listed() -> None:
    with pytest.raises(UnparsableDocument, match=r"'application/x-nothing' is not .+ /v1/formats lists") as caught:
        parse(b"%PDF", "application/x-nothing; version=1")
    assert caught.value.reason == "unknown_media_type"


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("notes/a.md", "text/markdown"),
        ("A.HTML", "text/html"),
        ("pep-0008.rst", "text/x-rst"),
        ("plain.txt", "text/plain"),
        ("archive.zip", None),
        ("Makefile", None),
    ],
)
def test_a_file_name_tells_its_media_type(name: str, media_type: str | None) -> None:
    assert media_type_of(name) == media_type
