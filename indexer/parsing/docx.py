"""Word documents (DOCX), by mammoth: converted to HTML by their styles, which the HTML parser reads.

Headings are paragraphs of the styles Heading 1 to 9, or Title. Images give their alternative text and their caption;
they are not opened. Comments and deleted text are left out. Style maps that come inside a document are not used.
mammoth is slow and trusting, so it is given only the parts it needs, checked and without their layout.

The bytes are no text, so offsets count characters of the text that was extracted. Word stores no pages (they come
from layout), so there are none here.
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
from indexer.parsing import html
from indexer.parsing.archives import is_xml, open_archive
from indexer.parsing.html_depth import tag_names
from indexer.parsing.limits import MAX_DOCX_ELEMENTS
from indexer.parsing.xml import read_tree, unsafe_entities

_STYLES = "\n".join(
    (
        "p[style-name='Title'] => h1:fresh",
        *(f"p[style-name='{name} {level}'] => h6:fresh" for name in ("Heading", "heading") for level in (7, 8, 9)),
        "p[style-name='HTML Preformatted'] => pre:separator('\\n')",
        "p[style-name='Quote'] => blockquote > p:fresh",
    )
)
_BACK_TO_THE_TEXT = re.compile(r'\s*<a href="#(?:foot|end)note-ref-[^"]*">↑</a>')
_CELL_PARAGRAPH = re.compile(r"(<t[dh](?: [^>]*)?>)<p>(((?!</?p>|</t[dh]>).)*)</p>(?=</t[dh]>)", re.DOTALL)
_PARTS = ("document", "styles", "numbering", "footnotes", "endnotes", "Types", "Relationships")
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LAYOUT = tuple(
    sorted(
        _W + name
        for name in tag_names(
            "rFonts sz szCs color lang kern spacing w position bdr shd ind jc tabs pBdr keepNext keepLines "
            "widowControl contextualSpacing noProof bCs iCs proofErr bookmarkStart bookmarkEnd lastRenderedPageBreak "
            "sectPr tblPr tblGrid tcW latentStyles docDefaults"
        )
    )
)


def parse(content: bytes) -> ParsedDocument:
    """The title is the first heading of the first level."""
    with open_archive(content, "DOCX") as archive:
        checked = _checked(archive)
    try:
        converted = mammoth.convert_to_html(
            checked,
            style_map=_STYLES,
            include_embedded_style_map=False,
            convert_image=mammoth.images.img_element(_no_source),
        )
    except (OSError, KeyError, ValueError, AttributeError, IndexError, TypeError) as error:
        raise UnparsableDocument("malformed", "The content is not DOCX: its parts do not fit together.") from error
    markup = _CELL_PARAGRAPH.sub(r"\1\2", _BACK_TO_THE_TEXT.sub("", converted.value))
    return html.parse(f"<body>{markup}</body>")


def _no_source(_image: object) -> dict[str, str]:
    """An image without its bytes."""
    return {}


def _checked(archive: ZipFile) -> BytesIO:
    """An archive of those parts alone that mammoth needs, read by lxml (which is strict) and without their layout.

    Raises UnparsableDocument.
    """
    if not any(name.startswith("word/") for name in archive.namelist()):
        raise UnparsableDocument(
            "media_type_mismatch",
            "The content is a ZIP archive, but no Word document is in it. Correct its media type.",
        )
    checked = BytesIO()
    elements = 0
    with ZipFile(checked, "w") as copy:
        for member in filter(is_xml, archive.infolist()):
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
        raise UnparsableDocument("malformed", "The content is not DOCX: its ZIP archive is damaged.") from error
    root = read_tree(part, what="DOCX")
    if root.getroottree().docinfo.doctype:
        raise unsafe_entities("DOCX")
    return root
