"""Presentations, spreadsheets and books: made by hand, as small as they can be."""

import pytest

from indexer.errors import UnparsableDocument
from indexer.parsing import media_type_of, parse
from tests.support.fixtures.office_files import archive

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
PPTX, XLSX, EPUB = (str(media_type_of(f"x.{ending}")) for ending in ("pptx", "xlsx", "epub"))
Members = dict[str, str | bytes]


TYPES = {"worksheets": "worksheet", "styles.xml": "styles", "xl": "officeDocument"}


def relations(**targets: str) -> str:
    inner = "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/{TYPES.get(target.partition("/")[0], "any")}" Target="{target}"/>'
        for name, target in targets.items()
    )
    return f'<Relationships xmlns="{PACKAGE}">{inner}</Relationships>'


def shape(text: str, kind: str = "") -> str:
    lines = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    place = f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>' if kind else "<p:nvPr/>"
    return f"<p:sp><p:nvSpPr>{place}</p:nvSpPr><p:txBody>{lines}</p:txBody></p:sp>"


def slide(*shapes: str, kind: str = "sld") -> str:
    names = "http://schemas.openxmlformats.org/presentationml/2006/main"
    return (
        f'<p:{kind} xmlns:p="{names}" xmlns:a="{DRAWING}/main" xmlns:r="{OFFICE}" xmlns:d="{DRAWING}/diagram" '
        f'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">{"".join(shapes)}</p:{kind}>'
    )


def presentation(*slides: str, order: str = "") -> Members:
    names = [f"s{number}" for number in range(len(slides))]
    listed = "".join(f'<p:sldId r:id="{name}"/>' for name in order.split() or names)
    return {
        "ppt/presentation.xml": slide(listed, kind="presentation"),
        "ppt/_rels/presentation.xml.rels": relations(**{name: f"slides/{name}.xml" for name in names}),
        **{f"ppt/slides/{name}.xml": content for name, content in zip(names, slides, strict=True)},
    }


def row(*cells: str) -> str:
    inner = (f"<a:tc><a:txBody><a:p><a:r><a:t>{one}</a:t></a:r></a:p></a:txBody></a:tc>" for one in cells)
    return f"<a:tr>{''.join(inner)}</a:tr>"


def test_slides_are_pages_and_sections_in_the_order_of_the_show() -> None:
    table = f"<p:graphicFrame><a:tbl>{row('Port', 'Depth')}{row('Oulu', '11 m')}</a:tbl></p:graphicFrame>"
    choice = f"<mc:Choice>{shape('once')}</mc:Choice><mc:Fallback>{shape('once')}</mc:Fallback>"
    diagram = '<p:graphicFrame><d:relIds r:dm="dm"/></p:graphicFrame>'
    members = presentation(
        slide(shape("Narvik\nBasel", "body"), shape("Depths", "title"), table, shape("7", "sldNum")),
        slide(shape("A harbour", "ctrTitle"), choice),
        slide(shape("No title"), f"<p:grpSp>{shape('grouped')}</p:grpSp>", diagram),
        order="s1 s0 s2 s1",
    )
    members["ppt/slides/_rels/s0.xml.rels"] = relations(n="../notesSlides/n.xml")
    members["ppt/notesSlides/n.xml"] = slide(shape("Mention the ice.", "body"), shape("3", "sldNum"), kind="notes")
    members["ppt/slides/_rels/s2.xml.rels"] = relations(dm="/ppt/diagrams/d.xml")
    members["ppt/diagrams/d.xml"] = slide("<a:p><a:r><a:t>a step</a:t></a:r></a:p>", kind="any")
    members["ppt/charts/c.xml"] = "<c/>"
    parsed = parse(archive(members), PPTX)
    assert parsed.text == (
        "A harbour\n\nonce\n\nDepths\n\nNarvik\nBasel\n\nPort | Depth\nOulu | 11 m\n\nMention the ice.\n\n"
        "No title\n\ngrouped\n\na step"
    )
    assert [one.headings for one in parsed.sections] == [("A harbour",), ("Depths",), ("slide 3",)]
    assert [parsed.page_at(parsed.text.index(words)) for words in ("once", "Oulu", "a step")] == [1, 2, 3]
    assert (parsed.title, parsed.notes) == ("A harbour", ("Left out of the PPTX: charts.",))


def workbook(*sheets: str, hidden: str = "") -> Members:
    names = [f"Sheet{number}" for number in range(1, len(sheets) + 1)]
    state = {name: ' state="hidden"' if name == hidden else "" for name in names}
    listed = "".join(f'<sheet name="{name}" sheetId="{name[5:]}" r:id="{name}"{state[name]}/>' for name in names)
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    return {
        "_rels/.rels": relations(r="xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(
            **{name: f"worksheets/{name}.xml" for name in names}, styles="styles.xml"
        ),
        "xl/styles.xml": f'<styleSheet {main}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
        **{
            f"xl/worksheets/{name}.xml": f"<worksheet {main}><sheetData>{cells}</sheetData></worksheet>"
            for name, cells in zip(names, sheets, strict=True)
        },
    }


def cells(number: int, *values: str) -> str:
    """A row; a value in angle brackets is the content of its cell, others are text."""
    places = [(f'r="{chr(65 + at)}{number}"', value) for at, value in enumerate(values)]
    inner = (
        f"<c {place} s='{int('s1' in value)}'>{value.removesuffix('s1')}</c>"
        if value.startswith("<")
        else f'<c {place} t="inlineStr"><is><t>{value}</t></is></c>'
        for place, value in places
    )
    return f'<row r="{number}">{"".join(inner)}</row>'


def test_a_row_of_a_sheet_is_read_as_one_of_csv() -> None:
    berths = cells(1, "Port", "Depth", "Opened", "Twice") + cells(
        3, "Narvik", "<v>12</v>", "<v>1039</v>s1", "<f>B3*2</f><v>24.30</v>"
    )
    unsaved = cells(1, "x", "y") + cells(2, "z", "<f>A1</f>")
    members = workbook(berths, cells(1, "Only words"), cells(1, "a") + cells(2, "b"), unsaved, hidden="Sheet3")
    parsed = parse(archive(members), XLSX)
    assert parsed.text == "Port: Narvik. Depth: 12. Opened: 1902-11-04. Twice: 24.3.\n\nOnly words\n\nx: z."
    assert [one.headings for one in parsed.sections] == [("Sheet1", "Narvik"), ("Sheet2",), ("Sheet4", "z")]
    assert parsed.notes == (
        "1 formulas were saved without their values.",
        "The hidden sheet 'Sheet3' is left out.",
    )


BOOK = """<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>The  river</dc:title><dc:creator>K. Meyer</dc:creator></metadata><manifest>
<item id="b" href="b%20two.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>
<item id="i" href="i.png" media-type="image/png"/>
CONTENTS</manifest><spine><itemref idref="a"/><itemref idref="b"/><itemref idref="gone"/><itemref idref="i"/></spine>
</package>"""
NAV = '<item id="n" href="n.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
NCX = '<item id="n" href="n.xhtml" media-type="application/x-dtbncx+xml"/>'
DOCTYPE = '<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">'
NAV_PAGE = '<html><body><nav><ol><li><a href="b%20two.xhtml#x">The <i>bed</i></a></li></ol></nav></body></html>'
NCX_PAGE = (
    f'{DOCTYPE}<ncx><navMap><navPoint id="p"><navLabel><text>The bed</text></navLabel><content src="b%20two.xhtml"/>'
    '</navPoint><navPoint id="q"><navLabel><text>A part of it</text></navLabel><content src="b%20two.xhtml#q"/>'
    "</navPoint></navMap></ncx>"
)


def book(contents: str, page: str) -> Members:
    first = '<html><head><title/><script src="x"/></head><body><h1>Flow</h1><p>It <a id="x"/>flows.</p></body></html>'
    second = '<html><body><p>Sand, see <a href="a.xhtml">flow</a> and <a href="https://x.org/">x</a>.</p></body></html>'
    return {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="O/p.opf"/></rootfiles></container>',
        "O/p.opf": BOOK.replace("CONTENTS", contents),
        "O/a.xhtml": first,
        "O/b two.xhtml": second,
        "O/n.xhtml": page,
    }


@pytest.mark.parametrize(("contents", "page"), [(NAV, NAV_PAGE), (NCX, NCX_PAGE)])
def test_a_book_is_read_in_the_order_of_its_spine(contents: str, page: str) -> None:
    parsed = parse(archive(book(contents, page)), EPUB)
    assert parsed.text == "Flow\n\nIt flows.\n\nThe bed\n\nSand, see flow and x."
    assert [one.headings for one in parsed.sections] == [("Flow",), ("The bed",)]
    assert (parsed.title, parsed.fields) == ("The river", (("author", "K. Meyer"),))
    assert [link.target for link in parsed.links] == ["https://x.org/"]


ENCRYPTED = '<encryption><CipherReference URI="O/a.xhtml"/></encryption>'


@pytest.mark.parametrize(
    ("members", "media_type", "reason", "says"),
    [
        (presentation(), XLSX, "media_type_mismatch", "no spreadsheet is in it"),
        (workbook(), PPTX, "media_type_mismatch", "no presentation is in it"),
        (workbook(), EPUB, "media_type_mismatch", "no book is in it"),
        (presentation(), PPTX, "empty_content", "Nothing readable is in the PPTX."),
        ({"xl/workbook.xml": "<x/>"}, XLSX, "malformed", "its parts do not fit together"),
        (workbook("<row><c r='A1'><v>x</v></c>"), XLSX, "malformed", "breaks its rules"),
        ({"META-INF/container.xml": "<container/>"}, EPUB, "empty_content", "Nothing readable"),
        ({**book(NAV, NAV_PAGE), "META-INF/encryption.xml": ENCRYPTED}, EPUB, "protected", "encrypted"),
    ],
)
def test_what_is_no_such_file_is_refused(members: Members, media_type: str, reason: str, says: str) -> None:
    with pytest.raises(UnparsableDocument) as refused:
        parse(archive(members), media_type)
    assert refused.value.reason == reason
    assert says in str(refused.value)
