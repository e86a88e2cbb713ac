"""XML of any vocabulary, by lxml: no file, network or DTD access.

Entities of HTML and of ISO's sets are characters, whatever the DTD; of those that a document declares only few plain
words are put in, and those that it may declare outside are left as written.

The shape of the document decides. An element beside text is inline, any other one a block. A `title`, `head` or
`heading` of a block (DocBook, JATS, TEI, RSS, Atom) is a heading, as deep as the titled blocks around it. A few widely
used names are lists, table rows, code, images or emphasis. HTML in an element's text, as in feeds, is read as HTML; a
document whose root is `html` is left to the HTML parser.
"""

import re
from functools import cache
from html.entities import html5
from importlib.resources import files
from typing import Any

from lxml import etree

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import html
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.html_nesting import tag_names
from indexer.parsing.registry import MAX_XML_DEPTH, MAX_XML_TAGS
from indexer.parsing.superscripts import script_marks
from indexer.parsing.text import write_linked

_DECLARATION = re.compile(r"\A\s*<\?xml\b[^>]{0,1000}\?>")
_TITLES = tag_names("title head heading headline")
_DOCUMENT_TITLES = tag_names(
    "article-title articletitle invention-title book-title titleproper doctitle arttitle hl1 mainheadline"
)
_CITATIONS = tag_names("element-citation mixed-citation nlm-citation citation product related-article ref biblstruct")
_NOTES = tag_names("xref fn footnote footnoteref note noteref")
_RAISED = tag_names("sup superscript")
_LOWERED = tag_names("sub inf subscript")
_ISO = re.compile(r"^\.\. \|([^|]+)\|\s+unicode:: ((?:U\+[0-9A-F]+ )+)", re.MULTILINE)
_EMPHASIS = tag_names("b i em strong emphasis bold italic term firstterm dfn hi")
_ITEMS = tag_names("listitem list-item li")
_ROWS = tag_names("row tr")
_VERBATIM = tag_names("programlisting screen literallayout pre preformat code verbatim")
_IMAGES = tag_names("graphic inline-graphic imagedata img image")
_SKIPPED = tag_names("script style indexterm")
_TARGETS = ("href", "{http://www.w3.org/1999/xlink}href", "url", "target")

MAX_UNKNOWN_ENTITIES = 20
MAX_EXPANDED_CHARACTERS = 10_000  # of a document together

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
    unknown = ", ".join(f"&{name};" for name in walk.unknown_entities)
    notes = [f"Entities that only the DTD declares are left as written: {unknown}."] if unknown else []
    return walk.builder.finish(walk.first_heading, notes=notes)


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
        self.unknown_entities: dict[str, None] = {}
        self._has_document_title = False
        self._declared: dict[str, Any] | None = None
        self._expanded = 0

    def block(self, element: _Element, level: int) -> None:
        """Write a block; `level` is the number of titled blocks around it."""
        builder, name = self.builder, _name(element)
        if name in _SKIPPED:
            return
        if name in _VERBATIM:
            builder.verbatim(self._plain(element))
        elif name in _ROWS:
            builder.break_line()
            for number, cell in enumerate(element):
                builder.write(" | " if number else "")
                self._cell(cell)
            builder.break_line()
        elif name in _ITEMS:
            builder.begin_item("-")
            self._content(element, level)
            builder.end_item()
        else:
            builder.break_block()
            self._content(element, level)
            builder.break_block()

    def _cell(self, cell: _Element) -> None:
        """A cell on one line; blocks in it are parted by blanks."""
        if cell.tag is etree.Entity:
            self.builder.write(self._entity(cell))
        elif len(cell) == 0 or _has_text(cell):
            self._inline(cell)
        else:
            for block in cell:
                self._cell(block)
                self.builder.write(" ")

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
                self.builder.write(self._entity(child))
            elif self._titles_document(child):
                self._has_document_title = True
                self._heading(child, 1)
            elif _name(child) in _TITLES and not is_titled:
                is_titled = True
                level += 1
                self._heading(child, level)
            else:
                self.block(child, level)

    def _heading(self, element: _Element, level: int) -> None:
        self.builder.begin_heading()
        self._inline(element, is_heading=True)
        title = self.builder.end_heading(level + (self._has_document_title and not self._titles_document(element)))
        self.first_heading = self.first_heading or title or None

    def _titles_document(self, element: _Element) -> bool:
        """Whether it is the title of the whole, by a name that says so; later ones are text, as those of citations."""
        return (
            self.first_heading is None
            and _name(element) in _DOCUMENT_TITLES
            and not any(_name(around) in _CITATIONS for around in element.iterancestors())
        )

    def _entity(self, entity: _Element) -> str:
        """The character of an HTML or ISO entity, or the few words that the document declares. Others of its own are
        refused; one that it does not declare is left as written."""
        if character := html5.get(f"{entity.name};") or _iso_entities().get(entity.name):
            return character
        if self._declared is None:
            table = entity.getroottree().docinfo.internalDTD
            self._declared = {} if table is None else {each.name: each for each in table.iterentities()}
        own = self._declared.get(entity.name)
        if own is None:
            if len(self.unknown_entities) < MAX_UNKNOWN_ENTITIES:
                self.unknown_entities[entity.name] = None
            return f"&{entity.name};"
        words = own.content or ""
        self._expanded += len(words)
        if own.system_url or not words or re.search("[&<%]", words) or self._expanded > MAX_EXPANDED_CHARACTERS:
            raise unsafe_entities("XML")
        return str(words)

    def _inline(self, element: _Element, *, is_heading: bool = False) -> None:
        builder, name = self.builder, _name(element)
        mark = builder.mark()
        if name in _IMAGES:
            self._image(element)
        behind = self._script(element, name)
        write_linked(builder, element.text or "")
        for child in element:
            if child.tag is etree.Entity:
                builder.write(self._entity(child))
            elif _name(child) not in _SKIPPED and not (is_heading and _name(child) in _NOTES):
                self._inline(child, is_heading=is_heading)
            write_linked(builder, child.tail or "")
        builder.write(behind)
        if name in _EMPHASIS:
            builder.emphasise(mark)
        self._link(element, mark)

    def _script(self, element: _Element, name: str) -> str:
        """Write what goes before a superscript or subscript; what goes behind it."""
        raised = name in _RAISED or (name == "hi" and "sup" in (element.get("rend") or ""))
        if not raised and name not in _LOWERED and not (name == "hi" and "sub" in (element.get("rend") or "")):
            return ""
        within, around = [_name(child) for child in element], element.getparent()
        is_note = bool(_NOTES.intersection(within)) or (around is not None and _name(around) in _NOTES)
        before, behind = script_marks(
            self.builder.last_character(), self._plain(element), element.tail or "", is_raised=raised, is_note=is_note
        )
        self.builder.write(before)
        return behind

    def _plain(self, element: _Element) -> str:
        """The text of an element and its descendants."""
        pieces = [element.text or ""]
        for child in element:
            pieces.append(self._entity(child) if child.tag is etree.Entity else self._plain(child))
            pieces.append(child.tail or "")
        return "".join(pieces)

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
    if (element.text and element.text.strip()) or any(child.tail and child.tail.strip() for child in element):
        return True
    return len(element) > 0 and all(child.tag is etree.Entity for child in element)


@cache
def _iso_entities() -> dict[str, str]:
    """The characters of ISO's entity sets by name, from docutils; those of HTML are most of them, but not all."""
    found: dict[str, str] = {}
    for file in files("docutils.parsers.rst.include").iterdir():
        if file.name.startswith(("iso", "mml")):
            for name, codes in _ISO.findall(file.read_text("utf-8")):
                found[name] = "".join(chr(int(code.removeprefix("U+"), base=16)) for code in codes.split())
    return found
