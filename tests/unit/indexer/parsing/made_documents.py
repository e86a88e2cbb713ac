"""Documents made by hand for tests: a Word document and a PDF, of blocks such as ("h1", "Rivers")."""

from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from textwrap import wrap
from zipfile import ZIP_DEFLATED, ZipFile

Blocks = Sequence[tuple[str, str]]

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
STYLES = f"""<w:styles {_W}>{
    "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/></w:style>'
        for level in (1, 2, 3)
    )
}</w:styles>"""
NUMBERING = f"""<w:numbering {_W}><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0">
<w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>"""
BULLET = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'


def archive(members: dict[str, str | bytes]) -> bytes:
    """A ZIP archive of the members."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return file.getvalue()


def docx_parts(body: str) -> dict[str, str | bytes]:
    """The members of a Word document with this XML as its body."""
    return {
        "[Content_Types].xml": f'<Types xmlns="{_TYPES}">'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1" Type="{_OFFICE}/officeDocument" '
        'Target="word/document.xml"/></Relationships>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{_RELATIONS}">'
        f'<Relationship Id="r1" Type="{_OFFICE}/styles" Target="styles.xml"/>'
        f'<Relationship Id="r2" Type="{_OFFICE}/numbering" Target="numbering.xml"/></Relationships>',
        "word/styles.xml": STYLES,
        "word/numbering.xml": NUMBERING,
        "word/document.xml": f"<w:document {_W}><w:body>{body}</w:body></w:document>",
    }


def docx(blocks: Blocks) -> bytes:
    return archive(docx_parts("".join(_word_block(kind, text) for kind, text in blocks)))


def _word_block(kind: str, text: str) -> str:
    if kind == "row":
        cells = "".join(f"<w:tc>{_word_block('p', cell)}</w:tc>" for cell in text.split(" | "))
        return f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
    style = f'<w:pStyle w:val="Heading{kind[1]}"/>' if kind[0] == "h" else BULLET if kind == "li" else ""
    return f"<w:p><w:pPr>{style}</w:pPr><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def pdf(pages: Sequence[Blocks], *, outline: bool = True, title: str | None = None) -> bytes:
    """A PDF of the pages in Helvetica, 11 points, lines of 90 characters; its headings make the outline."""
    objects: list[bytes] = [b"", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]  # 1 catalog, 2 pages, 3 font
    page_numbers: list[int] = []
    headings: list[tuple[int, str, int]] = []
    for blocks in pages:
        stream = _page_stream(blocks)
        objects.append(b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream))
        page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R>>"
        objects.append(page % len(objects))
        page_numbers.append(len(objects))
        headings += [(int(kind[1]), text, len(objects)) for kind, text in blocks if kind[0] == "h"]
    kids = b" ".join(b"%d 0 R" % number for number in page_numbers)
    objects[1] = b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(pages), kids)
    outlines = b""
    if outline and headings:
        outlines = b"/Outlines %d 0 R" % (len(objects) + 1)
        objects += _outline(headings, len(objects) + 1)
    objects[0] = b"<</Type/Catalog/Pages 2 0 R%b>>" % outlines
    info = b""
    if title:
        objects.append(b"<</Title(%b)>>" % title.encode())
        info = b"/Info %d 0 R" % len(objects)
    return pdf_file(objects, info)


def pdf_file(objects: Iterable[bytes], trailer: bytes = b"") -> bytes:
    """The objects as a file; number 1 is the catalog."""
    file = bytearray(b"%PDF-1.7\n")
    places: list[int] = []
    for number, body in enumerate(objects, start=1):
        places.append(len(file))
        file += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(file)
    file += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    file += b"".join(b"%010d 00000 n \n" % place for place in places)
    file += b"trailer<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF" % (len(places) + 1, trailer, start)
    return bytes(file)


def _page_stream(blocks: Blocks) -> bytes:
    drawn: list[str] = []
    height = 780.0
    for kind, text in blocks:
        if kind == "image":
            drawn.append(f"q 40 0 0 40 60 {height - 40:.0f} cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q")
            height -= 60
            continue
        size = {"h1": 18, "h2": 15, "h3": 13}.get(kind, 11)
        height -= 14 if kind != "li" else 2
        for line in wrap(f"- {text}" if kind == "li" else text, 90):
            written = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
            drawn.append(f"BT /F {size} Tf 60 {height:.1f} Td ({written}) Tj ET")
            height -= size * 1.2
    return "\n".join(drawn).encode("latin-1")


def _outline(headings: Sequence[tuple[int, str, int]], first: int) -> list[bytes]:
    """Outline objects, the root first, with object numbers from `first`."""
    parents = []
    for index, (level, _, _) in enumerate(headings):
        above = [other for other in range(index) if headings[other][0] < level]
        parents.append(above[-1] if above else -1)
    objects = []
    for index in range(-1, len(headings)):
        children = [child for child, parent in enumerate(parents) if parent == index]
        entries = [b""]
        if children:
            entries.append(b"/First %d 0 R/Last %d 0 R" % (first + 1 + children[0], first + 1 + children[-1]))
        if index >= 0:
            siblings = [other for other, parent in enumerate(parents) if parent == parents[index]]
            at = siblings.index(index)
            entries.append(b"/Title(%b)/Parent %d 0 R" % (headings[index][1].encode(), first + 1 + parents[index]))
            entries.append(b"/Dest[%d 0 R/Fit]" % headings[index][2])
            entries += [b"/Prev %d 0 R" % (first + 1 + siblings[at - 1])] if at else []
            entries += [b"/Next %d 0 R" % (first + 1 + siblings[at + 1])] if at + 1 < len(siblings) else []
        objects.append(b"<<%b>>" % b"".join(entries))
    return objects
