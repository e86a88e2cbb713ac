"""Word documents (DOCX), by mammoth: converted to HTML by their styles, which the HTML parser reads.

Images contribute their alternative text and caption, documents inserted as a whole (`altChunk`) their text. Deleted and
hidden text and style maps embedded in the document are ignored; a note names what else is left out, such as comments.
mammoth is slow and trusting, so it gets only the parts that it needs, checked, without their layout and with nothing
around text that it does not know. Word stores no page numbers.
"""

import re
from email import message_from_bytes
from html import escape
from io import BytesIO
from typing import Any
from xml.parsers.expat import ExpatError
from zipfile import ZipFile

import mammoth
import msgspec
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import html
from indexer.parsing.decoding import decode_text
from indexer.parsing.html_nesting import limit_nesting
from indexer.parsing.office.archive import Archive
from indexer.parsing.office.word_markup import LAYOUT, Styles, W, prepare
from indexer.parsing.registry import MAX_DOCX_ELEMENTS

_STYLES = "\n".join(
    (
        "p[style-name='Title'] => h1:fresh",
        *(f"p[style-name='heading {level}'] => h6:fresh" for level in (7, 8, 9)),
        "p[style-name='HTML Preformatted'] => pre:separator('\\n')",
        "p[style-name='Quote'] => blockquote > p:fresh",
    )
)
_FOOTNOTE_BACKLINK = re.compile(r'\s*<a href="#(?:foot|end)note-ref-[^"]*">↑</a>')
_CELL_PARAGRAPH = re.compile(r"(<t[dh](?: [^>]*)?>)<p>(((?!</?p>|</t[dh]>).)*)</p>(?=</t[dh]>)", re.DOTALL)
_CHECK_BOX = re.compile(r'<input( checked="checked")? type="checkbox" ?/>')
_INSERTED = re.compile("<p>\ue000(\\d+)\ue000</p>")
_PARTS = ("document", "styles", "numbering", "footnotes", "endnotes", "Types", "Relationships")
_TEXTS = ("document", "footnotes", "endnotes")
_LEFT_OUT = {
    "hdr": "headers",
    "ftr": "footers",
    "chartSpace": "charts",
    "dataModel": "diagrams",
    "comments": "comments",
}
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def parse(content: bytes) -> ParsedDocument:
    """The title is the first heading of the first level."""
    left_out: dict[str, None] = {}
    parsed = html.parse(f"<body>{_markup(content, left_out)}</body>")
    notes = (f"Left out of the DOCX: {', '.join(sorted(left_out))}.",) if left_out else ()
    return msgspec.structs.replace(parsed, notes=(*parsed.notes, *notes))


def _markup(content: bytes, left_out: dict[str, None], *, is_inserted: bool = False) -> str:
    archive = Archive(content, "DOCX")
    archive.require("word/", "Word document")
    inserted: list[str] = []
    checked = _checked(archive, inserted, left_out)
    try:
        converted = mammoth.convert_to_html(
            checked,
            style_map=_STYLES,
            include_embedded_style_map=False,
            convert_image=mammoth.images.img_element(lambda _image: {}),  # without its bytes
        )
    except (OSError, KeyError, ValueError, AttributeError, IndexError, TypeError, ExpatError) as error:
        raise UnparsableDocument("malformed", "The content is not DOCX: its parts do not fit together.") from error
    markup = _CELL_PARAGRAPH.sub(r"\1\2", _FOOTNOTE_BACKLINK.sub("", converted.value))
    markup = _CHECK_BOX.sub(lambda box: "☒ " if box[1] else "☐ ", markup)

    def chunk(place: re.Match[str]) -> str:
        name = inserted[int(place[1])] if int(place[1]) < len(inserted) else ""
        return _inserted_markup(name, archive.read(name), left_out, is_inserted=is_inserted)

    return _INSERTED.sub(chunk, markup)


def _inserted_markup(name: str, content: bytes, left_out: dict[str, None], *, is_inserted: bool) -> str:
    """What a document inserted as a whole says, as HTML."""
    if content.startswith(b"PK") and not is_inserted:
        return _markup(content, left_out, is_inserted=True)
    kind = name.lower().rpartition(".")[2]
    if kind in ("mht", "mhtml"):
        pages = (part for part in message_from_bytes(content).walk() if part.get_content_type() == "text/html")
        content, kind = next((bytes(page.get_payload(decode=True)) for page in pages), b""), "html"
    if kind in ("html", "htm", "xhtml") or b"<html" in content[:1000].lower():
        text = decode_text(content, "text/html", declared_inside=True)
        body = LexborHTMLParser(limit_nesting(text)).body
        return body.html or "" if body is not None else ""
    if kind == "txt":
        return f"<pre>{escape(decode_text(content, 'text/plain'))}</pre>"
    left_out[f"an inserted document ({name.rpartition('/')[2][:80]})"] = None
    return ""


def _checked(archive: Archive, inserted: list[str], left_out: dict[str, None]) -> BytesIO:
    """An archive of only the parts that mammoth needs; `inserted` gets the names of parts to insert."""
    parts: list[tuple[str, str, Any]] = []
    elements = 0
    for name, root in archive.parts():
        kind = etree.QName(root).localname
        if kind in _LEFT_OUT and any(text.strip() for text in root.itertext()):
            left_out[_LEFT_OUT[kind]] = None
        if kind not in _PARTS:
            continue
        etree.strip_elements(root, *LAYOUT, with_tail=False)
        elements += sum(1 for _ in root.iter())
        if elements > MAX_DOCX_ELEMENTS:
            raise UnparsableDocument(
                "too_large", f"The DOCX has more than {MAX_DOCX_ELEMENTS:,} elements of text; split it."
            )
        parts.append((name, kind, root))
    if any(name.startswith("word/embeddings/") for name in archive.names):
        left_out["embedded files"] = None
    styles = Styles(next((root for _, kind, root in parts if kind == "styles"), None))
    checked = BytesIO()
    with ZipFile(checked, "w") as copy:
        for name, kind, root in parts:
            if kind in _TEXTS:
                prepare(root, styles)
                _mark_inserted(root, archive.relations(name), inserted)
            copy.writestr(name, etree.tostring(root))
    checked.seek(0)
    return checked


def _mark_inserted(root: Any, relations: dict[str, str], inserted: list[str]) -> None:
    for chunk in list(root.iter(f"{W}altChunk")):
        chunk.tag = f"{W}p"
        run = etree.SubElement(chunk, f"{W}r")
        etree.SubElement(run, f"{W}t").text = f"\ue000{len(inserted)}\ue000"
        inserted.append(relations.get(chunk.get(_RELATION, ""), ""))
