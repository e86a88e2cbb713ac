"""Markdown (CommonMark with tables and strikethrough) with YAML front matter, by pulldown-cmark through pyromark.

pulldown-cmark reads in linear time whatever is nested in what; only the depth of blocks is bounded here.
"""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pyromark

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.document_builder import TextAssembler
from indexer.parsing.header_blocks import FrontMatter, first_value, listed_header, read_front_matter
from indexer.parsing.html import write_fragment
from indexer.parsing.limits import MAX_MARKDOWN_DEPTH
from indexer.parsing.text import write_linked

_OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
_FRONT_MATTER = re.compile(r"(-{3,})[ \t]*\n(.*?)^(?: {0,3}\1-*|\.\.\.)[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_OPENED = re.compile(r"-{3,}[ \t]*\n[\w-]+:[ \t\n]")
_NOT_CLOSED = "The document begins as front matter does, but no line `---` ends it: it was read as text."
_NUMBER = re.compile(rb"\d{1,9}")
_LINK_CHARACTERS = ";/?:@&=+$,-_.!~*'()#%"
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NO_DOCUMENT = ("vbscript:", "file:")
_CONTAINERS = ("BlockQuote", "List", "Item")


def parse(text: str) -> ParsedDocument:
    """The title is the front matter's, else the first heading of the first level. A list at the top that states
    something of the document becomes fields too, and stays in the text."""
    read = FrontMatter([])
    if matter := _FRONT_MATTER.match(text):
        read = read_front_matter(matter[2].removesuffix("\n"))
        text = text if read.is_text else text[matter.end() :]
    elif _OPENED.match(text):
        read = FrontMatter([], (_NOT_CLOSED,), is_text=True)
    reader = _Reader(text)
    for event, place in pyromark.events_with_range(text, options=_OPTIONS):
        reader.take(event, place)
    reader.flush()
    stated = {name for name, _ in read.fields}
    fields = [*read.fields, *(field for field in listed_header(text) if field[0] not in stated)]
    return reader.assembler.finish(first_value(read.fields, "title") or reader.first_heading, fields, read.notes)


class _Reader:
    """Takes the events of one document, in order. Text is put by until something else comes, and written as a whole."""

    def __init__(self, source: str) -> None:
        self.assembler = TextAssembler()
        self.first_heading: str | None = None
        self._source = source.encode()
        self._text: list[str] = []
        self._html: list[str] = []
        self._alternative: list[str] = []
        self._images: list[tuple[int, str]] = []
        self._links: list[tuple[int, str]] = []
        self._set_off: list[int] = []
        self._ordered: list[bool] = []
        self._depth = 0
        self._at = 0
        self._first_cell = True
        self._starts: dict[str, Callable[[Any], None]] = {
            "Heading": self._start_heading,
            "List": self._start_list,
            "Item": self._start_item,
            "TableHead": self._start_row,
            "TableRow": self._start_row,
            "TableCell": self._start_cell,
            "Emphasis": self._start_set_off,
            "Strong": self._start_set_off,
            "Strikethrough": self._tilde,
            "Link": self._start_link,
            "Image": self._start_image,
        }
        self._ends: dict[str, Callable[[Any], None]] = {
            "CodeBlock": self._end_code,
            "HtmlBlock": self._end_html,
            "Heading": self._end_heading,
            "List": self._end_list,
            "Item": self._end_item,
            "TableCell": self._nothing,
            "TableHead": self._nothing,
            "TableRow": self._nothing,
            "Emphasis": self._end_set_off,
            "Strong": self._end_set_off,
            "Strikethrough": self._tilde,
            "Link": self._end_link,
            "Image": self._end_image,
        }

    def take(self, event: Any, place: Any) -> None:
        """An event of pulldown-cmark, by its name or as {name: detail}, and where it stands, in bytes."""
        if isinstance(event, str):
            self._leaf(event, " ")
            return
        ((name, detail),) = event.items()
        if name == "Text":
            (self._alternative if self._images else self._text).append(detail)
        elif name in ("Start", "End"):
            kind, detail = (detail, None) if isinstance(detail, str) else next(iter(detail.items()))
            self._at = place["start"]
            self._border(name, kind, detail)
        else:
            self._leaf(name, detail)

    def flush(self) -> None:
        """Write the text put by: everything in a row that is no markup."""
        if not self._text:
            return
        text = "".join(self._text)
        self._text.clear()
        if self._links:
            self.assembler.write(text)
        else:
            write_linked(self.assembler, text)

    def _border(self, name: str, kind: str, detail: Any) -> None:
        if self._images and kind != "Image":
            self._alternative.append(" ")
            return
        if kind != "Strikethrough":
            if kind != "CodeBlock":
                self.flush()
            if kind in _CONTAINERS:
                self._deepen(1 if name == "Start" else -1)
        known = (self._starts if name == "Start" else self._ends).get(kind)
        if known is not None:
            known(detail)
        elif kind != "CodeBlock":
            self.assembler.break_block()
        else:
            self.flush()

    def _leaf(self, name: str, detail: str) -> None:
        """What holds nothing else. In an image's alternative text its own text counts, which for breaks is a blank."""
        if self._images:
            self._alternative.append(detail)
            return
        match name:
            case "SoftBreak":
                self._text.append("\n")
            case "Html":
                self._html.append(detail)
            case "Code":
                self.flush()
                self.assembler.write(detail)
            case "HardBreak":
                self.flush()
                self.assembler.break_line()
            case "InlineHtml":
                self.flush()
                self._inline_tag(detail)

    def _inline_tag(self, tag: str) -> None:
        """A lone tag says nothing by itself, but for breaks and images."""
        lowered = tag[:5].lower()
        if lowered.startswith("<br"):
            self.assembler.break_line()
        elif lowered.startswith("<img"):
            write_fragment(self.assembler, tag)

    def _deepen(self, levels: int) -> None:
        self._depth += levels
        if self._depth >= MAX_MARKDOWN_DEPTH - 2:  # a paragraph and its text are two more
            raise UnparsableDocument("too_deep", f"The Markdown nests deeper than {MAX_MARKDOWN_DEPTH} levels.")

    def _nothing(self, _: Any) -> None:
        """Ends with what it holds."""

    def _end_code(self, _: Any) -> None:
        self.assembler.verbatim("".join(self._text))
        self._text.clear()

    def _end_html(self, _: Any) -> None:
        self.assembler.break_block()
        write_fragment(self.assembler, "".join(self._html))
        self._html.clear()
        self.assembler.break_block()

    def _start_heading(self, _: Any) -> None:
        self.assembler.begin_heading()

    def _end_heading(self, level: str) -> None:
        title = self.assembler.end_heading(int(level.removeprefix("H")))
        if self.first_heading is None and level == "H1":
            self.first_heading = title

    def _start_list(self, first: int | None) -> None:
        self._ordered.append(first is not None)
        self.assembler.break_block()

    def _end_list(self, _: Any) -> None:
        self._ordered.pop()
        self.assembler.break_block()

    def _start_item(self, _: Any) -> None:
        """An item keeps the number that is written before it."""
        number = _NUMBER.search(self._source, self._at) if self._ordered[-1] else None
        self.assembler.begin_item(f"{number[0].decode()}." if number else "-")

    def _end_item(self, _: Any) -> None:
        self.assembler.end_item()

    def _start_row(self, _: Any) -> None:
        """Rows as lines, cells apart by a bar."""
        self.assembler.break_line()
        self._first_cell = True

    def _start_cell(self, _: Any) -> None:
        if not self._first_cell:
            self.assembler.write(" | ")
        self._first_cell = False

    def _tilde(self, _: Any) -> None:
        """Two strike out, one is a character: `~5` is about five."""
        if self._source[self._at : self._at + 2] != b"~~":
            self._text.append("~")

    def _start_set_off(self, _: Any) -> None:
        self._set_off.append(self.assembler.mark())

    def _end_set_off(self, _: Any) -> None:
        self.assembler.emphasise(self._set_off.pop())

    def _start_link(self, link: dict[str, str]) -> None:
        self._links.append((self.assembler.mark(), "" if link["link_type"] == "Email" else link["dest_url"]))

    def _end_link(self, _: Any) -> None:
        mark, target = self._links.pop()
        if not target.lower().startswith(_NO_DOCUMENT):
            self.assembler.link(_encoded(target), mark)

    def _start_image(self, image: dict[str, str]) -> None:
        self._images.append((self.assembler.mark(), image["title"]))

    def _end_image(self, _: Any) -> None:
        """The alternative text is plain, whatever markup stands in it; that of an image inside belongs to the outer."""
        mark, title = self._images.pop()
        if not self._images:
            self.assembler.write("".join(self._alternative))
            self._alternative.clear()
            self.assembler.image(mark, title)


def _encoded(target: str) -> str:
    """The target as it stands in a request: what is not ASCII, and blanks, percent-encoded."""
    return _LONE_PERCENT.sub("%25", quote(target, safe=_LINK_CHARACTERS))
