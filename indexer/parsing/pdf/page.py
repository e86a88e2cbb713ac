"""A page of a PDF: its lines in reading order, with what was written onto it, and its images.

PDFium reads a page in the order in which it was drawn, mostly that of reading.
"""

import ctypes
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pypdfium2.raw as pdfium
from pypdfium2 import PdfPage

from indexer.parsing.decoding import normalise
from indexer.parsing.pdf.annotations import annotations
from indexer.parsing.pdf.characters import HYPHENS, JOINT, Box, Line, PageText
from indexer.parsing.pdf.columns import in_columns

MAX_PAGE_CHARACTERS = 200_000  # a page of dense print has about 10,000
MAX_IMAGES = 50  # of a page
MAX_OBJECTS = 100_000  # of a page, among which images are searched

_RAW_LINE = re.compile(rf"[^\n{HYPHENS}]*(?:[{HYPHENS}]?\r?\n|[{HYPHENS}]|\Z)")
_WORD_GAP = 0.6  # of a line's height
_LETTER_GAP = 0.15  # likewise; a wider one is between words
_FIELD_HEIGHT = 14  # points, of a field of one line; in a higher one, the text begins at its top


def page_lines(page: PdfPage) -> list[Line]:
    """Its lines and images; comments on it at the end."""
    written = [(text, _turned(page, box), is_comment) for text, box, is_comment in annotations(page)]
    text_page = page.get_textpage()
    try:
        count = min(text_page.count_chars(), MAX_PAGE_CHARACTERS)
        text = PageText(text_page, text_page.get_text_range(0, count) if count else "", count)
        lines = in_columns(text, _text_lines(text))
        for value, box, _ in sorted((each for each in written if not each[2]), key=lambda each: each[1][0]):
            lines = _with_value(text, lines, Line(" ".join(normalise(value).split()), *box))
    finally:
        text_page.close()
    for image in islice(_images(page), MAX_IMAGES):
        lines.insert(_place(lines, image), image)
    comments = (
        Line(" ".join(normalise(comment).split()), *box, is_comment=True) for comment, box, is_on in written if is_on
    )
    return [*lines, *comments]


def _text_lines(text: PageText) -> list[Line]:
    lines: list[Line] = []
    for raw in _RAW_LINE.finditer(text.text):
        line = text.line(raw[0], raw.start())
        if line is None:
            continue
        if lines and _is_one_line(lines[-1], line):  # PDFium parts it where a superscript begins
            before = lines.pop()
            ends = len(before.raw) - len(before.raw.rstrip("\r\n"))
            is_word = line.left - before.right > _LETTER_GAP * line.height
            joint = (" " if is_word else JOINT) + JOINT * (ends - 1) if ends else ""
            line = text.line(before.raw.rstrip("\r\n") + joint + line.raw, before.at) or line
        lines.append(line)
    return lines


def _is_one_line(line: Line, following: Line) -> bool:
    gap = (following.left - line.right) / line.height
    return -_WORD_GAP / 2 < gap < _WORD_GAP and line.is_beside(following)


def _with_value(text: PageText, lines: list[Line], value: Line) -> list[Line]:
    """The lines with the value of a form's field behind the words on its left, else before what is below it."""
    labels = [line for line in lines if line.left < value.left and line.is_beside(value)]
    if not labels:
        at = _place(lines, replace(value, bottom=max(value.bottom, value.top - _FIELD_HEIGHT)))
        return [*lines[:at], value, *lines[at:]]
    highest = max(labels, key=lambda line: line.top)
    label = max((line for line in labels if line.is_beside(highest)), key=lambda line: line.left)
    at = lines.index(label)
    head, *tail = text.pieces(label, [value.left])
    return [*lines[:at], replace(head, text=f"{head.text} {value.text}"), *tail, *lines[at + 1 :]]


def _place(lines: list[Line], box: Line) -> int:
    """Where what has no place in the text belongs: before the first line below its middle."""
    middle = (box.bottom + box.top) / 2
    return next((at for at, line in enumerate(lines) if not line.is_image and line.top <= middle), len(lines))


def _images(page: PdfPage) -> Iterator[Line]:
    """Images of the page and of forms on it; by raw calls, as pypdfium2's objects take a fifth of a page's time."""
    sides = [ctypes.c_float() for _ in range(4)]
    for image in _of_kind_image(page.raw, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject):
        if pdfium.FPDFPageObj_GetBounds(image, *map(ctypes.byref, sides)):
            left, bottom, right, top = (side.value for side in sides)
            yield Line("", *_turned(page, (left, bottom, right, top)), is_image=True)


def _of_kind_image(holder: Any, count: Callable[[Any], int], get: Callable[[Any, int], Any]) -> Iterator[Any]:
    kind_of = pdfium.FPDFPageObj_GetType
    for index in range(min(count(holder), MAX_OBJECTS)):
        found = get(holder, index)
        kind = kind_of(found)
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            yield found
        elif kind == pdfium.FPDF_PAGEOBJ_FORM and get is pdfium.FPDFPage_GetObject:
            yield from _of_kind_image(found, pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject)


def _turned(page: PdfPage, box: Box) -> Box:
    """A box on a page that is shown turned, as lines of its text are turned."""
    left, bottom, right, top = box
    turns = page.get_rotation()
    if turns == 90:
        return bottom, -right, top, -left
    return (-top, left, -bottom, right) if turns == 270 else box
