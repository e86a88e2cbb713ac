"""One document in eight formats: the same chunks and, where the format has headings, the same stacks of them."""

import re
from difflib import SequenceMatcher

import msgspec
import pytest

from indexer.chunking.splitter import ChunkingParameters, chunk
from indexer.documents import ChunkedDocument, ParsedDocument
from indexer.parsing import media_type_of, parse
from schemas.ids import DocumentKey
from tests.support.fixtures.office_files import Blocks, docx, pdf

KEY = DocumentKey("default", "rivers")
FLOW = (
    "A river flows along its thalweg, the line that joins the lowest points of its bed. Dr. Meyer measured it in 1821. "
    "The current is fastest there, and boats going down the river keep to it wherever they can."
)
BED = "The bed moves with every flood. What was the deepest place in spring may be a bank of gravel in autumn."
BANKS = (
    "Water wears away the outer bank of a bend and leaves sand on the inner one, so that a bend wanders down its "
    "valley in the course of a century. Where the neck of a loop is cut through, an oxbow lake remains."
)
MAPS = "Maps of the thalweg are drawn anew each year. Pilots buy them in the harbour & trust them until the next flood."
BORDER = (
    "Where a river is the border of two countries, the thalweg often is the line. When the bed moves slowly, the "
    "border moves with it; when the river leaps into another bed overnight, the border stays where it was."
)
BLOCKS: Blocks = (
    ("h1", "Rivers"), ("p", FLOW), ("h2", "The bed"), ("p", BED), ("p", BANKS), ("li", "sand is carried along"),
    ("li", "gravel is rolled over the bed"), ("h2", "Maps"), ("h3", "Charts for pilots"), ("p", MAPS),
    ("h2", "Borders"), ("p", BORDER),
)  # fmt: skip
STACKS = [("Rivers",), ("Rivers", "The bed"), ("Rivers", "Maps", "Charts for pilots"), ("Rivers", "Borders")]
BED_TEXT = f"{BED}\n\n{BANKS}\n\n- sand is carried along\n- gravel is rolled over the bed"


def marked_up(heading: str, item: str, *, under: str = "", escape: bool = False) -> bytes:
    """The document in a format of lines; `heading` has a `{}` for the title and a `#` that counts its level."""
    lines: list[str] = []
    for number, (kind, written) in enumerate(BLOCKS):
        text = written.replace("&", "&amp;") if escape else written
        if kind[0] == "h":
            lines.append(heading.replace("#", "#" * int(kind[1])).replace("{}", text))
            lines += [under[int(kind[1]) - 1] * len(text)] if under else []
        else:
            lines.append(f"{item}{text}" if kind == "li" else text)
        if (kind, BLOCKS[min(number + 1, len(BLOCKS) - 1)][0]) != ("li", "li"):
            lines.append("")
    return "\n".join(lines).encode()


def html() -> bytes:
    elements = "".join(f"<{kind}>{text.replace('&', '&amp;')}</{kind}>" for kind, text in BLOCKS)
    body = re.sub(r"((?:<li>.*?</li>)+)", r"<ul>\1</ul>", elements)
    return f"<!doctype html><html><body>{body}</body></html>".encode()


def json() -> bytes:
    sections = [
        {"heading": "The bed", "content": BED_TEXT},
        {"heading": "Maps", "parts": [{"heading": "Charts for pilots", "content": MAPS}]},
        {"heading": "Borders", "content": BORDER},
    ]
    return msgspec.json.encode({"title": "Rivers", "abstract": FLOW, "sections": sections})


def xml() -> bytes:
    body = f"""<article><title>Rivers</title><para>{FLOW}</para>
    <section><title>The bed</title><para>{BED}</para><para>{BANKS}</para><itemizedlist>
    <listitem><para>sand is carried along</para></listitem>
    <listitem><para>gravel is rolled over the bed</para></listitem></itemizedlist></section>
    <section><title>Maps</title><section><title>Charts for pilots</title><para>{MAPS.replace("&", "&amp;")}</para>
    </section></section><section><title>Borders</title><para>{BORDER}</para></section></article>"""
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + body.encode()


DOCUMENTS = {
    "rivers.md": marked_up("# {}", "- "),
    "rivers.html": html(),
    "rivers.rst": marked_up("{}", "* ", under="=-~"),
    "rivers.json": json(),
    "rivers.xml": xml(),
    "rivers.docx": docx(BLOCKS),
    "rivers.pdf": pdf([BLOCKS[:4], BLOCKS[4:]]),
    "rivers.txt": f"{FLOW}\n\n{BED_TEXT}\n\n{MAPS}\n\n{BORDER}".encode(),
}


def parsed_as(name: str) -> ParsedDocument:
    return parse(DOCUMENTS[name], media_type_of(name) or "")


def chunked_as(name: str) -> ChunkedDocument:
    return chunk(KEY, parsed_as(name), ChunkingParameters())


def likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name != "rivers.txt"])
def test_the_chunks_are_the_same_within_two_in_a_hundred(name: str) -> None:
    expected = [one.text for one in chunked_as("rivers.md").chunks]
    found = [one.text for one in chunked_as(name).chunks]
    assert len(found) == len(expected) > 4
    assert all(likeness(one, other) >= 0.98 for one, other in zip(found, expected, strict=True))


def test_plain_text_has_the_same_words_in_one_section() -> None:
    """Without headings its chunks may be cut elsewhere; together they say the same."""
    markdown = parsed_as("rivers.md")
    sections = (markdown.text[section.start : section.end] for section in markdown.sections)
    plain = parsed_as("rivers.txt")
    assert likeness(plain.text, "\n\n".join(sections)) >= 0.98
    assert [section.headings for section in plain.sections] == [()]


@pytest.mark.parametrize("name", ["rivers.md", "rivers.html", "rivers.rst", "rivers.xml", "rivers.docx", "rivers.pdf"])
def test_the_heading_stacks_are_the_same(name: str) -> None:
    parsed = parsed_as(name)
    assert [section.headings for section in parsed.sections] == STACKS
    assert parsed.title == "Rivers"


def test_in_json_the_path_stands_above_the_same_headings() -> None:
    parsed = parsed_as("rivers.json")
    assert [section.headings[1:] for section in parsed.sections] == STACKS
    assert [section.headings[0] for section in parsed.sections] == [
        "abstract", "sections[0].content", "sections[1].parts[0].content", "sections[2].content",
    ]  # fmt: skip
    assert parsed.title == "Rivers"


def test_the_chunks_of_a_pdf_know_their_page() -> None:
    parsed = parsed_as("rivers.pdf")
    pages = [parsed.page_at(one.end) for one in chunked_as("rivers.pdf").chunks]
    assert pages == sorted(page for page in pages if page)
    assert set(pages) == {1, 2}
    assert parsed.page_at(parsed.text.index("Water wears")) == 2
    assert parsed_as("rivers.md").page_at(0) is None


@pytest.mark.parametrize("name", list(DOCUMENTS))
def test_a_hit_points_into_the_text(name: str) -> None:
    parsed = parsed_as(name)
    assert all(parsed.text[one.start : one.end] == one.text for one in chunked_as(name).chunks)
