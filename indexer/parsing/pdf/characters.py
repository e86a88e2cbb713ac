"""The characters of a PDF's page: PDFium's text, and lines of it with their places on the page, in points."""

import ctypes
import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

import pypdfium2.raw as pdfium
from pypdfium2 import PdfTextPage

from indexer.parsing.decoding import normalise

HYPHENS = "\x02\ufffe"  # what PDFium makes of a hyphen at the end of a line
_LINE_END = " \r\n" + HYPHENS
JOINT = "\0"  # in place of a line end between pieces of one line

_LIGATURES = {0xFB00 + at: letters for at, letters in enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"))}
_LIGATURES[ord(JOINT)] = ""
_WORD = re.compile(r"\S+")
_NUMBER = re.compile(r"\d{2,}|(?<!\s)\d")  # all but a single digit between blanks
_LETTER_BETWEEN_JOINTS = re.compile(rf"(?<={JOINT})[A-Za-z](?={JOINT}|\Z)")
_SIGNS = "-+−–"
_UNIT = re.compile(r"(?:\d|(?<![^\W\d_])[^\W\d_]{1,2})\Z")  # what has an exponent: 10^6, m^2
_RAISED = 0.15  # of a line's height
_SMALL = 0.85  # ratio to a line's height

Box = tuple[float, float, float, float]  # left, bottom, right, top; upwards, as in PDF


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, an image (`is_image`, no text) or a comment.

    `raw`, at the place `at` of PDFium's text, is what it was made of. A word that the line's end divides has a hyphen.
    """

    text: str
    left: float
    bottom: float
    right: float
    top: float
    is_image: bool = False
    is_comment: bool = False
    at: int = -1
    raw: str = ""

    @property
    def height(self) -> float:
        return max(self.top - self.bottom, 1.0)

    def is_beside(self, other: "Line") -> bool:
        """Whether it is in the same row."""
        shared = min(self.top, other.top) - max(self.bottom, other.bottom)
        return shared > min(self.height, other.height) / 2


class PageText:
    """PDFium's text of a page, with the box of each character."""

    def __init__(self, page: PdfTextPage, text: str, count: int) -> None:
        self.text = text
        self._page = page.raw
        self._is_complete = len(text) == count  # else a place in the text is not that of its character in the page
        self._box = pdfium.FS_RECTF()
        self._reference = ctypes.byref(self._box)
        self._sides = [ctypes.c_double() for _ in range(4)]
        self._references = [ctypes.byref(side) for side in self._sides]

    def box(self, place: int) -> Box:
        """The font box of the text's character; zeros where PDFium knows none."""
        box = self._box
        if not pdfium.FPDFText_GetLooseCharBox(self._page, self._index(place), self._reference):
            return 0.0, 0.0, 0.0, 0.0
        return box.left, box.bottom, box.right, box.top

    def _index(self, place: int) -> int:
        if self._is_complete:
            return place
        return max(int(pdfium.FPDFText_GetCharIndexFromTextIndex(self._page, place)), 0)

    def line(self, raw: str, at: int) -> Line | None:
        """The line of a piece of the text at this place; None of blanks. Raised numbers are set apart."""
        text = raw.strip()
        end = at + len(raw.rstrip(_LINE_END)) - 1
        if not text or end < at:
            return None
        start = at + len(raw) - len(raw.lstrip())
        left, bottom, right, top = first = self.box(start)
        last = self.box(end)
        right = max(right, last[2])
        if end - start > 1 and (upright := _upright(first, last)) is not None:
            return Line(_words(text), *upright, at=at, raw=raw)
        if not text[0].isalnum():  # a bullet may be of another size
            letter = next((place for place, one in enumerate(text, start=start) if one.isalnum()), start)
            _, bottom, _, top = self.box(letter)
        others = [last]
        if text[0].isdigit() and text[-1].isdigit():  # both may be raised
            others.append(self.box((start + end) // 2))
        for _, low, _, high in others:
            if high - low > top - bottom:
                bottom, top = low, high
        if _NUMBER.search(text) or JOINT in text:
            raised = bottom + _RAISED * (top - bottom), _SMALL * (top - bottom)
            text = self._with_exponents(raw, at, *raised)
        return Line(_words(text), left, bottom, right, top, at=at, raw=raw)

    def gaps(self, line: Line, least: float, *, by_words: bool = False) -> list[float]:
        """The middles of the gaps wider than `least` between what was drawn separately, or (slower) between words."""
        bounds: list[tuple[float, float]] = []
        if by_words:
            words = ((line.at + word.start(), line.at + word.end() - 1) for word in _WORD.finditer(line.raw))
            bounds = [(self.box(start)[0], self.box(end)[2]) for start, end in words]
        else:
            first, last = self._index(line.at), self._index(line.at + len(line.raw) - 1)
            rectangles = pdfium.FPDFText_CountRects(self._page, first, last + 1 - first)
            for number in range(rectangles if rectangles > 1 else 0):
                pdfium.FPDFText_GetRect(self._page, number, *self._references)
                bounds.append((self._sides[0].value, self._sides[2].value))
        return [(right + left) / 2 for (_, right), (left, _) in pairwise(bounds) if left - right > least]

    def pieces(self, line: Line, middles: list[float]) -> list[Line]:
        """The line cut before the first word that begins behind each of these."""
        starts = [word.start() for word in _WORD.finditer(line.raw)] if middles else []
        places = {bisect_left(starts, middle, key=lambda start: self.box(line.at + start)[0]) for middle in middles}
        cuts = [starts[place] for place in sorted(places) if 0 < place < len(starts)]
        if not cuts:
            return [line]
        bounds = zip([0, *cuts], [*cuts, len(line.raw)], strict=True)
        pieces = (self.line(line.raw[start:end], line.at + start) for start, end in bounds)
        return [piece for piece in pieces if piece is not None]

    def _with_exponents(self, raw: str, at: int, least_bottom: float, most_height: float) -> str:
        """The text with raised numbers set apart: `10^6`, and marks of footnotes behind a blank."""
        written, done = "", 0
        found = [one.span() for one in _NUMBER.finditer(raw)]
        if JOINT in raw:
            found = sorted([*found, *(one.span() for one in _LETTER_BETWEEN_JOINTS.finditer(raw))])
        for begin, end in found:
            first, start = begin - (begin > done and raw[begin - 1] in _SIGNS), end
            while start > first:
                _, bottom, _, top = self.box(at + start - 1)
                if bottom < least_bottom or top - bottom > most_height:
                    break
                start -= 1
            if start < end:
                written += raw[done:start].rstrip(JOINT)
                written += ("^" if _UNIT.search(written) else " ") + raw[start:end]
                written += " " if raw[end : end + 1].isalnum() else ""
                done = end
        return written + raw[done:]


def _words(raw: str) -> str:
    if raw.endswith(tuple(HYPHENS)):
        raw = raw.rstrip(HYPHENS) + "-"
    words = " ".join(raw.split())
    if not words.isascii() or JOINT in words:
        words = words.translate(_LIGATURES)
    return words if words.isprintable() else " ".join(normalise(words).split())


def _upright(first: Box, last: Box) -> Box | None:
    """The box of a line that runs upwards or downwards, as if the page were turned; None of another."""
    rise = last[1] - first[1]
    if abs(rise) <= abs(last[0] - first[0]) or abs(rise) < first[2] - first[0]:
        return None
    left, right = min(first[0], last[0]), max(first[2], last[2])
    if rise > 0:
        return first[1], -right, last[3], -left
    return -first[3], left, -last[1], right
