"""The lines of a PDF page and the paragraphs they make, told from where they stand. Lengths are in points."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import pypdfium2.raw as pdfium
from pypdfium2 import PdfPage, PdfTextPage

from indexer.parsing.decoding import clean
from indexer.parsing.limits import MAX_PDF_PAGE_CHARACTERS

MAX_IMAGES = 50

_PARAGRAPH_GAP = 0.5  # of a line's height, between two lines
_INDENT = 0.7  # of a line's height: the first line of a paragraph
_OTHER_SIZE = 1.15  # the ratio of two lines' heights from which on they are set apart
_HYPHENS = ("\x02", "\ufffe")  # what PDFium makes of a hyphen at the end of a line


@dataclass(frozen=True)
class Line:
    """A line of text, or an image (`is_image`, no text). `top` and `bottom` grow upwards, as in PDF."""

    text: str
    left: float
    bottom: float
    top: float
    is_image: bool = False
    is_hyphenated: bool = False

    @property
    def height(self) -> float:
        return max(self.top - self.bottom, 1.0)


def lines_of(page: PdfPage) -> list[Line]:
    """A page's lines in PDFium's order, which is mostly that of reading, with its images between them."""
    text_page = page.get_textpage()
    try:
        count = min(text_page.count_chars(), MAX_PDF_PAGE_CHARACTERS)
        lines = list(_text_lines(text_page, text_page.get_text_range(0, count))) if count else []
    finally:
        text_page.close()
    return _with_images(lines, list(_images(page)))


def paragraphs_of(lines: list[Line]) -> Iterator[list[Line]]:
    """Runs of lines of a paragraph, or one image."""
    paragraph: list[Line] = []
    for line in lines:
        if paragraph and _begins_paragraph(paragraph, line):
            yield paragraph
            paragraph = []
        paragraph.append(line)
    if paragraph:
        yield paragraph


def _begins_paragraph(paragraph: list[Line], line: Line) -> bool:
    before = paragraph[-1]
    if line.is_image or before.is_image:
        return True
    heights = sorted((before.height, line.height))
    if heights[1] > heights[0] * _OTHER_SIZE:
        return True
    gap = before.bottom - line.top
    if gap > heights[0] * _PARAGRAPH_GAP:
        return True
    if line.bottom > before.top:  # a new column goes on with the sentence
        return before.text.endswith((".", "!", "?", ":"))
    is_indented = line.left - before.left > _INDENT * line.height
    return is_indented and len(paragraph) > 1 and before.text.endswith((".", "!", "?", ":"))


def _text_lines(page: PdfTextPage, text: str) -> Iterator[Line]:
    at = 0
    for raw in _joined_hyphens(text):
        words = " ".join(clean(raw.rstrip("\r\n").rstrip("".join(_HYPHENS))).split())
        if words:
            first = at + len(raw) - len(raw.lstrip())
            letter = next((place for place, one in enumerate(raw, start=at) if one.isalnum()), first)
            left = _box(page, first)[0]
            _, bottom, _, top = _box(page, letter)  # a bullet may be of another size
            yield Line(words, left, bottom, top, is_hyphenated=raw.rstrip("\r\n").endswith(_HYPHENS))
        at += len(raw)


def _joined_hyphens(text: str) -> Iterator[str]:
    """Lines with their ends; a hyphen that PDFium marks ends a line too."""
    start = 0
    for position, character in enumerate(text):
        if character == "\n" or (character in _HYPHENS and text[position + 1 : position + 2] not in ("\r", "\n")):
            yield text[start : position + 1]
            start = position + 1
    if start < len(text):
        yield text[start:]


def _box(page: PdfTextPage, position: int) -> tuple[float, float, float, float]:
    """Left, bottom, right and top of the font box of the text's character; zeros where PDFium knows none."""
    index = max(pdfium.FPDFText_GetCharIndexFromTextIndex(page, position), 0)
    box = pdfium.FS_RECTF()
    if not pdfium.FPDFText_GetLooseCharBox(page, index, ctypes.byref(box)):
        return 0.0, 0.0, 0.0, 0.0
    return box.left, box.bottom, box.right, box.top


def _images(page: PdfPage) -> Iterator[Line]:
    for image in islice(page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=2), MAX_IMAGES):
        left, bottom, _, top = image.get_bounds()
        yield Line("", left, bottom, top, is_image=True)


def _with_images(lines: list[Line], images: list[Line]) -> list[Line]:
    """The lines with each image before the first line that stands below its lower edge."""
    placed = list(lines)
    for image in images:
        middle = (image.bottom + image.top) / 2
        at = next((at for at, line in enumerate(placed) if not line.is_image and line.top <= middle), len(placed))
        placed.insert(at, image)
    return placed
