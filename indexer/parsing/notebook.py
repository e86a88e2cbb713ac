"""Jupyter notebooks (nbformat 3 and 4, https://nbformat.readthedocs.io), read as the Markdown that they are made of:
cells of code, and what they printed, are code blocks."""

from collections.abc import Iterator
from typing import Any

import msgspec

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import markdown


def parse(text: str) -> ParsedDocument:
    """The title is the first heading of the first level. Pictures and other output than text are left out."""
    try:
        notebook = msgspec.json.decode(text)
        cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
        language = notebook.get("metadata", {}).get("kernelspec", {}).get("language", "")
        return markdown.parse("\n\n".join(block for cell in cells for block in _blocks(cell, language)))
    except (msgspec.DecodeError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise UnparsableDocument("malformed", "The content is not a notebook: it has no list of cells.") from error


def _blocks(cell: dict[str, Any], language: str) -> Iterator[str]:
    source = _joined(cell.get("source", cell.get("input")))
    if cell["cell_type"] == "heading":
        yield f"{'#' * cell.get('level', 1)} {source}"
    elif cell["cell_type"] != "code":
        yield source
    else:
        yield _fenced(source, language)
        for output in cell.get("outputs", ()):
            printed = output.get("text") or output.get("data", {}).get("text/plain")
            if printed:
                yield _fenced(_joined(printed), "")


def _joined(source: str | list[str] | None) -> str:
    return source if isinstance(source, str) else "".join(source or ())


def _fenced(code: str, language: str) -> str:
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}" if code.strip() else ""
