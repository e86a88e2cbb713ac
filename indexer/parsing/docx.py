"""Word documents (DOCX), by mammoth: converted to HTML by their styles, which the HTML parser reads.

Headings are paragraphs of the styles Heading 1 to 9, or Title. Images contribute their alternative text and caption.
Comments, deleted text and style maps embedded in the document are ignored. mammoth is slow and trusting, so it gets
only the parts that it needs, checked and without their layout. Word stores no page numbers.
"""

import re
import zlib
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import mammoth
from lxml import etree

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import html, html_nesting
from indexer.parsing.registry import (
    MAX_ARCHIVE_MEMBERS,
    MAX_DOCX_ELEMENTS,
    MAX_UNPACKED_BYTES,
    MAX_UNPACKED_XML_BYTES,
    MIB,
)
from indexer.parsing.xml import read_tree, unsafe_entities

MAX_UNPACKED_RATIO = 250  # of a member of a MiB or more; XML of long tables reaches about 100

_STYLES = "\n".join(
    (
        "p[style-name='Title'] => h1:fresh",
        *(f"p[style-name='{name} {level}'] => h6:fresh" for name in ("Heading", "heading") for level in (7, 8, 9)),
        "p[style-name='HTML Preformatted'] => pre:separator('\\n')",
        "p[style-name='Quote'] => blockquote > p:fresh",
    )
)
_FOOTNOTE_BACKLINK = re.compile(r'\s*<a href="#(?:foot|end)note-ref-[^"]*">↑</a>')
_CELL_PARAGRAPH = re.compile(r"(<t[dh](?: [^>]*)?>)<p>(((?!</?p>|</t[dh]>).)*)</p>(?=</t[dh]>)", re.DOTALL)
_PARTS = ("document", "styles", "numbering", "footnotes", "endnotes", "Types", "Relationships")
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LAYOUT = tuple(
    sorted(
        _W + name
        for name in html_nesting.tag_names(
            "rFonts sz szCs color lang kern spacing w position bdr shd ind jc tabs pBdr keepNext keepLines "
            "widowControl contextualSpacing noProof bCs iCs proofErr bookmarkStart bookmarkEnd lastRenderedPageBreak "
            "sectPr tblPr tblGrid tcW latentStyles docDefaults"
        )
    )
)
_ENCRYPTED = 0x1  # general purpose bit 0 (APPNOTE.TXT 4.4.4)
_OUTSIDE = re.compile(r"\A[/\\]|\A[A-Za-z]:|(?:\A|[/\\])\.\.(?:[/\\]|\Z)|\0")
_XML = (".xml", ".rels")
_DIRECTORY_ENTRY = b"PK\x01\x02"
_DAMAGED_ARCHIVE = "The content is not DOCX: its ZIP archive is damaged."


def parse(content: bytes) -> ParsedDocument:
    """The title is the first heading of the first level."""
    with _open_archive(content) as archive:
        checked = _checked(archive)
    try:
        converted = mammoth.convert_to_html(
            checked,
            style_map=_STYLES,
            include_embedded_style_map=False,
            convert_image=mammoth.images.img_element(lambda _image: {}),  # without its bytes
        )
    except (OSError, KeyError, ValueError, AttributeError, IndexError, TypeError) as error:
        raise UnparsableDocument("malformed", "The content is not DOCX: its parts do not fit together.") from error
    markup = _CELL_PARAGRAPH.sub(r"\1\2", _FOOTNOTE_BACKLINK.sub("", converted.value))
    return html.parse(f"<body>{markup}</body>")


def _open_archive(content: bytes) -> ZipFile:
    """The archive with its directory checked and nothing unpacked.

    The sizes it states can be relied on, as unpacking stops there. Archives inside are never opened. Raises
    UnparsableDocument: `malformed`, `too_large`, or `unsafe` for names that lead out of the archive or repeat.
    """
    if content.count(_DIRECTORY_ENTRY) > MAX_ARCHIVE_MEMBERS:
        raise UnparsableDocument("too_large", f"The DOCX holds more than {MAX_ARCHIVE_MEMBERS:,} members.")
    try:
        archive = ZipFile(BytesIO(content))
    except (BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise UnparsableDocument("malformed", _DAMAGED_ARCHIVE) from error
    members = archive.infolist()
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise UnparsableDocument("protected", "The DOCX is locked by a password; send it unlocked.")
    if any(_OUTSIDE.search(member.orig_filename) for member in members):  # `filename` is cut at a NUL
        raise UnparsableDocument("unsafe", "The DOCX holds a member whose name leads out of the archive.")
    if len({member.filename for member in members}) < len(members):
        raise UnparsableDocument("unsafe", "The DOCX holds two members of the same name.")
    _check_sizes(members)
    return archive


def _check_sizes(members: list[ZipInfo]) -> None:
    unpacked = sum(member.file_size for member in members)
    if unpacked > MAX_UNPACKED_BYTES:
        raise UnparsableDocument(
            "too_large", f"The DOCX unpacks to {unpacked:,} bytes; the limit is {MAX_UNPACKED_BYTES:,}."
        )
    xml = sum(member.file_size for member in members if _is_xml(member))
    if xml > MAX_UNPACKED_XML_BYTES:
        raise UnparsableDocument(
            "too_large", f"The XML in the DOCX unpacks to {xml:,} bytes; the limit is {MAX_UNPACKED_XML_BYTES:,}."
        )
    for member in members:
        if member.file_size > MIB and member.file_size > MAX_UNPACKED_RATIO * max(member.compress_size, 1):
            raise UnparsableDocument(
                "too_large",
                f"A member of the DOCX unpacks to more than {MAX_UNPACKED_RATIO} times its size: that is not text.",
            )


def _is_xml(member: ZipInfo) -> bool:
    return member.filename.lower().endswith(_XML)


def _checked(archive: ZipFile) -> BytesIO:
    """An archive of only the parts that mammoth needs, parsed strictly by lxml and without layout."""
    if not any(name.startswith("word/") for name in archive.namelist()):
        raise UnparsableDocument(
            "media_type_mismatch",
            "The content is a ZIP archive, but no Word document is in it. Correct its media type.",
        )
    checked = BytesIO()
    elements = 0
    with ZipFile(checked, "w") as copy:
        for member in filter(_is_xml, archive.infolist()):
            root = _part(archive, member)
            if etree.QName(root).localname not in _PARTS:
                continue
            etree.strip_elements(root, *_LAYOUT, with_tail=False)
            elements += sum(1 for _ in root.iter())
            if elements > MAX_DOCX_ELEMENTS:
                raise UnparsableDocument(
                    "too_large", f"The DOCX has more than {MAX_DOCX_ELEMENTS:,} elements of text; split it."
                )
            copy.writestr(member.filename, etree.tostring(root))
    checked.seek(0)
    return checked


def _part(archive: ZipFile, member: ZipInfo) -> Any:
    """The root element of an XML part."""
    try:
        part = archive.read(member)
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as error:
        raise UnparsableDocument("malformed", _DAMAGED_ARCHIVE) from error
    root = read_tree(part, what="DOCX")
    if root.getroottree().docinfo.doctype:
        raise unsafe_entities("DOCX")
    return root
