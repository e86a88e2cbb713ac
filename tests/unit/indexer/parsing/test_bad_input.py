"""Content that is not what it is said to be, or is nothing: one outcome for each."""

import gzip

import pytest

from indexer.errors import UnparsableDocument
from indexer.parsing import formats, media_type_of, parse
from tests.support.fixtures.office_files import archive, docx, docx_parts, pdf

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
HTML = b"<!DOCTYPE html><html><body><h1>Rivers</h1></body></html>"
PDF = pdf([[("p", "Some words.")]])


def refusal(content: bytes, content_type: str) -> tuple[str, str]:
    with pytest.raises(UnparsableDocument) as caught:
        parse(content, content_type)
    return caught.value.reason, str(caught.value)


@pytest.mark.parametrize(
    ("content", "content_type", "sentence"),
    [
        (HTML, "application/pdf", "The content is HTML, not PDF as its media type says. Send it as text/html."),
        (HTML, DOCX, "The content is HTML, not DOCX as its media type says. Send it as text/html."),
        (PDF, DOCX, "The content is PDF, not DOCX as its media type says. Send it as application/pdf."),
        (PDF, "text/plain", "The content is PDF, not plain text as its media type says. Send it as application/pdf."),
        (PDF, "text/html", "The content is PDF, not HTML as its media type says. Send it as application/pdf."),
        (
            docx([("p", "x")]),
            "text/markdown",
            "The content is a ZIP archive (such as DOCX, XLSX or EPUB), not Markdown",
        ),
        (gzip.compress(b"words", mtime=0), "text/plain", "The content is gzip-compressed data, not plain text"),
        (b"\x89PNG\r\n\x1a\n....", "application/json", "The content is a PNG image, not JSON"),
        (b"Some words.", "application/pdf", "The content is not PDF, as its media type says. Correct its media type."),
        (archive({"xl/workbook.xml": "<x/>"}), DOCX, "no Word document is in it"),
    ],
)
def test_bytes_of_another_kind_are_refused_and_never_guessed(content: bytes, content_type: str, sentence: str) -> None:
    reason, message = refusal(content, content_type)
    assert reason == "media_type_mismatch"
    assert sentence in message


def test_a_pdf_may_have_something_before_its_header() -> None:
    assert parse(b"\n \n" + PDF, "application/pdf").text == "Some words."


@pytest.mark.parametrize(
    ("content", "content_type", "sentence"),
    [
        (b'{"content": x}', "application/json", "The content is not JSON: line 1, column 13 breaks its rules."),
        (b'{"content": "\\ud800"}', "application/json", "The content is not JSON"),
        (b"Some words.", "application/json", "The content is not JSON"),
        (b"<a>\n<b></a>", "application/xml", "The content is not XML: line 2"),
        (b"Some words.", "application/xml", "The content is not XML: line 1"),
        (b"%PDF-1.7\nbroken", "application/pdf", "The content is not PDF: it is damaged beyond repair."),
        (b"PK\x03\x04broken", DOCX, "The content is not DOCX: its ZIP archive is damaged."),
        (docx([("p", "x" * 5_000)])[:-400], DOCX, "The content is not DOCX"),
        (archive({"word/other.xml": "<document/>"}), DOCX, "The content is not DOCX: its parts do not fit together."),
    ],
)
def test_content_that_breaks_the_rules_of_its_format_is_refused(
    content: bytes, content_type: str, sentence: str
) -> None:
    reason, message = refusal(content, content_type)
    assert reason == "malformed"
    assert sentence in message


@pytest.mark.parametrize(
    ("content", "content_type", "sentence"),
    [
        (b'{"id": null, "tags": [], "parts": {}}', "application/json", "it has no object with a value"),
        (b"[]", "application/json", "it has no object with a value"),
        (b"[1, 2, 3]", "application/json", "it has no object with a value"),
        (b"<a><b/></a>", "application/xml", "Nothing readable is in the XML."),
        (docx([]), DOCX, "Nothing readable is in the DOCX."),
        (b"<style>p {}</style>", "text/html", "Nothing readable is in the HTML."),
        (b"\n\n  \n", "text/x-python", "Nothing readable is in the Python."),
        ("\u200b\n\u2060".encode(), "text/plain", "Nothing readable is in the plain text."),
        ("# \u200b\n\n\u200b".encode(), "text/markdown", "Nothing readable is in the Markdown."),
        (b"<html><title>&#8203;</title><p>&#8203;</p></html>", "text/html", "Nothing readable is in the HTML."),
    ],
)
def test_a_document_without_words_is_refused(content: bytes, content_type: str, sentence: str) -> None:
    reason, message = refusal(content, content_type)
    assert reason == "empty_content"
    assert sentence in message


def test_pdf_of_pictures_is_refused_as_one() -> None:
    reason, message = refusal(pdf([[], []]), "application/pdf")
    assert (reason, "as scanned ones have none" in message) == ("pictures_only", True)


@pytest.mark.parametrize("content_type", ["text/plain; charset=no-such-set", "text/plain; charset=unicode_escape"])
def test_an_unknown_character_set_counts_as_none(content_type: str) -> None:
    """UTF-8 is read, other text is told by what it says, and what cannot be told is refused."""
    words = "Der Fluß fließt durch das große Tal; über ihm stehen Bäume, und die Strömung trägt Sand zur Mündung."
    assert parse(words.encode(), content_type).text == words
    assert parse(words.encode("cp1252"), content_type).text == words
    assert refusal(b"Fl\xfcsse", content_type)[0] == "undecodable"


def test_the_list_of_formats_tells_media_types_extensions_and_limits() -> None:
    known = {one.name: one for one in formats()}
    documents = [
        "Markdown",
        "HTML",
        "reStructuredText",
        "JSON",
        "XML",
        "CSV",
        "TSV",
        "PDF",
        "DOCX",
        "PPTX",
        "XLSX",
        "EPUB",
    ]
    assert {*documents, "plain text", "Python"} <= set(known)
    assert dict(known["PDF"].limits) == {"pages": 2_000, "characters": 10_000_000, "cpu_seconds": 6}
    assert dict(known["CSV"].limits) == dict(known["TSV"].limits)
    assert dict(known["CSV"].limits)["rows"] == 20_000
    assert dict(known["DOCX"].limits)["members"] == 5_000
    media_types = [media_type for one in formats() for media_type in one.media_types]
    extensions = [extension for one in formats() for extension in one.extensions]
    assert len(set(media_types)) == len(media_types)
    assert len(set(extensions)) == len(extensions)
    assert media_type_of("a/b.PDF") == "application/pdf"
    assert media_type_of("main.rs") == "text/x-rust"


def test_a_word_document_whose_parts_lie_elsewhere_is_read() -> None:
    parts = docx_parts("<w:p><w:r><w:t>words</w:t></w:r></w:p>")
    parts["word/document2.xml"] = parts.pop("word/document.xml")
    parts["_rels/.rels"] = str(parts["_rels/.rels"]).replace("document.xml", "document2.xml")
    assert parse(archive(parts), DOCX).text == "words"


def test_a_heading_of_which_nothing_can_be_seen_is_no_title() -> None:
    parsed = parse("# \u200b\n\nThe river is high.".encode(), "text/markdown")
    assert (parsed.title, parsed.sections[0].headings) == (None, ())
