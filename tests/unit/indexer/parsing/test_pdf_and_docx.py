"""PDF, DOCX and source code: what their structure becomes."""

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.documents import Figure, ParsedDocument
from indexer.parsing import parse
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey
from tests.support.fixtures.office_files import Blocks, archive, docx, docx_parts, pdf

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
LONG = "The current is fastest in the thalweg of a river, and boats going down the river keep to it wherever they can. "
A = "http://schemas.openxmlformats.org/drawingml/2006"


def read_pdf(*pages: Blocks, outline: bool = True, title: str | None = None) -> ParsedDocument:
    return parse(pdf(pages, outline=outline, title=title), "application/pdf")


def test_lines_are_joined_to_paragraphs() -> None:
    parsed = read_pdf([("p", (LONG * 3).strip()), ("p", LONG.strip()), ("li", "sand"), ("li", "mud")])
    assert parsed.text == f"{(LONG * 3).strip()}\n\n{LONG.strip()}\n\n- sand\n- mud"


def test_headings_are_those_of_the_outline_even_on_one_page() -> None:
    parsed = read_pdf(
        [("h1", "A river"), ("p", "One."), ("h2", "Its bed"), ("p", "Two.")], [("h1", "Maps"), ("p", "3.")]
    )
    assert [one.headings for one in parsed.sections] == [("A river",), ("A river", "Its bed"), ("Maps",)]
    assert parsed.title is None  # two entries on the first level: neither is the document's


def test_a_heading_is_found_without_its_number_but_rather_with_it() -> None:
    page: Blocks = [("p", "2"), ("h1", "2 Flow"), ("p", "It flows.")]
    parsed = read_pdf(page)
    assert [one.headings for one in parsed.sections] == [(), ("2 Flow",)]
    unnumbered = parse(pdf([page]).replace(b"/Title(2 Flow)", b"/Title(Flow)  "), "application/pdf")
    assert [one.headings for one in unnumbered.sections] == [(), ("2 Flow",)]


def test_without_an_outline_there_are_pages_and_no_headings() -> None:
    parsed = read_pdf([("h1", "A river"), ("p", "One.")], [], [("p", "Two.")], outline=False)
    assert [one.headings for one in parsed.sections] == [()]
    assert [parsed.page_at(parsed.text.index(words)) for words in ("A river", "One.", "Two.")] == [1, 1, 3]


def test_a_document_says_in_its_metadata_where_its_pages_begin() -> None:
    """Offsets in the extracted text, so that the `start` of a hit tells its page."""
    content = pdf([[("p", "One.")], [("p", "Two.")]])
    for content_type, expected in (("application/pdf", {"year": 1843, "page_starts": [0, 4]}), (DOCX, {"year": 1843})):
        body = content if content_type != DOCX else docx([("p", "One.")])
        key = DocumentKey("default", "rivers")
        upsert = DocumentUpsert(key=key, content=body, content_type=content_type, metadata={"year": 1843})
        assert prepare(upsert, ChunkingParameters()).metadata == expected


def test_a_title_that_is_a_file_name_is_none() -> None:
    assert read_pdf([("p", "Words.")], title="Rivers of Europe").title == "Rivers of Europe"
    assert read_pdf([("p", "Words.")], title="Microsoft Word - rivers.docx").title is None


def test_an_image_in_a_pdf_takes_the_figure_line_below_it() -> None:
    parsed = read_pdf([("p", "Words."), ("image", ""), ("p", "Figure 4. The bed."), ("p", "More.")])
    assert parsed.figures == (Figure(8, 26, "Figure 4. The bed."),)


def test_a_word_document_has_tables_lists_and_titles() -> None:
    parsed = parse(docx([("h1", "A"), ("row", "sand | 1 mm"), ("li", "x"), ("li", "y"), ("p", "z")]), DOCX)
    assert parsed.text == "A\n\nsand | 1 mm\n\n- x\n- y\n\nz"
    assert parsed.title == "A"
    assert parsed.page_at(0) is None


def test_an_image_in_a_word_document_takes_the_figure_line_behind_it() -> None:
    drawing = (
        f'<w:drawing><wp:inline xmlns:wp="{A}/wordprocessingDrawing"><wp:docPr id="1" name="x" descr="a map"/>'
        f'<a:graphic xmlns:a="{A}/main"><a:graphicData><pic:pic xmlns:pic="{A}/picture"><pic:blipFill>'
        '<a:blip r:embed="r9" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"/>'
        "</pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing>"
    )
    body = f"<w:p><w:r>{drawing}</w:r></w:p><w:p><w:r><w:t>Figure 4. The bed.</w:t></w:r></w:p>"
    parts = docx_parts(body)
    relations = str(parts["word/_rels/document.xml.rels"])
    image = '<Relationship Id="r9" Type="http://x/image" Target="media/i.png"/></Relationships>'
    parts["word/_rels/document.xml.rels"] = relations.replace("</Relationships>", image)
    parsed = parse(archive(parts), DOCX)
    assert parsed.text == "a map\n\nFigure 4. The bed."
    assert parsed.figures == (Figure(0, 25, "Figure 4. The bed."),)


def test_deleted_text_of_a_word_document_is_left_out() -> None:
    body = (
        "<w:p><w:r><w:t>kept</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        "<w:r><w:rPr><w:b/></w:rPr><w:t xml:space='preserve'> bold</w:t></w:r></w:p>"
    )
    parsed = parse(archive(docx_parts(body)), DOCX)
    assert parsed.text == "kept bold"
    assert parsed.emphasised == ("bold",)


def test_source_code_keeps_its_lines() -> None:
    parsed = parse(b"def flow(bed):\r\n    return bed  \r\n\r\n\r\nx = 1\r\n", "text/x-python")
    assert parsed.text == "def flow(bed):\n    return bed\n\n\nx = 1"
    assert [one.headings for one in parsed.sections] == [()]
