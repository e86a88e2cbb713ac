"""Word documents (DOCX), by mammoth: converted to HTML by their styles, which the HTML parser reads.

Headings are paragraphs of the styles Heading 1 to 9, or Title. Images give their alternative text and their caption;
they are not opened. Comments and deleted text are left out. Style maps that come inside a document are not used.

The bytes are no text, so offsets count characters of the text that was extracted. Word stores no pages (they come
from layout), so there are none here.
"""

import re
import zlib
from io import BytesIO
from zipfile import BadZipFile, ZipFile

import mammoth
from lxml import etree

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import html
from indexer.parsing.archives import is_xml, open_archive
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
_MAIN = "word/document.xml"


def parse(content: bytes) -> ParsedDocument:
    """The title is the first heading of the first level."""
    with open_archive(content, "DOCX") as archive:
        _check_parts(archive)
    try:
        converted = mammoth.convert_to_html(
            BytesIO(content),
            style_map=_STYLES,
            include_embedded_style_map=False,
            convert_image=mammoth.images.img_element(_no_source),
        )
    except (BadZipFile, zlib.error, EOFError, OSError, KeyError, ValueError, AttributeError, IndexError) as error:
        raise UnparsableDocument("malformed", "The content is not DOCX: its parts do not fit together.") from error
    markup = _CELL_PARAGRAPH.sub(r"\1\2", _BACK_TO_THE_TEXT.sub("", converted.value))
    return html.parse(f"<body>{markup}</body>")


def _no_source(_image: object) -> dict[str, str]:
    """An image without its bytes."""
    return {}


def _check_parts(archive: ZipFile) -> None:
    """Read every XML part with lxml, which is strict where mammoth's parser is not: depth, entities, text nodes.

    Raises UnparsableDocument.
    """
    if _MAIN not in archive.namelist() and not any(name.startswith("word/") for name in archive.namelist()):
        raise UnparsableDocument(
            "media_type_mismatch",
            "The content is a ZIP archive, but no Word document is in it. Correct its media type.",
        )
    for member in archive.infolist():
        if not is_xml(member):
            continue
        try:
            part = archive.read(member)
        except (BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
            raise UnparsableDocument("malformed", "The content is not DOCX: its ZIP archive is damaged.") from error
        root: etree._Element = read_tree(part, what="DOCX")
        if root.getroottree().docinfo.doctype:
            raise unsafe_entities("DOCX")
