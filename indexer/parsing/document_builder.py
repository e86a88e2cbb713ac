"""Puts what a format's parser reads, block by block, into canonical text with its sections, links and figures.

Canonical text: a paragraph, list item or table row is one line; blocks are parted by an empty line; code keeps its
lines. Runs of blanks are one space. The same words therefore make the same text whatever format they came in.
"""

import re
from collections.abc import Iterable

from indexer.documents import Figure, ParsedDocument, Section, TextLink
from schemas.limits import is_visible

MAX_EMPHASISED_CHARACTERS = 80
MAX_CAPTION_CHARACTERS = 1_000

_NOTHING, _SPACE, _LINE, _BLOCK = range(4)
_OUTSIDE = 0  # the level of headings that are no text
_GAPS = ("", " ", "\n", "\n\n")
_CAPTION_BEHIND = re.compile(r"[^\S\n]*\n?[^\S\n]*\n?[^\S\n]*((?:Figure|Fig\.|Fig)\b[^\n]*)")
_CAPTION_BEFORE = re.compile(r"(?:Figure|Fig\.|Fig)\b[^\n]*\n{0,2}\Z")


class TextAssembler:
    """Collects one document. Inline text is written piece by piece; a break is settled when text follows it.

    A mark is a position taken before a piece is written (`mark()`), given back when it is complete.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._gap = _NOTHING
        self._lead = ""
        self._depth = 0
        self._stack: list[tuple[int, str]] = []
        self._sections: list[tuple[tuple[str, ...], int, int]] = []
        self._section_start = 0
        self._heading_start = -1
        self._links: list[tuple[str, int, int]] = []
        self._images: list[tuple[int, int, str]] = []
        self._emphasised: dict[str, None] = {}

    def mark(self) -> int:
        """Where the next piece begins, or the blanks before it."""
        return self._length

    def write(self, text: str) -> None:
        """Inline text; blanks of any kind and number are one space."""
        words = text.split()
        if not words:
            if text:
                self._gap = max(self._gap, _SPACE)
            return
        if text[0].isspace():
            self._gap = max(self._gap, _SPACE)
        self._emit(" ".join(words))
        if text[-1].isspace():
            self._gap = _SPACE

    def verbatim(self, text: str) -> None:
        """A block that keeps its lines, such as code."""
        lines = [line.rstrip() for line in text.split("\n")]
        while lines and not lines[0]:
            lines.pop(0)
        while lines and not lines[-1]:
            lines.pop()
        if not lines:
            return
        self.break_block()
        self._emit(("\n" + "  " * self._depth).join(lines))
        self.break_block()

    def break_line(self) -> None:
        self._gap = max(self._gap, _LINE)

    def break_block(self) -> None:
        """A new paragraph; inside a list item a new line."""
        self._gap = max(self._gap, _LINE if self._depth else _BLOCK)

    def begin_item(self, marker: str) -> None:
        """An item of a list, on a line of its own behind its marker (`-`, `1.`)."""
        self.break_line()
        self._lead = "  " * self._depth + marker + " "
        self._depth += 1

    def end_item(self) -> None:
        self._depth = max(0, self._depth - 1)
        self._lead = ""
        self.break_line()

    def row(self, cells: Iterable[str]) -> None:
        """A row of a table, on a line of its own."""
        self.break_line()
        self.write(" | ".join(" ".join(cell.split()) for cell in cells))
        self.break_line()

    def field_lines(self, fields: Iterable[tuple[str, str]]) -> None:
        """A header block as readable lines."""
        self.break_block()
        for name, value in fields:
            self.write(f"{name}: {value}")
            self.break_line()
        self.break_block()

    def begin_heading(self) -> None:
        """What is written until `end_heading` is a heading."""
        self._close_section()
        self._depth = 0
        self._lead = ""
        self.break_block()
        self._heading_start = len(self._parts)

    def end_heading(self, level: int) -> str:
        """The heading's text. `level` counts from 1 for the outermost; an empty heading is left out."""
        title = _seen("".join(self._parts[self._heading_start :]))
        self.break_block()
        self._section_start = self._length
        if title:
            while self._stack and self._stack[-1][0] >= level:
                self._stack.pop()
            self._stack.append((level, title))
        return title

    def heading(self, level: int, title: str) -> None:
        self.begin_heading()
        self.write(title)
        self.end_heading(level)

    def open_section(self, headings: Iterable[str]) -> None:
        """What follows stands under these headings, which are no text of the document, such as a JSON path.

        Headings written inside come below them.
        """
        self._close_section()
        self._depth = 0
        self._lead = ""
        self.break_block()
        self._section_start = self._length
        self._stack = [(_OUTSIDE, title) for title in headings]

    def link(self, target: str, mark: int) -> None:
        """What was written since the mark is a link; fragments and scripts lead to no document and are left out."""
        if target and not target.lower().startswith(("#", "javascript:", "data:", "mailto:")):
            self._links.append((target, mark, self._length))

    def emphasise(self, mark: int) -> None:
        """What was written since the mark is set off from the text."""
        phrase = self._since(mark)
        if 1 < len(phrase) <= MAX_EMPHASISED_CHARACTERS and "\n" not in phrase:
            self._emphasised[phrase] = None

    def image(self, mark: int, caption: str = "") -> None:
        """An image stands here; what was written since the mark (its alternative text, its caption) belongs to it.

        Without a caption of its own, a line beginning with Figure or Fig. within two lines of it is taken.
        """
        self._images.append((mark, self._length, " ".join(caption.split())))

    def finish(
        self, title: str | None = None, fields: Iterable[tuple[str, str]] = (), notes: Iterable[str] = ()
    ) -> ParsedDocument:
        """The document. Sections without content are left out; one of headings alone has them as its content."""
        self._close_section()
        text = "".join(self._parts)
        sections = [
            Section(headings, *bounds)
            for headings, start, end in self._sections
            if (bounds := _trimmed(text, start, end)) is not None
        ]
        title = _seen(title or "")
        if not text:
            text = title
        if not sections and text:
            sections = [Section((), 0, len(text))]
        links = [
            TextLink(target, text[bounds[0] : bounds[1]], bounds[0])
            for target, start, end in self._links
            if (bounds := _trimmed(text, start, end)) is not None
        ]
        figures = (_figure(text, *image) for image in self._images)
        return ParsedDocument(
            title=title or None,
            text=text,
            sections=tuple(sections),
            links=tuple(links),
            figures=tuple(figure for figure in figures if figure is not None),
            emphasised=tuple(self._emphasised),
            fields=tuple(fields),
            notes=tuple(notes),
        )

    def _emit(self, text: str) -> None:
        gap = _GAPS[self._gap] if self._length else ""
        if self._gap >= _LINE or not self._length:
            gap += self._lead or "  " * self._depth
            self._lead = ""
        self._gap = _NOTHING
        if gap:
            self._parts.append(gap)
        self._parts.append(text)
        self._length += len(gap) + len(text)

    def _since(self, mark: int) -> str:
        pieces: list[str] = []
        wanted = self._length - mark
        for part in reversed(self._parts):
            if wanted <= 0 or wanted > 2 * MAX_EMPHASISED_CHARACTERS:
                break
            pieces.append(part[-wanted:])
            wanted -= len(part)
        return "".join(reversed(pieces)).strip()

    def _close_section(self) -> None:
        headings = tuple(title for _, title in self._stack)
        self._sections.append((headings, self._section_start, self._length))


def _seen(title: str) -> str:
    """On one line; empty where nothing of it can be seen."""
    return " ".join(title.split()) if is_visible(title) else ""


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The bounds without blanks at either end; None when nothing is left."""
    piece = text[start:end]
    bare = piece.strip()
    if not bare:
        return None
    start += len(piece) - len(piece.lstrip())
    return start, start + len(bare)


def _figure(text: str, start: int, end: int, caption: str) -> Figure | None:
    own = _trimmed(text, start, end)
    first, last = own or (end, end)
    if not caption:
        behind = _CAPTION_BEHIND.match(text, last)
        line_start = text.rfind("\n", 0, max(first - 2, 0)) + 1
        before = _CAPTION_BEFORE.match(text, line_start, first)
        if behind:
            caption, last = behind[1], behind.end()
            first = first if own else behind.start(1)
        elif before:
            caption, first = before[0], before.start()
        elif own:
            caption = text[first:last]
        else:
            return None
    return Figure(first, last, " ".join(caption.split())[:MAX_CAPTION_CHARACTERS]) if first < last else None
