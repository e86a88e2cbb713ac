"""PDF, by pypdfium2 (PDFium): the text of the pages in reading order, with headings from the outline.

The heading of an outline entry is the line of its page with the same text (the outline may leave out a leading number);
without such a line it is at the start of the page. A PDF without an outline has one section: headings are not
guessed from type sizes. Scanned pages without a text layer yield no text. `ParsedDocument.page_starts` holds the offset
of each page, so that a hit can point to its page. A paragraph ends with its page.

Paragraphs are found by the positions of their lines.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from time import process_time

import msgspec
import pypdfium2.raw as pdfium
from pypdfium2 import PdfDocument, PdfiumError

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.decoding import normalise
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.front_matter import Fields
from indexer.parsing.pdf.characters import Line
from indexer.parsing.pdf.hyphens import HYPHEN, joined_lines
from indexer.parsing.pdf.page import page_lines
from indexer.parsing.pdf.running_heads import without_running_heads
from indexer.parsing.registry import MAX_PDF_CHARACTERS, MAX_PDF_CPU_SECONDS, MAX_PDF_PAGES
from indexer.parsing.text import write_linked

MAX_OUTLINE_ENTRIES = 4_000
MAX_OUTLINE_DEPTH = 16

Outline = dict[int, list[tuple[int, str]]]  # page → (level from 1, title) of each entry, in order

_HEADING_LINES = 3  # the most lines a heading may take
_HEADING_SEARCH = 200  # lines of a page that are searched for an entry
_HEADING_SLACK = 16  # characters of a number that the outline leaves out
_NUMBERING = re.compile(
    r"\A(?:(?:chapter|section|part|appendix)\s+)?(?:[\dIVXLC]+|[A-Z])(?:\.\d+)*[.:)]?\s+", re.IGNORECASE
)
_ITEM = re.compile(r"(?:[-*•‣◦▪–]|\(?\d{1,3}[.)])\s+\S")
_BULLET = re.compile(r"\A[*•‣◦▪–](?=\s)")
_NO_TITLE = re.compile(r"untitled.*|microsoft \w+ - .*|\S+\.(?:docx?|pdf|tex|dvi|indd|odt|pptx?|html?)", re.IGNORECASE)
_FIELDS = ("Author", "Subject", "Keywords")
_PARAGRAPH_GAP = 0.5  # of a line's height, between two lines
_INDENT = 0.7  # of a line's height: the first line of a paragraph
_OTHER_SIZE = 1.15  # ratio of two lines' heights that separates them
_XFA = "The form is one of XFA, which is not read; what else the PDF shows is."


def parse(content: bytes) -> ParsedDocument:
    """The title is that of the document's properties, else the only entry on the outline's first level.

    Author, subject and keywords of the properties become fields.
    """
    try:
        pdf = PdfDocument(content)
    except PdfiumError as error:
        if "password" in str(error).lower() or "security" in str(error).lower():
            raise UnparsableDocument("protected", "The PDF is locked by a password; send it unlocked.") from error
        raise UnparsableDocument("malformed", "The content is not PDF: it is damaged beyond repair.") from error
    with pdf:
        pages = len(pdf)
        if pages > MAX_PDF_PAGES:
            raise UnparsableDocument(
                "too_large", f"The PDF says it has {pages:,} pages; the limit is {MAX_PDF_PAGES:,}."
            )
        is_xfa = pdf.get_formtype() in (pdfium.FORMTYPE_XFA_FULL, pdfium.FORMTYPE_XFA_FOREGROUND)
        if pdf.get_formtype() == pdfium.FORMTYPE_ACRO_FORM or is_xfa:
            pdf.init_forms()
        outline = _outline(pdf)
        lines = without_running_heads(list(_pages(pdf)))
        fields, title = _properties(pdf)
    writer = _Writer(lines)
    for number, page in enumerate(lines):
        writer.page(page, outline.get(number, []))
    return writer.finish(title, fields, [_XFA] if is_xfa else [])


def _pages(pdf: PdfDocument) -> Iterator[list[Line]]:
    latest = process_time() + MAX_PDF_CPU_SECONDS
    characters = 0
    for number in range(len(pdf)):
        if process_time() > latest:
            raise UnparsableDocument(
                "too_large", f"Reading the PDF takes more than {MAX_PDF_CPU_SECONDS} CPU seconds; split it."
            )
        lines = _lines(pdf, number)
        characters += sum(len(line.text) for line in lines)
        if characters > MAX_PDF_CHARACTERS:
            raise UnparsableDocument(
                "too_large", f"The PDF has more than {MAX_PDF_CHARACTERS:,} characters of text; split it."
            )
        yield lines


def _lines(pdf: PdfDocument, number: int) -> list[Line]:
    """The lines of a page; none of a damaged one, as the other pages can still be read."""
    try:
        page = pdf[number]
    except PdfiumError:
        return []
    try:
        return page_lines(page)
    except PdfiumError:
        return []
    finally:
        page.close()


def _outline(pdf: PdfDocument) -> Outline:
    entries: Outline = {}
    try:
        for entry in islice(pdf.get_toc(max_depth=MAX_OUTLINE_DEPTH), MAX_OUTLINE_ENTRIES):
            destination = entry.get_dest()
            number = destination.get_index() if destination is not None else None
            title = " ".join(normalise(entry.get_title()).split())
            if number is not None and title:
                entries.setdefault(number, []).append((entry.level + 1, title))
    except (PdfiumError, UnicodeDecodeError, RecursionError):
        return {}
    return entries


def _properties(pdf: PdfDocument) -> tuple[Fields, str | None]:
    """The fields and the title of the document's properties; a file name does not count as a title."""
    try:
        stated = {
            name: " ".join(normalise(text).split()) for name, text in pdf.get_metadata_dict(skip_empty=True).items()
        }
    except (PdfiumError, UnicodeDecodeError):
        return [], None
    title = stated.get("Title", "")[:500]
    fields = [(name.lower(), stated[name][:500]) for name in _FIELDS if stated.get(name)]
    return fields, None if not title or _NO_TITLE.fullmatch(title) else title


class _Writer:
    def __init__(self, pages: list[list[Line]]) -> None:
        self._builder = DocumentBuilder()
        self._pages = pages
        self._page_starts: list[int] = []
        self._outermost: list[str] = []

    def page(self, lines: list[Line], entries: list[tuple[int, str]]) -> None:
        """Write the lines of a page, divided by the headings of its outline entries."""
        self._builder.break_block()
        self._page_starts.append(self._builder.mark())
        written = 0
        for (first, behind), (level, title) in _placed(lines, entries):
            self._paragraphs(lines[written:first])
            self._builder.heading(level, self._joined(lines[first:behind]) or title)
            self._outermost += [title] if level == 1 else []
            written = behind
        self._paragraphs(lines[written:])

    def finish(self, title: str | None, fields: Fields, notes: list[str]) -> ParsedDocument:
        only = self._outermost[0] if len(self._outermost) == 1 else None
        parsed = self._builder.finish(title or only, fields, notes)
        if not self._builder.mark():
            raise UnparsableDocument(
                "pictures_only", "Nothing readable is in the PDF: its pages have no text, as scanned ones have none."
            )
        return msgspec.structs.replace(parsed, page_starts=tuple(self._page_starts))

    def _paragraphs(self, lines: list[Line]) -> None:
        builder = self._builder
        in_list = False
        for paragraph in page_paragraphs(lines):
            if not (in_list and _ITEM.match(paragraph[0].text)):
                builder.break_block()
            if paragraph[0].is_image:
                builder.image(builder.mark())
            starts = [at for at, line in enumerate(paragraph) if at == 0 or _ITEM.match(line.text)]
            for start, end in zip(starts, [*starts[1:], len(paragraph)], strict=True):
                if _ITEM.match(paragraph[start].text):
                    builder.break_line() if in_list else builder.break_block()
                    in_list = True
                write_linked(builder, _BULLET.sub("-", self._joined(paragraph[start:end])))
            in_list = in_list and bool(_ITEM.match(paragraph[0].text))

    def _joined(self, lines: list[Line]) -> str:
        texts = [line.text for line in lines]
        return joined_lines(texts, self._words if any(text.endswith(HYPHEN) for text in texts) else ())

    @cached_property
    def _words(self) -> set[str]:
        return {word for page in self._pages for line in page for word in line.text.casefold().split()}


def _placed(lines: list[Line], entries: list[tuple[int, str]]) -> Iterator[tuple[tuple[int, int], tuple[int, str]]]:
    """(lines [first, end) of its heading, entry) of each entry, in order of the lines."""
    at = 0
    for level, title in entries:
        spans = [(span, _text(lines, span)) for span in _spans(lines, at, len(title) + _HEADING_SLACK)]
        exactly = (span for span, text in spans if text == title.casefold())
        loosely = (span for span, text in spans if _without_number(text) == _without_number(title.casefold()))
        found = next(exactly, None) or next(loosely, (at, at))
        yield found, (level, title)
        at = found[1]


def _spans(lines: list[Line], at: int, most_characters: int) -> Iterator[tuple[int, int]]:
    """Where a heading may be: one line, or a few."""
    for first in range(at, min(at + _HEADING_SEARCH, len(lines))):
        length = 0
        for behind in range(first + 1, min(first + _HEADING_LINES, len(lines)) + 1):
            length += len(lines[behind - 1].text) + 1
            if length > most_characters:
                break
            yield first, behind


def _text(lines: list[Line], span: tuple[int, int]) -> str:
    return joined_lines([line.text for line in lines[slice(*span)]]).casefold()


def _without_number(heading: str) -> str:
    return _NUMBERING.sub("", heading, count=1)


def page_paragraphs(lines: list[Line]) -> Iterator[list[Line]]:
    """The lines of each paragraph, or one image."""
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
    if line.is_image or before.is_image or line.is_comment:
        return True
    heights = sorted((before.height, line.height))
    if heights[1] > heights[0] * _OTHER_SIZE:
        return True
    gap = before.bottom - line.top
    if gap > heights[0] * _PARAGRAPH_GAP:
        return True
    if line.bottom > before.top:  # a new column continues the sentence
        return before.text.endswith((".", "!", "?", ":"))
    is_indented = line.left - before.left > _INDENT * line.height
    return is_indented and len(paragraph) > 1 and before.text.endswith((".", "!", "?", ":"))
