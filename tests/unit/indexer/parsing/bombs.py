"""Documents made to exhaust whoever reads them, with the reason each is refused for (None: it is read, cheaply).

Each is built when it is asked for; none needs more than a few megabytes.
"""

import gzip
import struct
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from tests.support.fixtures.office_files import archive, docx_parts, pdf, pdf_file
from tests.unit.indexer.parsing.test_office import (
    EPUB,
    NAV,
    NAV_PAGE,
    OFFICE,
    PPTX,
    XLSX,
    book,
    presentation,
    shape,
    slide,
    workbook,
)

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
CSV = "text/csv"
MB = 1_000_000
FAR_APART = "<row r='1'><c r='A1'><v>1</v></c></row><row r='1048576'><c r='XFD1048576'><v>1</v></c></row>"


@dataclass(frozen=True)
class Bomb:
    name: str
    content_type: str
    build: Callable[[], bytes]
    reason: str | None
    says: str = ""

    def __str__(self) -> str:
        return self.name


def _billion_laughs() -> bytes:
    entities = '<!ENTITY a0 "lol">' + "".join(
        f'<!ENTITY a{number} "{f"&a{number - 1};" * 10}">' for number in range(1, 10)
    )
    return f"<?xml version='1.0'?><!DOCTYPE r [{entities}]><r>&a9;</r>".encode()


def _quadratic_entity() -> bytes:
    return b'<!DOCTYPE r [<!ENTITY a "' + b"x" * 100_000 + b'">]><r>' + b"&a;" * 100_000 + b"</r>"


def _attribute_entities() -> bytes:
    return _billion_laughs().replace(b"<r>&a9;</r>", b"<r x='&a9;'>words</r>")


def _external_entity() -> bytes:
    return b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><r>&a;</r>'


def _word_xml(document: str | bytes) -> bytes:
    return archive({**docx_parts(""), "word/document.xml": document})


def _word_bomb() -> bytes:
    return archive({**docx_parts("<w:p/>"), "word/media/image1.png": bytes(300 * MB)})


def _word_text_bomb() -> bytes:
    return archive(docx_parts("<w:p><w:r><w:t>" + "a" * 60 * MB + "</w:t></w:r></w:p>"))


def _word_lying_size() -> bytes:
    """The directory states 1,000 bytes for a part of 100 MB."""
    honest = BytesIO(archive({**docx_parts(""), "word/document.xml": b" " * 100 * MB}))
    with ZipFile(honest) as opened:
        size = opened.getinfo("word/document.xml").file_size
    return honest.getvalue().replace(struct.pack("<L", size), struct.pack("<L", 1000))


def _word_path(name: str) -> bytes:
    return archive({**docx_parts("<w:p><w:r><w:t>words</w:t></w:r></w:p>"), name: "x"})


def _word_nested() -> bytes:
    inner = bytes(10 * MB)
    for depth in range(4):
        file = BytesIO()
        with ZipFile(file, "w", ZIP_DEFLATED) as packed:
            for number in range(10):
                packed.writestr(f"{depth}-{number}.zip", inner)
        inner = file.getvalue()
    return archive({**docx_parts("<w:p><w:r><w:t>words</w:t></w:r></w:p>"), "word/embeddings/a.zip": inner})


def _word_many_members() -> bytes:
    file = BytesIO()
    with ZipFile(file, "w", ZIP_STORED) as packed:
        for number in range(50_000):
            packed.writestr(str(number), "")
    return file.getvalue()


def _word_overlapping() -> bytes:
    """Three thousand directory entries for one and the same compressed part (after D. Fifield, 2019)."""
    file = BytesIO(archive({"word/document.xml": b" " * MB}))
    with ZipFile(file, "a") as packed:
        [only] = packed.infolist()
        for number in range(3_000):
            twin = type(only)(f"word/{number}.xml")
            for field in ("compress_type", "CRC", "compress_size", "file_size", "header_offset"):
                setattr(twin, field, getattr(only, field))
            packed.filelist.append(twin)
            packed.NameToInfo[twin.filename] = twin
        packed.writestr("[Content_Types].xml", "<Types/>")
    return file.getvalue()


def _word_deep_tables() -> bytes:
    return archive(docx_parts("<w:tbl><w:tr><w:tc>" * 2_000 + "</w:tc></w:tr></w:tbl>" * 2_000))


def _word_many_paragraphs() -> bytes:
    return archive(
        docx_parts("".join(f"<w:p><w:r><w:t>{number * 7919}</w:t></w:r></w:p>" for number in range(200_000)))
    )


def _slides_of_one() -> bytes:
    return archive(presentation(slide(shape("words")), order="s0 " * 1_000_000))


def _slides_of_long_lists() -> bytes:
    return archive(presentation(slide(*(shape(str(number * 7919)) for number in range(60_000)))))


def _sheet(content: str) -> bytes:
    return archive(workbook(content))


def _sheet_of_many_rows() -> bytes:
    return _sheet("".join(f"<row><c><v>{number * 7919}</v></c></row>" for number in range(200_000)))


def _sheet_of_one_text() -> bytes:
    """A hundred thousand cells that all show the same text of 3 MB."""
    rows = "".join(f"<row r='{row}'><c t='s' r='A{row}'><v>0</v></c></row>" for row in range(1, 100_000))
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    members = workbook(rows)
    members["xl/_rels/workbook.xml.rels"] = str(members["xl/_rels/workbook.xml.rels"]).replace(
        "</Relationships>",
        f'<Relationship Id="sst" Type="{OFFICE}/sharedStrings" Target="sharedStrings.xml"/></Relationships>',
    )
    text = "".join(str(number) for number in range(500_000))
    members["xl/sharedStrings.xml"] = f"<sst {main}><si><t>{text}</t></si></sst>"
    return archive(members)


def _book(page: bytes, **more: str | bytes) -> bytes:
    return archive({**book(NAV, NAV_PAGE), "O/a.xhtml": page, **more})


def _pdf_objects(pages: bytes, *more: bytes) -> bytes:
    return pdf_file([b"<</Type/Catalog/Pages 2 0 R>>", pages, *more])


def _pdf_claimed_pages() -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"
    return _pdf_objects(b"<</Type/Pages/Count 1000000/Kids[3 0 R]>>", page)


def _pdf_circular_pages() -> bytes:
    return _pdf_objects(b"<</Type/Pages/Count 1000/Kids[2 0 R 2 0 R]>>")


def _pdf_deflate_bomb() -> bytes:
    """A content stream of a gigabyte of blanks, deflated twice."""
    import zlib

    packer = zlib.compressobj(9)
    once = b"".join(packer.compress(b" " * MB) for _ in range(1_000)) + packer.flush()
    stream = zlib.compress(once, 9)
    contents = b"<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream\n%b\nendstream" % (len(stream), stream)
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>"
    return _pdf_objects(b"<</Type/Pages/Count 1/Kids[3 0 R]>>", page, contents)


def _pdf_nested_forms() -> bytes:
    """Twelve forms, each of which draws the next one ten times."""
    bodies = [b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>/Contents 4 0 R>>"]
    draw = b"/X Do " * 10
    bodies.append(b"<</Length %d>>stream\n%b\nendstream" % (len(draw), draw))
    for number in range(12):
        inner = b"/Resources<</XObject<</X %d 0 R>>>>" % (number + 6)
        form = b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]%b/Length %d>>stream\n%b\nendstream"
        bodies.append(form % (inner, len(draw), draw))
    bodies.append(b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Length 0>>stream\n\nendstream")
    return _pdf_objects(b"<</Type/Pages/Count 1/Kids[3 0 R]>>", *bodies)


def _pdf_circular_outline() -> bytes:
    """An outline entry that follows itself and is its own child."""
    return pdf_file(
        [
            b"<</Type/Catalog/Pages 2 0 R/Outlines 4 0 R>>",
            b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
            b"<</First 5 0 R/Last 5 0 R>>",
            b"<</Title(x)/Parent 4 0 R/Next 5 0 R/First 5 0 R/Dest[3 0 R/Fit]>>",
        ]
    )


def _pdf_shared_pages() -> bytes:
    """Two thousand pages that all show the same stream of 200,000 letters."""
    letters = b"BT /F 1 Tf 1 1 Td 1 TL " + b"(" + b"word " * 200 + b") Tj ET "
    stream = letters * 200
    kids = b" ".join(b"5 0 R" for _ in range(2_000))
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 999 999]/Resources<</Font<</F 3 0 R>>>>/Contents 4 0 R>>"
    return _pdf_objects(
        b"<</Type/Pages/Count 2000/Kids[%b]>>" % kids,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        page,
    )


def _pdf_outline_of_one_page() -> bytes:
    """Thousands of outline entries to look for on a page of lines of one letter."""
    stream = b"BT /F 9 Tf 1 1 Td 12 TL " + b"(a) Tj T* " * 20_000 + b"ET"
    entries = [b"<</Title(a b c)/Parent 6 0 R/Dest[5 0 R/Fit]/Next %d 0 R>>" % (number + 8) for number in range(9_999)]
    return pdf_file(
        [
            b"<</Type/Catalog/Pages 2 0 R/Outlines 6 0 R>>",
            b"<</Type/Pages/Count 1/Kids[5 0 R]>>",
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</Font<</F 3 0 R>>>>/Contents 4 0 R>>",
            b"<</First 7 0 R/Last 10005 0 R>>",
            *entries,
        ]
    )


def _yaml_aliases() -> bytes:
    """Front matter whose aliases stand for 10^9 words."""
    lists = "".join(f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n" for number in range(1, 10))
    return f"---\na0: &a0 lol\n{lists}---\n\nWords.\n".encode()


def _substitutions() -> bytes:
    """reStructuredText substitutions that stand for 10^9 words."""
    defined = "".join(f".. |a{number}| replace:: {f'|a{number - 1}| ' * 10}\n" for number in range(1, 10))
    return f"{defined}.. |a0| replace:: lol\n\nThe |a9| end.\n".encode()


def _nested_mail() -> bytes:
    head = b"Subject: a\nContent-Type: message/rfc822\n\n"
    return head * 2_000 + b"Subject: b\n\nwords"


def _mail_of_parts() -> bytes:
    part = b"--x\nContent-Disposition: attachment\n\nwords\n"
    return b"Subject: a\nContent-Type: multipart/mixed; boundary=x\n\n" + part * 200_000 + b"--x--\n"


BOMBS = (
    Bomb("Markdown quotes 100,000 deep", "text/markdown", lambda: b">" * 100_000 + b" words", "too_deep", "100 levels"),
    Bomb(
        "Markdown lists 1,000 deep",
        "text/markdown",
        lambda: "".join("  " * depth + "- words\n" for depth in range(1_000)).encode(),
        "too_deep",
        "100 levels",
    ),
    Bomb("Markdown of 100,000 open brackets", "text/markdown", lambda: b"[" * 100_000, None),
    Bomb("front matter with aliases of aliases", "text/markdown", _yaml_aliases, None),
    Bomb("reStructuredText substitutions", "text/x-rst", _substitutions, None),
    Bomb("HTML tables 50,000 deep", "text/html", lambda: b"<table><tr><td>" * 50_000 + b"words", None),
    Bomb("HTML tags crossed 50,000 times", "text/html", lambda: b"<b><i>" * 50_000 + b"w" + b"</b></i>" * 50_000, None),
    Bomb("HTML with an attribute of 9 MB", "text/html", lambda: b"<p x='" + b"a" * 9 * MB + b"'>words", None),
    Bomb("gzip of 100 MB as XML", "application/xml", lambda: gzip.compress(bytes(100 * MB)), "media_type_mismatch"),
    Bomb("JSON with a number of 5 MB", "application/json", lambda: b'{"content":' + b"9" * 5 * MB + b"}", "malformed"),
    Bomb("entities of entities", "application/xml", _billion_laughs, "unsafe", "entities that it declares itself"),
    Bomb("one long entity often", "application/xml", _quadratic_entity, "unsafe", "entities that it declares itself"),
    Bomb("entities in an attribute", "application/xml", _attribute_entities, "unsafe", "entities"),
    Bomb("an entity that is a file", "application/xml", _external_entity, "unsafe", "entities that it declares itself"),
    Bomb("XML 100,000 deep", "application/xml", lambda: b"<a>" * 100_000 + b"</a>" * 100_000, "too_deep", "256 levels"),
    Bomb("XML of 2,500,000 elements", "application/xml", lambda: b"<a>" + b"<b/>" * 2_500_000 + b"</a>", "too_large"),
    Bomb("XML with a text of 20 MB", "application/xml", lambda: b"<a>" + b"a" * 20 * MB + b"</a>", "malformed"),
    Bomb("JSON 100,000 deep", "application/json", lambda: b"[" * 100_000 + b"]" * 100_000, "too_deep", "100 levels"),
    Bomb("JSON objects 900 deep", "application/json", lambda: b'{"a":' * 900 + b"1" + b"}" * 900, "too_deep", "100"),
    Bomb("JSON of 3,300,000 lists", "application/json", lambda: b"[" + b"[]," * 3_300_000 + b"[]]", "empty_content"),
    Bomb("HTML 100,000 deep", "text/html", lambda: b"<div>" * 100_000 + b"words", None),
    Bomb("gzip of 200 MB", "text/plain", lambda: gzip.compress(bytes(200 * MB)), "media_type_mismatch", "gzip"),
    Bomb("a line of 20 MB", "text/plain", lambda: b"words and " * 2_000_000, None),
    Bomb("CSV with a line of 20 MB", CSV, lambda: b"a,b\n" + b"words, " * 3_000_000, "too_large", "a row of"),
    Bomb("CSV with a field of 20 MB", CSV, lambda: b'a,b\n1,"' + b"words\n" * 3_000_000, "too_large", "a field"),
    Bomb("CSV of 5,000,000 rows", CSV, lambda: b"a\n" * 5_000_000, "too_large", "20,000 rows"),
    Bomb("CSV with one row of 20 MB", CSV, lambda: b"a,b\n" + b'"\n",' * 5_000_000, "too_large", "a row of"),
    Bomb("CSV of 20 MB of quotation marks", CSV, lambda: b'"' * 20 * MB, "too_large", "a row of"),
    Bomb("CSV of 10,000,000 empty rows", CSV, lambda: b"a,b\n" + b",\n" * 10_000_000, "too_large", "empty ones"),
    Bomb("TSV of 20 MB of quotation marks", "text/tsv", lambda: b'"\t\n' * 6_000_000, "too_large", "20,000 rows"),
    Bomb("DOCX with 300 MB of zeros", DOCX, _word_bomb, "too_large", "unpacks to"),
    Bomb("DOCX with a text of 60 MB", DOCX, _word_text_bomb, "too_large", "the limit is"),
    Bomb("DOCX that lies on its sizes", DOCX, _word_lying_size, "malformed", "damaged"),
    Bomb("DOCX with a way out", DOCX, lambda: _word_path("../../etc/cron.d/x"), "unsafe", "leads out"),
    Bomb("DOCX with a root path", DOCX, lambda: _word_path("/etc/passwd"), "unsafe", "leads out"),
    Bomb("DOCX with archives in archives", DOCX, _word_nested, None),
    Bomb("DOCX of 50,000 members", DOCX, _word_many_members, "too_large", "members"),
    Bomb("DOCX of overlapping members", DOCX, _word_overlapping, "too_large", "unpacks to"),
    Bomb("DOCX with tables 2,000 deep", DOCX, _word_deep_tables, "too_deep", "256 levels"),
    Bomb("DOCX with entities", DOCX, lambda: _word_xml(_billion_laughs()), "unsafe", "entities"),
    Bomb("DOCX of 200,000 paragraphs", DOCX, _word_many_paragraphs, "too_large", "elements"),
    Bomb("PPTX of a million slides", PPTX, _slides_of_one, "too_large", "the limit is"),
    Bomb("PPTX with 60,000 texts on a slide", PPTX, _slides_of_long_lists, None),
    Bomb("PPTX with entities", PPTX, lambda: archive(presentation(_billion_laughs().decode())), "unsafe", "entities"),
    Bomb("XLSX of a million cells", XLSX, lambda: _sheet("<row>" + "<c><v>1</v></c>" * MB + "</row>"), "too_large"),
    Bomb("XLSX with cells far apart", XLSX, lambda: _sheet(FAR_APART), "too_large", "17,179,869,184 cells"),
    Bomb("XLSX whose cells are one long text", XLSX, _sheet_of_one_text, "parser_limit"),
    Bomb("XLSX of 200,000 rows", XLSX, _sheet_of_many_rows, "too_large", "20,000 rows"),
    Bomb("EPUB with a chapter of 300 MB", EPUB, lambda: _book(bytes(300 * MB)), "too_large", "unpacks to"),
    Bomb("EPUB 100,000 deep", EPUB, lambda: _book(b"<div>" * 100_000 + b"words"), None),
    Bomb("EPUB with entities", EPUB, lambda: _book(b"x", **{"O/p.opf": _attribute_entities()}), "unsafe", "entities"),
    Bomb("PDF of a million claimed pages", "application/pdf", _pdf_claimed_pages, "too_large", "pages"),
    Bomb("PDF whose pages hold themselves", "application/pdf", _pdf_circular_pages, "pictures_only"),
    Bomb("PDF with a deflated gigabyte", "application/pdf", _pdf_deflate_bomb, "parser_limit"),
    Bomb("PDF with forms in forms", "application/pdf", _pdf_nested_forms, "parser_limit"),
    Bomb("PDF whose outline is a circle", "application/pdf", _pdf_circular_outline, None),
    Bomb("PDF whose pages are one page", "application/pdf", _pdf_shared_pages, "too_large", "CPU seconds"),
    Bomb("PDF with 10,000 headings on a page", "application/pdf", _pdf_outline_of_one_page, None),
    Bomb("mail in mail 2,000 deep", "message/rfc822", _nested_mail, "too_deep"),
    Bomb("mail with 200,000 parts", "message/rfc822", _mail_of_parts, "too_large", "attachments"),
    Bomb(
        "mailbox of 500,000 messages", "application/mbox", lambda: b"From a\nSubject: b\n\nc\n" * 500_000, "too_large"
    ),
    Bomb("LaTeX braces 1,000,000 deep", "text/x-tex", lambda: b"{" * 1_000_000 + b"words", None),
    Bomb("LaTeX of 100,000 open sections", "text/x-tex", lambda: b"\\section{" * 100_000, None),
    Bomb("subtitles of 400,000 cues", "text/vtt", lambda: b"00:00.000 --> 00:01.000\nwords\n\n" * 400_000, None),
    Bomb("a notebook 100,000 deep", "application/x-ipynb+json", lambda: b'{"cells":' + b"[" * 100_000, "too_deep"),
    Bomb("AsciiDoc of 1 MB of marks", "text/asciidoc", lambda: b"*_`|: " * 160_000, None),
    Bomb("Org of 1 MB of marks", "text/org", lambda: b"*/=~[[ " * 140_000, None),
    Bomb("PDF of 2,000 pages", "application/pdf", lambda: pdf([[("p", "word " * 100)]] * 2_000), None),
)
