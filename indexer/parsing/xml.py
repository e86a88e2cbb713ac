"""XML of any vocabulary, by lxml: no file, network or DTD access; entities declared by a document are not expanded.

The shape of the document decides. An element beside text is inline, any other one a block. A `title`, `head` or
`heading` of a block (DocBook, JATS, TEI, RSS, Atom) is a heading, as deep as the titled blocks around it. A few widely
used names are lists, table rows, code, images or emphasis. HTML in an element's text, as in feeds, is read as HTML; a
document whose root is `html` is left to the HTML parser.
"""

import re
from html.entities import html5
from typing import Any

from lxml import etree

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import html
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.html import tag_names
from indexer.parsing.registry import MAX_XML_DEPTH, MAX_XML_TAGS
from indexer.parsing.text import write_linked

_DECLARATION = re.compile(r"\A\s*<\?xml\b[^>]{0,1000}\?>")
_TITLES = tag_names("title head heading headline")
_EMPHASIS = tag_names("b i em strong emphasis bold italic term firstterm dfn hi")
_ITEMS = tag_names("listitem list-item li")
_ROWS = tag_names("row tr")
_VERBATIM = tag_names("programlisting screen literallayout pre preformat code verbatim")
_IMAGES = tag_names("graphic inline-graphic imagedata img image")
_SKIPPED = tag_names("script style")
_TARGETS = ("href", "{http://www.w3.org/1999/xlink}href", "url", "target")

_Element = Any  # lxml has no types


def parse(text: str) -> ParsedDocument:
    """The title is the first heading."""
    tags = text.count("<")
    if tags > MAX_XML_TAGS:
        raise UnparsableDocument("too_large", f"The XML has {tags:,} tags; the limit is {MAX_XML_TAGS:,}.")
    root = read_tree(_DECLARATION.sub("", text).encode("utf-8", "replace"))
    if _name(root) == "html":
        return html.parse(text)
    walk = _Walk()
    walk.block(root, 0)
    return walk.builder.finish(walk.first_heading)


def read_tree(content: bytes, *, what: str = "XML") -> _Element:
    """The root element of UTF-8 bytes, or of bytes that declare another encoding.

    Raises UnparsableDocument: `too_deep`, `unsafe` for nested entities, `malformed` with the line.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        message = str(error).lower()
        if "depth" in message:
            raise UnparsableDocument("too_deep", f"The {what} nests deeper than {MAX_XML_DEPTH} levels.") from error
        if "amplification" in message or "entity reference loop" in message:
            raise unsafe_entities(what) from error
        line, column = error.position
        raise UnparsableDocument(
            "malformed", f"The content is not {what}: line {line}, column {column} breaks its rules."
        ) from error


def unsafe_entities(what: str) -> UnparsableDocument:
    return UnparsableDocument(
        "unsafe", f"The {what} uses entities that it declares itself; send it with their text in their place."
    )


class _Walk:
    """Writes a tree in document order; libxml2's limit on depth bounds the recursion."""

    def __init__(self) -> None:
        self.builder = DocumentBuilder()
        self.first_heading: str | None = None

    def block(self, element: _Element, level: int) -> None:
        """Write a block; `level` is the number of titled blocks around it."""
        builder, name = self.builder, _name(element)
        if name in _SKIPPED:
            return
        if name in _VERBATIM:
            builder.verbatim(_plain(element))
        elif name in _ROWS:
            builder.row(_plain(cell) for cell in element)
        elif name in _ITEMS:
            builder.begin_item("-")
            self._content(element, level)
            builder.end_item()
        else:
            builder.break_block()
            self._content(element, level)
            builder.break_block()

    def _content(self, element: _Element, level: int) -> None:
        if _name(element) in _IMAGES:
            self._image(element)
        is_prose = _has_text(element)
        if is_prose and len(element) == 0:
            mark = self.builder.mark()
            html.write_text_or_markup(self.builder, element.text)
            self._link(element, mark)
        elif is_prose:
            self._inline(element)
        else:
            self._blocks(element, level)

    def _blocks(self, element: _Element, level: int) -> None:
        is_titled = False
        for child in element:
            if child.tag is etree.Entity:
                self.builder.write(_entity(child))
            elif _name(child) in _TITLES and not is_titled:
                is_titled = True
                level += 1
                self._heading(child, level)
            else:
                self.block(child, level)

    def _heading(self, element: _Element, level: int) -> None:
        self.builder.begin_heading()
        self._inline(element)
        title = self.builder.end_heading(level)
        self.first_heading = self.first_heading or title or None

    def _inline(self, element: _Element) -> None:

        builder, name = self.builder, _name(element)
        mark = builder.mark()
        if name in _IMAGES:
            self._image(element)
        write_linked(builder, element.text or "")
        for child in element:
            if child.tag is etree.Entity:
                builder.write(_entity(child))
            elif _name(child) not in _SKIPPED:
                self._inline(child)
            write_linked(builder, child.tail or "")
        if name in _EMPHASIS:
            builder.emphasise(mark)
        self._link(element, mark)

    def _image(self, element: _Element) -> None:
        mark = self.builder.mark()
        self.builder.write(element.get("alt") or "")
        self.builder.image(mark)

    def _link(self, element: _Element, mark: int) -> None:
        target = next((element.get(name) for name in _TARGETS if element.get(name)), None)
        if target and _name(element) not in _IMAGES:
            self.builder.link(target, mark)


def _name(element: _Element) -> str:
    """An element's name without its namespace; empty for other nodes."""
    return etree.QName(element).localname.lower() if isinstance(element.tag, str) else ""


def _has_text(element: _Element) -> bool:
    """Whether an element has text directly in it, beside its children."""
    return bool((element.text and element.text.strip()) or any(child.tail and child.tail.strip() for child in element))


def _entity(entity: _Element) -> str:
    """The character of an HTML entity; any other one is refused."""
    character = html5.get(f"{entity.name};")
    if character is None:
        raise unsafe_entities("XML")
    return character


def _plain(element: _Element) -> str:
    """The text of an element and its descendants."""
    pieces = [element.text or ""]
    for child in element:
        pieces.append(_entity(child) if child.tag is etree.Entity else _plain(child))
        pieces.append(child.tail or "")
    return "".join(pieces)
