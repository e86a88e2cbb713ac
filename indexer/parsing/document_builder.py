"""Builds canonical text with its sections, links and figures from the blocks that a parser reads.

Canonical text: a paragraph, list item or table row is one line; an empty line separates blocks; code keeps its lines;
runs of blanks are one space. So the same words make the same text in every format.
"""

import re
from collections.abc import Iterable

from indexer.documents import Figure, ParsedDocument, Section, TextLink
from schemas.limits import is_visible

MAX_EMPHASISED_CHARACTERS = 80
MAX_CAPTION_CHARACTERS = 1_000

_NOTHING, _LINE_END, _SPACE, _LINE, _BLOCK = range(5)
_OUTSIDE = 0  # the level of headings that are not part of the text
_GAPS = ("", " ", " ", "\n", "\n\n")
# Scripts without blanks between words: Han, kana, bopomofo with their punctuation and full-width forms; Thai, Lao,
# Tibetan, Myanmar, Khmer.
_UNSPACED = "\u0e00-\u109f\u1780-\u17ff\u2e80-\u312f\u31a0-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f"
_UNSPACED += "\uff00-\uff9f\uffe0-\uffe6\U00020000-\U0003ffff"
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_LINE_END_WITHIN = re.compile(f"(?<=[{_UNSPACED}])[^\\S\\n]*\\n\\s*(?=[{_UNSPACED}])")
# Soft hyphens, word joiners and the like; joiners of letters, which other scripts and emoji need; the blank without
# width, which divides words of scripts without blanks.
_INVISIBLE_CHARACTERS = "\u00ad\u2060\ufeff\u200b\u200c\u200d"
_INVISIBLE = re.compile(
    "\u00ad(?:\\s*\\n\\s*)?|[\u2060\ufeff]|(?<=[!-\u058f])[\u200c\u200d](?=[!-\u058f])"
    f"|(?<![{_UNSPACED}])\u200b|\u200b(?![{_UNSPACED}])"
)
_CAPTION_AFTER = re.compile(r"[^\S\n]*\n?[^\S\n]*\n?[^\S\n]*((?:Figure|Fig\.|Fig)\b[^\n]*)")
_CAPTION_BEFORE = re.compile(r"(?:Figure|Fig\.|Fig)\b[^\n]*\n{0,2}\Z")


class DocumentBuilder:
    """Collects one document. Breaks are written when text follows them.

    `link`, `emphasise` and `image` apply to what was written since a `mark()`.
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
        self._verbatim: list[tuple[int, int]] = []

    def mark(self) -> int:
        """The current position: where the next piece begins, or the blanks before it."""
        return self._length

    def last_character(self) -> str:
        """What further text would directly follow; empty at the start and after a blank or a break."""
        return self._parts[-1][-1:] if self._parts and self._gap == _NOTHING else ""

    def write(self, text: str) -> None:
        """Inline text; runs of blanks are one space, line ends in a script without blanks are nothing."""
        is_ascii = text.isascii()
        if not is_ascii:
            text = without_invisible(text)
            if "\n" in text:
                text = _LINE_END_WITHIN.sub("", text)
        words = text.split()
        if not words:
            if text:
                self._gap = max(self._gap, _gap(text))
            return
        if text[0].isspace():
            self._gap = max(self._gap, _SPACE if is_ascii else _gap(text[: -len(text.lstrip())]))
        self._emit(" ".join(words))
        if text[-1].isspace():
            self._gap = _SPACE if is_ascii else _gap(text[len(text.rstrip()) :])

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
        begin = self._length
        self._emit(("\n" + "  " * self._depth).join(lines))
        self._verbatim.append((begin, self._length))
        self.break_block()

    def break_line(self) -> None:
        self._gap = max(self._gap, _LINE)

    def break_block(self) -> None:
        """Start a new paragraph; inside a list item a new line."""
        self._gap = max(self._gap, _LINE if self._depth else _BLOCK)

    def begin_item(self, marker: str) -> None:
        """Start a list item on a line of its own, after its marker (`-`, `1.`)."""
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
        """Start a heading, which lasts until `end_heading`."""
        self._close_section()
        self._depth = 0
        self._lead = ""
        self.break_block()
        self._heading_start = len(self._parts)

    def end_heading(self, level: int) -> str:
        """The heading's text. Levels count from 1; an empty heading is dropped."""
        title = _visible("".join(self._parts[self._heading_start :]))
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
        """Start a section under headings that are outside the text, such as a JSON path; later ones nest in it."""
        self._close_section()
        self._depth = 0
        self._lead = ""
        self.break_block()
        self._section_start = self._length
        self._stack = [(_OUTSIDE, title) for title in headings]

    def append(self, document: ParsedDocument, heading: str | None = None) -> None:
        """A whole document, below a heading of the first level where one is given; its own nest in that."""
        if heading is not None:
            self.heading(1, heading)
        above = tuple(title for _, title in self._stack)
        self.break_block()
        self._emit("")  # the break
        begin = self._length
        self._close_section()
        self._parts.append(document.text)
        self._length += len(document.text)
        self._sections += [(above + each.headings, begin + each.start, begin + each.end) for each in document.sections]
        self._section_start = self._length
        self._links += [
            (each.target, begin + each.start, begin + each.start + len(each.text)) for each in document.links
        ]
        self._images += [(begin + each.start, begin + each.end, each.caption) for each in document.figures]
        self._emphasised |= dict.fromkeys(document.emphasised)
        self._verbatim += [(begin + start, begin + end) for start, end in document.verbatim]
        self.break_block()

    def link(self, target: str, mark: int) -> None:
        """Make what was written since the mark a link; fragments and scripts are dropped."""
        if target and not target.lower().startswith(("#", "javascript:", "data:", "mailto:")):
            self._links.append((target, mark, self._length))

    def emphasise(self, mark: int) -> None:
        """Note what was written since the mark as an emphasised phrase."""
        phrase = self._since(mark)
        if 1 < len(phrase) <= MAX_EMPHASISED_CHARACTERS and "\n" not in phrase:
            self._emphasised[phrase] = None

    def image(self, mark: int, caption: str = "") -> None:
        """Note an image; what was written since the mark (alternative text, caption) belongs to it.

        Without a caption, a line beginning with Figure or Fig. within two lines of the image is taken.
        """
        self._images.append((mark, self._length, " ".join(caption.split())))

    def finish(
        self, title: str | None = None, fields: Iterable[tuple[str, str]] = (), notes: Iterable[str] = ()
    ) -> ParsedDocument:
        """The document, without empty sections; a document of headings only has them as its content."""
        self._close_section()
        text = "".join(self._parts)
        sections = [
            Section(headings, *bounds)
            for headings, start, end in self._sections
            if (bounds := _trimmed(text, start, end)) is not None
        ]
        title = _visible(title or "")
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
            verbatim=tuple(bounds for bounds in self._verbatim if bounds[0] < bounds[1]),
            fields=tuple(fields),
            notes=tuple(notes),
        )

    def _emit(self, text: str) -> None:
        gap = _GAPS[self._gap] if self._length else ""
        if self._gap == _LINE_END and gap and _IS_UNSPACED.match(text) and _IS_UNSPACED.match(self._parts[-1][-1]):
            gap = ""
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


def without_invisible(text: str) -> str:
    """The text without characters that show nothing and would divide its words, such as soft hyphens."""
    return _INVISIBLE.sub("", text) if any(mark in text for mark in _INVISIBLE_CHARACTERS) else text


def _gap(blanks: str) -> int:
    return _LINE_END if "\n" in blanks else _SPACE


def _visible(title: str) -> str:
    """The title on one line; empty if it has no visible character."""
    return " ".join(without_invisible(title).split()) if is_visible(title) else ""


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
        after = _CAPTION_AFTER.match(text, last)
        line_start = text.rfind("\n", 0, max(first - 2, 0)) + 1
        before = _CAPTION_BEFORE.match(text, line_start, first)
        if after:
            caption, last = after[1], after.end()
            first = first if own else after.start(1)
        elif before:
            caption, first = before[0], before.start()
        elif own:
            caption = text[first:last]
        else:
            return None
    return Figure(first, last, " ".join(caption.split())[:MAX_CAPTION_CHARACTERS]) if first < last else None
