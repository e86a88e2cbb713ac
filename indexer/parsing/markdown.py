"""Markdown (CommonMark with tables, strikethrough, footnotes and formulas), by pulldown-cmark through pyromark.

pulldown-cmark takes linear time whatever the nesting; only the depth of blocks is limited here.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pyromark

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.front_matter import first_value, list_fields, split_front_matter
from indexer.parsing.html import write_fragment
from indexer.parsing.html_nesting import tag_names
from indexer.parsing.markdown_dialects import MARKS, OPTIONS, WITHOUT_FORMULAS, edited, plain_markdown
from indexer.parsing.registry import MAX_MARKDOWN_DEPTH
from indexer.parsing.text import write_linked

_NUMBER = re.compile(rb"\d{1,9}")
_MAX_ROUNDS = 4
_LINK_CHARACTERS = ";/?:@&=+$,-_.!~*'()#%"
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://|(?:mailto|tel|urn|doi|news|xmpp|sip|data|javascript):", re.IGNORECASE)
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NO_DOCUMENT = ("vbscript:", "file:")
_CONTAINERS = ("BlockQuote", "List", "Item", "FootnoteDefinition")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*)")
_NAMES_OF_ATTRIBUTES = re.compile(r"\s([^\s=/>]+)")
_FLAGS = tag_names("checked controls defer disabled download hidden multiple open readonly required reversed selected")
_ALONE = tag_names("br wbr hr p li dt dd tr td th div center details ul ol blockquote")  # usual without their ends
_HTML = _ALONE | tag_names(
    "a abbr acronym address area article aside audio b base bdi bdo big blink body button canvas caption cite code "
    "col colgroup data datalist del dfn dialog dir dl em embed fieldset figcaption figure font footer form frame "
    "frameset h1 h2 h3 h4 h5 h6 head header hgroup html i iframe img input ins kbd label legend link main map mark "
    "marquee math menu meta meter nav nobr noscript object optgroup option output param picture pre progress q rb rp "
    "rt rtc ruby s samp script search section select slot small source span strike strong style sub summary sup svg "
    "table tbody template textarea tfoot thead time title track tt u var video circle defs ellipse g line path "
    "polygon polyline rect use "
)


def parse(text: str) -> ParsedDocument:
    """The title is the front matter's, else the first heading of the first level. A list of metadata at the top becomes
    fields as well, and stays in the text."""
    return _parse(text, is_mdx=False)


def parse_mdx(text: str) -> ParsedDocument:
    """As `parse`, of a text that may hold modules, components and comments in braces."""
    return _parse(text, is_mdx=True)


def _parse(text: str, *, is_mdx: bool) -> ParsedDocument:
    front_matter, text = split_front_matter(text)
    source = plain_markdown(text, is_mdx=is_mdx)
    reader = _Reader(source)
    reader.read()
    for left in reversed(range(_MAX_ROUNDS)):
        if not reader.prices:
            break
        source = edited(source.encode(), [(at, at, b"\\") for at in reader.prices])
        reader = _Reader(source, options=OPTIONS if left else WITHOUT_FORMULAS)
        reader.read()
    names = {name for name, _ in front_matter.fields}
    fields = [*front_matter.fields, *(field for field in list_fields(text) if field[0] not in names)]
    title = first_value(front_matter.fields, "title") or reader.first_heading
    return reader.builder.finish(title, fields, front_matter.notes)


class _Reader:
    """Handles the events of one text, in order. Consecutive text is buffered and written as a whole."""

    def __init__(
        self, source: str, builder: DocumentBuilder | None = None, options: pyromark.Options = OPTIONS
    ) -> None:
        self.builder = builder or DocumentBuilder()
        self.first_heading: str | None = None
        self.prices: list[int] = []  # where dollars are that were taken for those of a formula
        self._events: Iterator[tuple[Any, Any]] = pyromark.events_with_range(source, options=options)
        self._source = source.encode()
        self._place: Any = None
        self._marks = [mark for mark in MARKS if mark[0] in source]
        self._paragraph_end = 0
        self._script_end = -1
        self._last_ends: dict[str, int] = {}  # of elements that end in the paragraph
        self._text: list[str] = []
        self._html: list[str] = []
        self._alternative: list[str] = []
        self._images: list[tuple[int, str]] = []
        self._links: list[tuple[int, str]] = []
        self._emphasis: list[int] = []
        self._ordered: list[bool] = []
        self._depth = 0
        self._first_cell = True
        self._starts: dict[str, Callable[[Any], None]] = {
            "Heading": lambda _: self.builder.begin_heading(),
            "List": self._start_list,
            "Item": self._start_item,
            **dict.fromkeys(("TableHead", "TableRow"), self._start_row),
            "TableCell": self._start_cell,
            **dict.fromkeys(("Emphasis", "Strong"), lambda _: self._emphasis.append(self.builder.mark())),
            "Strikethrough": self._tilde,
            "Link": self._start_link,
            "Image": self._start_image,
        }
        self._ends: dict[str, Callable[[Any], None]] = {
            "CodeBlock": self._end_code,
            "HtmlBlock": self._end_html,
            "Heading": self._end_heading,
            "List": self._end_list,
            "Item": lambda _: self.builder.end_item(),
            **dict.fromkeys(("TableCell", "TableHead", "TableRow"), lambda _: None),
            **dict.fromkeys(("Emphasis", "Strong"), lambda _: self.builder.emphasise(self._emphasis.pop())),
            "Strikethrough": self._tilde,
            "Link": self._end_link,
            "Image": self._end_image,
        }

    def read(self) -> None:
        """Handle the events, each a name or {name: detail}, by pulldown-cmark, with its range in bytes."""
        for event, place in self._events:
            if isinstance(event, str):
                self._leaf(event, " ")
                continue
            ((name, detail),) = event.items()
            if name == "Text":
                (self._alternative if self._images else self._text).append(detail)
                continue
            self._place = place
            if name in ("Start", "End"):
                kind, detail = (detail, None) if isinstance(detail, str) else next(iter(detail.items()))
                self._border(name, kind, detail)
            else:
                self._leaf(name, detail)
        self.flush()

    def flush(self) -> None:
        """Write the buffered text."""
        if not self._text:
            return
        text = "".join(self._text)
        self._text.clear()
        if self._script_end >= 0 and self._place["start"] <= self._script_end:
            return
        for sign, pattern, shown in self._marks:
            if sign in text:
                text = pattern.sub(shown, text)
        if self._links:
            self.builder.write(text)
        else:
            write_linked(self.builder, text)

    def _border(self, name: str, kind: str, detail: Any) -> None:
        if self._images and kind != "Image":
            self._alternative.append(" ")
            return
        if kind != "Strikethrough":
            if self._text and (kind != "CodeBlock" or name == "Start"):
                self.flush()
            if kind in _CONTAINERS:
                self._deepen(1 if name == "Start" else -1)
        known = (self._starts if name == "Start" else self._ends).get(kind)
        if known is not None:
            known(detail)
        else:
            self.builder.break_block()

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
            case "InlineMath" | "DisplayMath":
                self.flush()
                start, end = self._place["start"], self._place["end"]
                mark = "$" if name == "InlineMath" else "$$"
                self.builder.write(f"{mark}{detail}{mark}".replace("\\$", "$"))
                if name == "InlineMath" and self._source[end : end + 1].isalnum():
                    self.prices += (start, end - 1)
            case "HardBreak":
                self.flush()
                self.builder.break_line()
            case "InlineHtml":
                self._inline_tag(detail)

    def _inline_tag(self, tag: str) -> None:
        """Only line breaks and images matter. What is no tag of HTML is text: `<your-token>`, `List<T>`."""
        match = _TAG.match(tag)
        if match is not None and not self._is_html(tag, match[2].lower(), is_end=bool(match[1])):
            self._text.append(tag)
            return
        self.flush()
        name = match[1] + match[2].lower() if match else ""
        if name == "br":
            self.builder.break_line()
        elif name == "img":
            write_fragment(self.builder, tag)
        elif name in ("script", "style"):
            self._script_end = self._end_of(name)
        elif name in ("/script", "/style"):
            self._script_end = -1

    def _is_html(self, tag: str, name: str, *, is_end: bool) -> bool:
        if name not in _HTML:
            return False
        if is_end or "=" in tag or name in ("br", "wbr", "hr"):
            return True
        if any(flag.lower() not in _FLAGS for flag in _NAMES_OF_ATTRIBUTES.findall(tag)):
            return False
        if name in _ALONE and tag.islower():
            return True
        return self._end_of(name) >= 0

    def _end_of(self, name: str) -> int:
        """Where the last end tag of the paragraph for the element is; -1 without one."""
        at: int = self._place["start"]
        if at >= self._paragraph_end:
            end = self._source.find(b"\n\n", at)
            self._paragraph_end = end if end >= 0 else len(self._source)
            self._last_ends.clear()
        if name not in self._last_ends:
            ends = (f"</{name}".encode(), f"</{name.upper()}".encode())
            self._last_ends[name] = max(self._source.rfind(end, at, self._paragraph_end) for end in ends)
        return self._last_ends[name] if self._last_ends[name] > at else -1

    def _deepen(self, levels: int) -> None:
        self._depth += levels
        if self._depth >= MAX_MARKDOWN_DEPTH - 2:  # a paragraph and its text are two more
            raise UnparsableDocument("too_deep", f"The Markdown is nested deeper than {MAX_MARKDOWN_DEPTH} levels.")

    def _end_code(self, _: Any) -> None:
        self.builder.verbatim("".join(self._text))
        self._text.clear()

    def _end_html(self, _: Any) -> None:
        """A block of HTML, or of text that begins with a placeholder such as `<your-token>`."""
        markup = _TAG.sub(lambda tag: tag[0] if tag[2].lower() in _HTML else f"&lt;{tag[0][1:]}", "".join(self._html))
        self._html.clear()
        self.builder.break_block()
        if markup.lstrip().startswith("&lt;"):
            _Reader(markup, self.builder).read()
        else:
            write_fragment(self.builder, markup)
        self.builder.break_block()

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
        number = _NUMBER.search(self._source, self._place["start"]) if self._ordered[-1] else None
        self.builder.begin_item(f"{number[0].decode()}." if number else "-")

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
        at = self._place["start"]
        if self._source[at : at + 2] != b"~~":
            self._text.append("~")

    def _start_link(self, link: dict[str, str]) -> None:
        kind, target = link["link_type"], link["dest_url"]
        is_placeholder = kind == "Autolink" and _ADDRESS.match(target) is None  # such as `<host:port>`
        self._links.append((self.builder.mark(), "<" if is_placeholder else "" if kind == "Email" else target))
        self.builder.write("<" if is_placeholder else "")

    def _end_link(self, _: Any) -> None:
        mark, target = self._links.pop()
        if target == "<":
            self.builder.write(">")
        elif not target.lower().startswith(_NO_DOCUMENT):
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
