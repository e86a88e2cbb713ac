"""Presentations (PPTX): a slide is a page and a section under its title, with its tables, diagrams and notes."""

from collections.abc import Iterator
from typing import Any

import msgspec
from lxml import etree

from indexer.documents import ParsedDocument
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.office.archive import Archive
from indexer.parsing.office.equations import MATH, equation_text
from indexer.parsing.text import write_linked

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # repeats the choice
_PRESENTATION = "ppt/presentation.xml"
_ROUND_THE_SLIDE = ("sldNum", "dt", "ftr", "hdr", "sldImg")
_TITLES = ("title", "ctrTitle")


def parse(content: bytes) -> ParsedDocument:
    """The title is that of the first slide that has one."""
    archive = Archive(content, "PPTX")
    archive.require("ppt/", "presentation")
    slides = archive.relations(_PRESENTATION)
    presentation = archive.part(_PRESENTATION)
    listed = () if presentation is None else presentation.iter(f"{_P}sldId")
    writer = _Writer(archive)
    starts = [
        writer.slide(name, number)
        for number, name in enumerate(dict.fromkeys(slides.get(one.get(f"{_R}id"), "") for one in listed), start=1)
    ]
    kinds = {"ppt/comments": "comments", "ppt/charts": "charts", "ppt/embeddings": "embedded files"}
    left_out = sorted(
        {kind for folder, kind in kinds.items() if any(name.startswith(folder) for name in archive.names)}
    )
    notes = [f"Left out of the PPTX: {', '.join(left_out)}."] if left_out else []
    return msgspec.structs.replace(writer.builder.finish(writer.title, notes=notes), page_starts=tuple(starts))


class _Writer:
    def __init__(self, archive: Archive) -> None:
        self.builder = DocumentBuilder()
        self.title: str | None = None
        self._archive = archive

    def slide(self, name: str, number: int) -> int:
        """Write a slide; where it begins in the text."""
        builder, root = self.builder, self._archive.part(name)
        builder.break_block()
        start = builder.mark()
        if root is None:
            return start
        etree.strip_elements(root, _FALLBACK, with_tail=False)
        titles = [shape for shape in root.iter(f"{_P}sp") if _placeholder(shape) in _TITLES]
        title = " ".join(text for shape in titles for text in _paragraphs(shape))
        if title:
            builder.heading(1, title)
            self.title = self.title or title
        else:
            builder.open_section((f"slide {number}",))
        relations = self._archive.relations(name)
        self._shapes(root, relations)
        for related in relations.values():
            notes = self._archive.part(related) if "notesSlide" in related else None
            if notes is not None:
                self._shapes(notes, {})
        return start

    def _shapes(self, root: Any, relations: dict[str, str]) -> None:
        builder = self.builder
        for shape in root.iter(f"{_P}sp", f"{_P}pic", f"{_A}tbl", _DIAGRAM):
            builder.break_block()
            if shape.tag == f"{_A}tbl":
                for row in shape.iter(f"{_A}tr"):
                    builder.row(" ".join(_paragraphs(cell)) for cell in row.iter(f"{_A}tc"))
            elif shape.tag == f"{_P}pic":
                mark = builder.mark()
                for properties in shape.iterfind(f"{_P}nvPicPr/{_P}cNvPr"):
                    builder.write(properties.get("descr", ""))
                builder.image(mark)
            elif shape.tag == _DIAGRAM:
                self._lines(self._archive.part(relations.get(shape.get(f"{_R}dm"), "")))
            elif _placeholder(shape) not in (*_TITLES, *_ROUND_THE_SLIDE):
                self._lines(shape)

    def _lines(self, shape: Any | None) -> None:
        for text in () if shape is None else _paragraphs(shape):
            write_linked(self.builder, text)
            self.builder.break_line()


def _placeholder(shape: Any) -> str | None:
    found = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    return None if found is None else found.get("type", "obj")


def _paragraphs(shape: Any) -> Iterator[str]:
    for paragraph in shape.iter(f"{_A}p"):
        pieces = (_piece(element) for element in paragraph.iter(f"{_A}t", f"{_A}br", f"{MATH}oMath"))
        text = " ".join("".join(pieces).split())
        if text:
            yield text


def _piece(element: Any) -> str:
    if element.tag == f"{MATH}oMath":
        return f" {equation_text(element)} "
    return element.text or "" if element.tag == f"{_A}t" else " "
