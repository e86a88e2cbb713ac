"""Books (EPUB): the chapters in their order, read as HTML; one without a heading gets its title from the contents."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import html
from indexer.parsing.decoding import decode_text
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.html_nesting import limit_nesting
from indexer.parsing.office.archive import Archive, beside
from indexer.parsing.xml import read_tree

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_CONTENTS = "application/x-dtbncx+xml"
_FIELDS = {"creator": "author", "subject": "subject", "publisher": "publisher", "date": "date"}
_HEADING = re.compile(r"<h[1-6]\b", re.IGNORECASE)
_CLOSED_AT_ONCE = re.compile(r"<((?!br|hr|img|meta|link|col|input)[a-z]+\d?)\b([^<>]*)/>")  # HTML knows no such end


def parse(content: bytes) -> ParsedDocument:
    """Title, authors and the like are those of the package; links within the book are left out."""
    archive = Archive(content, "EPUB")
    archive.require(_CONTAINER, "book")
    package_name = next((one.get("full-path", "") for one in _tree(archive, _CONTAINER).iter("{*}rootfile")), "")
    package = _tree(archive, package_name)
    items = {item.get("id"): item for item in package.iter("{*}item")}
    listed = (items[one.get("idref")] for one in package.iter("{*}itemref") if one.get("idref") in items)
    pages = [beside(package_name, item.get("href", "")) for item in listed if item.get("media-type") in _PAGES]
    if any(one.get("URI") in pages for one in _tree(archive, _ENCRYPTION).iter("{*}CipherReference")):
        raise UnparsableDocument("protected", "The chapters of the EPUB are encrypted; send it without its lock.")
    titles = dict(_titles(archive, package_name, items.values()))
    builder = DocumentBuilder()
    for name in dict.fromkeys(pages):
        page = _text(archive, name)
        if name in titles and not _HEADING.search(page):
            builder.heading(1, titles[name])
        builder.break_block()
        html.write_fragment(builder, page)
    stated = [
        (etree.QName(one).localname, " ".join((one.text or "").split())) for one in package.iterfind("{*}metadata/*")
    ]
    fields = [(_FIELDS[name], value[:500]) for name, value in stated if name in _FIELDS and value]
    parsed = builder.finish(next((value for name, value in stated if name == "title"), None), fields)
    return msgspec.structs.replace(parsed, links=tuple(link for link in parsed.links if ":" in link.target))


def _titles(archive: Archive, package_name: str, items: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """(page, title) of the entries in the table of contents, as EPUB 3 and 2 have it; the first of a page last."""
    for item in items:
        name = beside(package_name, item.get("href", ""))
        if "nav" not in item.get("properties", "").split() and item.get("media-type") != _CONTENTS:
            continue
        tree = LexborHTMLParser(limit_nesting(_text(archive, name)))
        for entry in reversed(tree.css("nav a, navpoint")):
            target = entry if entry.tag == "a" else entry.css_first("content")
            label = entry if entry.tag == "a" else entry.css_first("text")
            if target is not None and label is not None:
                path = target.attributes.get("href") or target.attributes.get("src") or ""
                yield beside(name, path), " ".join(label.text().split())


def _text(archive: Archive, name: str) -> str:
    text = decode_text(archive.read(name), "application/xhtml+xml", declared_inside=True)
    return _CLOSED_AT_ONCE.sub(r"<\1\2></\1>", text)


def _tree(archive: Archive, name: str) -> Any:
    """The root of an XML part, which may name a DTD; without children where there is none."""
    content = archive.read(name)
    return read_tree(content, what="EPUB") if content else etree.Element("none")
