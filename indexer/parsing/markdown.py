"""Markdown (CommonMark with tables and strikethrough) with YAML front matter, by pulldown-cmark through pyromark.

pulldown-cmark takes linear time whatever the nesting; only the depth of blocks is limited here.
"""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pyromark

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.front_matter import FrontMatter, first_value, list_fields, parse_front_matter
from indexer.parsing.html import write_fragment
from indexer.parsing.registry import MAX_MARKDOWN_DEPTH
from indexer.parsing.text import write_linked

_OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
_FRONT_MATTER = re.compile(r"(-{3,})[ \t]*\n(.*?)^(?: {0,3}\1-*|\.\.\.)[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_UNCLOSED = re.compile(r"-{3,}[ \t]*\n[\w-]+:[ \t\n]")
_UNCLOSED_NOTE = "The document begins as front matter does, but no line `---` ends it: it was read as text."
_NUMBER = re.compile(rb"\d{1,9}")
_LINK_CHARACTERS = ";/?:@&=+$,-_.!~*'()#%"
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NO_DOCUMENT = ("vbscript:", "file:")
_CONTAINERS = ("BlockQuote", "List", "Item")


def parse(text: str) -> ParsedDocument:
    """The title is the front matter's, else the first heading of the first level. A list of metadata at the top becomes
    fields as well, and stays in the text."""
    front_matter = FrontMatter([])
    if match := _FRONT_MATTER.match(text):
        front_matter = parse_front_matter(match[2].removesuffix("\n"))
        text = text if front_matter.is_text else text[match.end() :]
    elif _UNCLOSED.match(text):
        front_matter = FrontMatter([], (_UNCLOSED_NOTE,), is_text=True)
    reader = _Reader(text)
    for event, place in pyromark.events_with_range(text, options=_OPTIONS):
        reader.handle(event, place)
    reader.flush()
    names = {name for name, _ in front_matter.fields}
    fields = [*front_matter.fields, *(field for field in list_fields(text) if field[0] not in names)]
    title = first_value(front_matter.fields, "title") or reader.first_heading
    return reader.builder.finish(title, fields, front_matter.notes)


class _Reader:
    """Handles the events of one document, in order. Consecutive text is buffered and written as a whole."""

    def __init__(self, source: str) -> None:
        self.builder = DocumentBuilder()
        self.first_heading: str | None = None
        self._source = source.encode()
        self._text: list[str] = []
        self._html: list[str] = []
        self._alternative: list[str] = []
        self._images: list[tuple[int, str]] = []
        self._links: list[tuple[int, str]] = []
        self._emphasis: list[int] = []
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
            "Emphasis": self._start_emphasis,
            "Strong": self._start_emphasis,
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
            "Emphasis": self._end_emphasis,
            "Strong": self._end_emphasis,
            "Strikethrough": self._tilde,
            "Link": self._end_link,
            "Image": self._end_image,
        }

    def handle(self, event: Any, place: Any) -> None:
        """`event`: a name or {name: detail}, by pulldown-cmark; `place`: its range in bytes."""
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
        """Write the buffered text."""
        if not self._text:
            return
        text = "".join(self._text)
        self._text.clear()
        if self._links:
            self.builder.write(text)
        else:
            write_linked(self.builder, text)

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
            self.builder.break_block()
        else:
            self.flush()

    def _leaf(self, name: str, detail: str) -> None:
        """An event without content of its own; `detail` is its text, a blank for breaks."""
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
                self.builder.write(detail)
            case "HardBreak":
                self.flush()
                self.builder.break_line()
            case "InlineHtml":
                self.flush()
                self._inline_tag(detail)

    def _inline_tag(self, tag: str) -> None:
        """Only line breaks and images matter."""
        lowered = tag[:5].lower()
        if lowered.startswith("<br"):
            self.builder.break_line()
        elif lowered.startswith("<img"):
            write_fragment(self.builder, tag)

    def _deepen(self, levels: int) -> None:
        self._depth += levels
        if self._depth >= MAX_MARKDOWN_DEPTH - 2:  # a paragraph and its text are two more
            raise UnparsableDocument("too_deep", f"The Markdown is nested deeper than {MAX_MARKDOWN_DEPTH} levels.")

    def _nothing(self, _: Any) -> None:
        """Nothing to do at this end."""

    def _end_code(self, _: Any) -> None:
        self.builder.verbatim("".join(self._text))
        self._text.clear()

    def _end_html(self, _: Any) -> None:
        self.builder.break_block()
        write_fragment(self.builder, "".join(self._html))
        self._html.clear()
        self.builder.break_block()

    def _start_heading(self, _: Any) -> None:
        self.builder.begin_heading()

    def _end_heading(self, level: str) -> None:
        title = self.builder.end_heading(int(level.removeprefix("H")))
        if self.first_heading is None and level == "H1":
            self.first_heading = title

    def _start_list(self, first: int | None) -> None:
        self._ordered.append(first is not None)
        self.builder.break_block()

    def _end_list(self, _: Any) -> None:
        self._ordered.pop()
        self.builder.break_block()

    def _start_item(self, _: Any) -> None:
        """An item of an ordered list keeps its written number."""
        number = _NUMBER.search(self._source, self._at) if self._ordered[-1] else None
        self.builder.begin_item(f"{number[0].decode()}." if number else "-")

    def _end_item(self, _: Any) -> None:
        self.builder.end_item()

    def _start_row(self, _: Any) -> None:
        """Rows are lines, cells separated by a bar."""
        self.builder.break_line()
        self._first_cell = True

    def _start_cell(self, _: Any) -> None:
        if not self._first_cell:
            self.builder.write(" | ")
        self._first_cell = False

    def _tilde(self, _: Any) -> None:
        """Two tildes strike out, one is a character: `~5` is about five."""
        if self._source[self._at : self._at + 2] != b"~~":
            self._text.append("~")

    def _start_emphasis(self, _: Any) -> None:
        self._emphasis.append(self.builder.mark())

    def _end_emphasis(self, _: Any) -> None:
        self.builder.emphasise(self._emphasis.pop())

    def _start_link(self, link: dict[str, str]) -> None:
        self._links.append((self.builder.mark(), "" if link["link_type"] == "Email" else link["dest_url"]))

    def _end_link(self, _: Any) -> None:
        mark, target = self._links.pop()
        if not target.lower().startswith(_NO_DOCUMENT):
            self.builder.link(_encoded(target), mark)

    def _start_image(self, image: dict[str, str]) -> None:
        self._images.append((self.builder.mark(), image["title"]))

    def _end_image(self, _: Any) -> None:
        """The alternative text is plain; that of a nested image belongs to the outer one."""
        mark, title = self._images.pop()
        if not self._images:
            self.builder.write("".join(self._alternative))
            self._alternative.clear()
            self.builder.image(mark, title)


def _encoded(target: str) -> str:
    """The target percent-encoded as in a request."""
    return _LONE_PERCENT.sub("%25", quote(target, safe=_LINK_CHARACTERS))
