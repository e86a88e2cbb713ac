"""PDF, by pypdfium2 (PDFium): the text of its pages in reading order, with headings where the outline names them.

An outline entry's heading is the line of its page that says the same (a number in front of it may be left out in the
outline); without such a line it stands where the page begins. A PDF without an outline has one section: headings are
not guessed from type sizes. The text of scanned pages without a text layer is not read.

The bytes are no text, so offsets count characters of the text that was extracted. `ParsedDocument.page_starts` tells
where in it each page begins, so that a hit can point to its page; `indexer.pipeline` keeps that in the document's
metadata. A paragraph ends where its page does.
"""

import re
from collections.abc import Iterator
from itertools import islice
from time import process_time

import msgspec
from pypdfium2 import PdfDocument, PdfiumError

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.decoding import clean
from indexer.parsing.document_builder import TextAssembler
from indexer.parsing.header_blocks import Fields
from indexer.parsing.limits import (
    MAX_OUTLINE_DEPTH,
    MAX_OUTLINE_ENTRIES,
    MAX_PDF_CHARACTERS,
    MAX_PDF_CPU_SECONDS,
    MAX_PDF_PAGES,
)
from indexer.parsing.pdf_lines import Line, lines_of, paragraphs_of
from indexer.parsing.text import write_linked

Outline = dict[int, list[tuple[int, str]]]

_HEADING_LINES = 3  # a heading may be broken into so many lines
_HEADING_SEARCH = 200  # lines of a page in which an entry is looked for
_HEADING_SLACK = 16  # characters of a number that the outline leaves out
_NUMBERING = re.compile(
    r"\A(?:(?:chapter|section|part|appendix)\s+)?(?:[\dIVXLC]+|[A-Z])(?:\.\d+)*[.:)]?\s+", re.IGNORECASE
)
_ITEM = re.compile(r"(?:[-*•‣◦▪–]|\(?\d{1,3}[.)])\s+\S")
_BULLET = re.compile(r"\A[*•‣◦▪–](?=\s)")
_NO_TITLE = re.compile(r"untitled.*|microsoft \w+ - .*|\S+\.(?:docx?|pdf|tex|dvi|indd|odt|pptx?|html?)", re.IGNORECASE)
_FIELDS = ("Author", "Subject", "Keywords")


def parse(content: bytes) -> ParsedDocument:
    """The title is that of the document's properties, else the only entry on the outline's first level.

    Author, subject and keywords of the properties become fields.
    """
    try:
        pdf = PdfDocument(content)
    except PdfiumError as error:
        if "password" in str(error).lower() or "security" in str(error).lower():
            raise UnparsableDocument("malformed", "The PDF is locked by a password; send it unlocked.") from error
        raise UnparsableDocument("malformed", "The content is not PDF: it is damaged beyond repair.") from error
    with pdf:
        pages = len(pdf)
        if pages > MAX_PDF_PAGES:
            raise UnparsableDocument(
                "too_large", f"The PDF says it has {pages:,} pages; the limit is {MAX_PDF_PAGES:,}."
            )
        outline = _outline(pdf)
        writer = _Writer(TextAssembler())
        latest = process_time() + MAX_PDF_CPU_SECONDS
        for number in range(pages):
            if process_time() > latest:
                raise UnparsableDocument(
                    "too_large", f"Reading the PDF takes more than {MAX_PDF_CPU_SECONDS} CPU seconds; split it."
                )
            writer.page(_lines(pdf, number), outline.get(number, []))
        fields, title = _properties(pdf)
    return writer.finish(title, fields)


def _lines(pdf: PdfDocument, number: int) -> list[Line]:
    """The lines of a page; none of one that is damaged, as the other pages can still be read."""
    try:
        page = pdf[number]
    except PdfiumError:
        return []
    try:
        return lines_of(page)
    except PdfiumError:
        return []
    finally:
        page.close()


def _outline(pdf: PdfDocument) -> Outline:
    """The entries of each page, as (level from 1, title), in the outline's order."""
    entries: Outline = {}
    try:
        for entry in islice(pdf.get_toc(max_depth=MAX_OUTLINE_DEPTH), MAX_OUTLINE_ENTRIES):
            destination = entry.get_dest()
            number = destination.get_index() if destination is not None else None
            title = " ".join(clean(entry.get_title()).split())
            if number is not None and title:
                entries.setdefault(number, []).append((entry.level + 1, title))
    except (PdfiumError, UnicodeDecodeError, RecursionError):
        return {}
    return entries


def _properties(pdf: PdfDocument) -> tuple[Fields, str | None]:
    """The fields and the title that the document states of itself; names of files are no titles."""
    try:
        stated = {name: " ".join(clean(text).split()) for name, text in pdf.get_metadata_dict(skip_empty=True).items()}
    except (PdfiumError, UnicodeDecodeError):
        return [], None
    title = stated.get("Title", "")[:500]
    fields = [(name.lower(), stated[name][:500]) for name in _FIELDS if stated.get(name)]
    return fields, None if not title or _NO_TITLE.fullmatch(title) else title


class _Writer:
    """Writes page after page."""

    def __init__(self, assembler: TextAssembler) -> None:
        self._assembler = assembler
        self._page_starts: list[int] = []
        self._outermost: list[str] = []

    def page(self, lines: list[Line], entries: list[tuple[int, str]]) -> None:
        """Write a page: its lines, cut at the headings that its outline entries name."""
        self._assembler.break_block()
        self._page_starts.append(self._assembler.mark())
        written = 0
        for (first, behind), (level, title) in _placed(lines, entries):
            self._paragraphs(lines[written:first])
            self._assembler.heading(level, " ".join(line.text for line in lines[first:behind]) or title)
            self._outermost += [title] if level == 1 else []
            written = behind
        self._paragraphs(lines[written:])
        if self._assembler.mark() > MAX_PDF_CHARACTERS:
            raise UnparsableDocument(
                "too_large", f"The PDF has more than {MAX_PDF_CHARACTERS:,} characters of text; split it."
            )

    def finish(self, title: str | None, fields: Fields) -> ParsedDocument:
        only = self._outermost[0] if len(self._outermost) == 1 else None
        parsed = self._assembler.finish(title or only, fields)
        if not self._assembler.mark():
            raise UnparsableDocument(
                "empty_content", "Nothing readable is in the PDF: its pages have no text, as scanned ones have none."
            )
        return msgspec.structs.replace(parsed, page_starts=tuple(self._page_starts))

    def _paragraphs(self, lines: list[Line]) -> None:
        assembler = self._assembler
        in_list = False
        for paragraph in paragraphs_of(lines):
            if not (in_list and _ITEM.match(paragraph[0].text)):
                assembler.break_block()
            if paragraph[0].is_image:
                assembler.image(assembler.mark())
            for line in paragraph:
                if _ITEM.match(line.text):
                    assembler.break_line() if in_list else assembler.break_block()
                    in_list = True
                write_linked(assembler, _BULLET.sub("-", line.text) + ("" if line.is_hyphenated else " "))
            in_list = in_list and bool(_ITEM.match(paragraph[0].text))


def _placed(lines: list[Line], entries: list[tuple[int, str]]) -> Iterator[tuple[tuple[int, int], tuple[int, str]]]:
    """Where each entry's heading stands, as (first line, line behind it), in order of the lines."""
    at = 0
    for level, title in entries:
        spans = [(span, _text(lines, span)) for span in _spans(lines, at, len(title) + _HEADING_SLACK)]
        exactly = (span for span, text in spans if text == title.casefold())
        loosely = (span for span, text in spans if _without_number(text) == _without_number(title.casefold()))
        found = next(exactly, None) or next(loosely, (at, at))
        yield found, (level, title)
        at = found[1]


def _spans(lines: list[Line], at: int, most_characters: int) -> Iterator[tuple[int, int]]:
    """Where a heading may stand: one line, or a few."""
    for first in range(at, min(at + _HEADING_SEARCH, len(lines))):
        length = 0
        for behind in range(first + 1, min(first + _HEADING_LINES, len(lines)) + 1):
            length += len(lines[behind - 1].text) + 1
            if length > most_characters:
                break
            yield first, behind


def _text(lines: list[Line], span: tuple[int, int]) -> str:
    return " ".join(line.text for line in lines[slice(*span)]).casefold()


def _without_number(heading: str) -> str:
    return _NUMBERING.sub("", heading, count=1)
