"""Word documents: what Word shows is text, what it hides is not, and what is left out is noted."""

import pytest

from indexer.documents import ParsedDocument
from indexer.parsing import parse
from tests.support.fixtures.office_files import archive, docx, docx_parts

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
STRICT = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "http://purl.oclc.org/ooxml/wordprocessingml/main",
    f"{OFFICE}/relationships": "http://purl.oclc.org/ooxml/officeDocument/relationships",
}
NAMES = (
    f'xmlns:m="{OFFICE}/math" xmlns:r="{OFFICE}/relationships" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" xmlns:x="urn:of-another-program" '
    'xmlns:v="urn:schemas-microsoft-com:vml" xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
)


def read(body: str, styles: str = "", **parts: str | bytes) -> ParsedDocument:
    """A Word document of this body; `styles` are added to its own, further parts have `_` for `/`."""
    members = docx_parts(f"<w:sdt {NAMES}><w:sdtContent>{body}</w:sdtContent></w:sdt>")
    members["word/styles.xml"] = str(members["word/styles.xml"]).replace("</w:styles>", f"{styles}</w:styles>")
    relations = "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/aFChunk" Target="{name.replace("__", ".")}"/>' for name in parts
    )
    key = "word/_rels/document.xml.rels"
    members[key] = str(members[key]).replace("</Relationships>", f"{relations}</Relationships>")
    members |= {f"word/{name.replace('__', '.')}": content for name, content in parts.items()}
    return parse(archive(members), DOCX)


def t(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def p(*content: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{''.join(content)}</w:p>"


def field(code: str, result: str) -> str:
    marks = {kind: f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")}
    return f"{marks['begin']}{code}{marks['separate']}{result}{marks['end']}"


CODE = "<w:r><w:instrText> IF </w:instrText></w:r>"
DROP_DOWN = (
    '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="Basel"/>'
    '<w:listEntry w:val="Narvik"/></w:ddList></w:ffData></w:fldChar></w:r><w:r><w:instrText>FORMDROPDOWN</w:instrText>'
    '</w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
)
CHECKED = (
    '<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="1"/></w14:checkbox></w:sdtPr><w:sdtContent>'
    f"{t('☒')}</w:sdtContent></w:sdt>"
)
TEXT_BOX = (
    "<wp:anchor><a:graphic><a:graphicData><wps:wsp><wps:txbx><w:txbxContent>"
    f"{p(t('boxed'))}</w:txbxContent></wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:anchor>"
)
IN_BOTH = (
    f'<mc:AlternateContent><mc:Choice Requires="wps"><w:drawing>{TEXT_BOX}</w:drawing></mc:Choice><mc:Fallback><w:pict>'
    f"<v:shape><v:textbox><w:txbxContent>{p(t('boxed'))}</w:txbxContent></v:textbox></v:shape></w:pict></mc:Fallback>"
    "</mc:AlternateContent>"
)
FALLBACK_ONLY_A_PICTURE = IN_BOTH.replace("<w:pict>", "<w:pict/><!--").replace("</w:pict>", "-->")
HIDDEN_STYLE = (
    '<w:style w:type="character" w:styleId="Secret"><w:name w:val="Secret"/><w:rPr><w:vanish/></w:rPr></w:style>'
    '<w:style w:type="character" w:styleId="More"><w:name w:val="More"/><w:basedOn w:val="Secret"/></w:style>'
)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (p(t("No. "), f'<w:fldSimple w:instr="X">{t("QZ-4711")}</w:fldSimple>', t(".")), "No. QZ-4711."),
        (p(t("a "), f'<w:fldSimple><w:hyperlink r:id="r1">{t("link")}</w:hyperlink></w:fldSimple>'), "a link"),
        (p(t("a "), field(CODE + field(CODE, t("inner")) + CODE, t("shown")), t(" b")), "a shown b"),
        (p(t("a "), '<w:r><w:fldChar w:fldCharType="begin"/></w:r>', CODE, t("b")), "a b"),
        (p(t("Port: "), DROP_DOWN), "Port: Narvik"),
        (p(CHECKED, t("insured")), "☒ insured"),
        (p(f"<w:dir>{t('a')}<w:bdo>{t('b')}</w:bdo></w:dir><x:new>{t('c')}</x:new>"), "abc"),
        (p(t("seen"), t(" unseen", "<w:vanish/>"), t(" too", '<w:vanish w:val="0"/>')), "seen too"),
        (p(t("seen"), t(" unseen", '<w:rStyle w:val="More"/>')), "seen"),
        (p(f"<w:ruby><w:rt>{t('おお')}</w:rt><w:rubyBase>{t('大')}</w:rubyBase></w:ruby>", t("きい")), "大きい"),
        (p(f"<w:moveFrom>{t('there')}</w:moveFrom><w:moveTo>{t('here')}</w:moveTo>"), "here"),
        (p(f"<w:ins>{t('new')}</w:ins>", "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"), "new"),
        (p(t("a"), f"<w:r>{IN_BOTH}</w:r>"), "a\n\nboxed"),
        (p(t("a"), f"<w:r>{FALLBACK_ONLY_A_PICTURE}</w:r>"), "a\n\nboxed"),
        (p(t("a"), f"<w:r><w:drawing>{TEXT_BOX}</w:drawing></w:r>"), "a\n\nboxed"),
    ],
)
def test_what_word_shows_is_read(body: str, text: str) -> None:
    assert read(body, HIDDEN_STYLE).text == text


def m(name: str, *content: str) -> str:
    return f"<m:{name}>{''.join(content)}</m:{name}>"


def mt(text: str) -> str:
    return m("r", m("t", text))


ROOT = m("rad", m("deg"), m("e", m("sSup", m("e", mt("b")), m("sup", mt("2"))), mt("-4ac")))
SUM = m("nary", m("naryPr", '<m:chr m:val="∑"/>'), m("sub", mt("i=1")), m("sup", mt("n")), m("e", mt("i")))


@pytest.mark.parametrize(
    ("equation", "text"),
    [
        (mt("x=") + m("f", m("num", mt("-b±"), ROOT), m("den", mt("2a"))), "x=(-b±√(b^2-4ac))/2a"),
        (mt("E=m") + m("sSup", m("e", mt("c")), m("sup", mt("2"))), "E=mc^2"),
        (m("sSubSup", m("e", mt("x")), m("sub", mt("i+1")), m("sup", mt("2"))), "x_(i+1)^2"),
        (SUM, "∑_(i=1)^n i"),
        (m("d", m("dPr", '<m:begChr m:val="["/><m:endChr m:val="]"/>'), m("e", mt("a+b"))), "[a+b]"),
        (m("func", m("fName", mt("sin")), m("e", mt("x"))), "sin x"),
        (m("m", m("mr", m("e", mt("1")), m("e", mt("0"))), m("mr", m("e", mt("0")), m("e", mt("1")))), "1, 0; 0, 1"),
    ],
)
def test_an_equation_is_a_line_of_text(equation: str, text: str) -> None:
    inline = read(p(t("where"), m("oMath", equation), t("holds")))
    assert inline.text == f"where {text} holds"
    assert read(p(m("oMathPara", m("oMath", equation)))).text == text


def style(identity: str, name: str, *, based_on: str = "", outline: str = "") -> str:
    inner = f'<w:name w:val="{name}"/>' + (f'<w:basedOn w:val="{based_on}"/>' if based_on else "")
    inner += f'<w:pPr><w:outlineLvl w:val="{outline}"/></w:pPr>' if outline else ""
    return f'<w:style w:type="paragraph" w:styleId="{identity}">{inner}</w:style>'


@pytest.mark.parametrize(
    ("styles", "is_heading"),
    [
        (style("S", "Section", based_on="Heading2"), True),
        (style("S", "Sub", based_on="M") + style("M", "Middle", based_on="Heading2"), True),
        (style("S", "Corporate", outline="1"), True),
        (style("S", "Überschrift 2"), True),
        (style("S", "見出し 2"), True),
        (style("S", "Heading 2"), True),
        (style("S", "TOC Heading", based_on="Heading1", outline="9"), False),
        (style("S", "Subtitle", based_on="Heading1"), False),
        (style("S", "Circle", based_on="T") + style("T", "Round", based_on="S"), False),
        (style("S", "Body"), False),
    ],
)
def test_a_style_inherits_its_level(styles: str, is_heading: bool) -> None:
    body = p(t("Rivers"), properties='<w:pStyle w:val="Heading1"/>') + p(
        t("Its bed"), properties='<w:pStyle w:val="S"/>'
    )
    parsed = read(body + p(t("Sand.")), styles)
    assert parsed.sections[-1].headings == (("Rivers", "Its bed") if is_heading else ("Rivers",))
    assert parsed.title == "Rivers"


def test_an_outline_level_of_the_paragraph_itself_counts_first() -> None:
    level = '<w:pStyle w:val="{}"/><w:outlineLvl w:val="{}"/>'
    body = p(t("Bed"), properties=level.format("Normal", 1)) + p(t("No."), properties=level.format("Heading1", 9))
    assert [one.headings for one in read(body).sections] == [("Bed",)]


def test_the_title_may_be_a_style_based_on_title() -> None:
    styles = style("Title", "Title") + style("Cover", "Cover", based_on="Title")
    assert (
        read(p(t("Harbour rules"), properties='<w:pStyle w:val="Cover"/>') + p(t("x")), styles).title == "Harbour rules"
    )


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a__html", b"<html><head><title>T</title></head><body><p>One &amp; two.</p></body></html>", "One & two."),
        ("a__txt", "Fünf < sechs.".encode(), "Fünf < sechs."),
        ("a__docx", docx([("p", "From another.")]), "From another."),
        ("a__mht", b"MIME-Version: 1.0\nContent-Type: text/html\n\n<p>Archived.</p>", "Archived."),
    ],
)
def test_an_inserted_document_is_read(name: str, content: bytes, text: str) -> None:
    parsed = read(p(t("Before.")) + f'<w:altChunk r:id="{name}"/>' + p(t("Behind.")), **{name: content})
    assert (parsed.text, parsed.title) == (f"Before.\n\n{text}\n\nBehind.", None)


def test_what_is_left_out_is_noted() -> None:
    def root(name: str, namespace: str) -> str:
        return f'<x:{name} xmlns:x="{namespace}">words</x:{name}>'

    body = p(t("Words.")) + '<w:altChunk r:id="a__rtf"/>'
    parts = {"a__rtf": b"{\\rtf1 x}", "comments__xml": root("comments", "u"), "header1__xml": root("hdr", "u")}
    [note] = read(body, **parts).notes
    assert note == "Left out of the DOCX: an inserted document (a.rtf), comments, headers."
    assert read(p(t("Words."))).notes == ()


def test_a_strict_document_is_read_as_any() -> None:
    parts = docx_parts(p(t("Rivers"), properties='<w:pStyle w:val="Heading1"/>') + p(t("Sand.")))
    for transitional, strict in STRICT.items():
        parts = {name: str(content).replace(transitional, strict) for name, content in parts.items()}
    assert parse(archive(parts), DOCX).title == "Rivers"
