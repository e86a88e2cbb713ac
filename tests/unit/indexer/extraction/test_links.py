"""Which documents a document links to."""

from collections.abc import Callable

import pytest

from indexer.documents import ChunkedDocument, DocumentLink, ParsedDocument, TextLink
from indexer.extraction import links as extraction
from indexer.extraction.links import MAX_LINKS
from indexer.extraction.offsets import OffsetIndex
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey, link_key

Make = Callable[..., tuple[ParsedDocument, ChunkedDocument]]


def resolve_links(made: DocumentUpsert, parsed: ParsedDocument, chunked: ChunkedDocument) -> tuple[DocumentLink, ...]:
    return extraction.resolve_links(made, parsed, chunked, OffsetIndex.from_document(parsed, chunked))


def upsert(document_id: str, links: list[str] | None = None, uri: str | None = None) -> DocumentUpsert:
    key = DocumentKey("peps", document_id)
    return DocumentUpsert(key=key, content=b"x", content_type="text/plain", links=links or [], uri=uri)


@pytest.mark.parametrize(
    ("document_id", "target", "resolved"),
    [
        ("pep-0001.rst", "pep-0008.rst", "pep-0008.rst"),
        ("pep-0001.rst", "pep-0008", "pep-0008"),
        ("pep-0001.rst", "../pep-0008/", "pep-0008"),
        ("pep-0001.rst", "/pep-0008/", "pep-0008"),
        ("pep-0001.rst", "https://peps.python.org/pep-0008/#tabs", "pep-0008"),
        ("peps/pep-0001.rst", "pep-0008", "peps/pep-0008"),
        ("peps/pep-0001.rst", "../pep-0008/", "peps/pep-0008"),
        ("peps/pep-0001.rst", "https://www.python.org/dev/peps/pep-0008", "peps/pep-0008"),
        ("guide/intro.md", "install.md#linux", "guide/install.md"),
        ("guide/intro.md", "../api/index.html", "api/index.html"),
        ("guide/intro.md", "/api/search.md", "api/search.md"),
        ("guide/intro.md", "/api/", "api"),
        ("guide/intro.md", "./", "guide"),
        ("guide/intro.md", "./My%20File.md", "guide/My File.md"),
        ("guide/a/b.md", "../../../../c.md", "c.md"),
        ("guide/a.md", "wiki:Pump%20station", "wiki:Pump station"),
        ("guide/a.md", "wiki:low/Pump", "low/Pump"),
    ],
)
def test_a_target_is_resolved_against_the_document(
    document: Make, document_id: str, target: str, resolved: str
) -> None:
    parsed, chunked = document("see there", links=(TextLink(target, "there", 4),))
    [link] = resolve_links(upsert(document_id), parsed, chunked)
    assert (link.chunk, link.target, link.weight) == (0, DocumentKey("peps", resolved), 1.0)


@pytest.mark.parametrize(
    "target",
    [
        "https://example.org/pep/",
        "https://example.org/rfc2119",
        "mailto:a@b.c",
        "#there",
        "pep-0001",
        "",
        "..",
        "http://[x",
        "wiki:PEP-0001",
    ],
)
def test_what_leads_elsewhere_or_home_is_no_link(document: Make, target: str) -> None:
    parsed, chunked = document("see there", links=(TextLink(target, "there", 4),))
    assert resolve_links(upsert("pep-0001.rst"), parsed, chunked) == ()


def test_a_page_beside_the_documents_own_is_a_document_beside_it(document: Make) -> None:
    parsed, chunked = document("see there", links=(TextLink("https://x.org/docs/setup", "there", 4),))
    [link] = resolve_links(upsert("a/intro.md", uri="https://x.org/docs/intro"), parsed, chunked)
    assert link.target.document_id == "a/setup"


@pytest.mark.parametrize(
    ("target", "resolved"),
    [
        ("https://x.org/docs/api/search.html#top", ["api/search.html"]),
        ("https://x.org/docs/guide/", ["guide"]),
        ("https://x.org/docs/My%20File", ["My File"]),
        ("https://x.org/docs/", []),
        ("https://x.org/blog/post.html", []),
        ("https://y.org/docs/api/search.html", []),
    ],
)
def test_an_address_under_that_of_the_loaded_folder_is_a_document_of_it(
    document: Make, target: str, resolved: list[str]
) -> None:
    parsed, chunked = document("see there", links=(TextLink(target, "there", 4),))
    made = upsert("guide/intro.md", uri="https://x.org/docs/guide/intro.md")
    assert [link.target.document_id for link in resolve_links(made, parsed, chunked)] == resolved
    odd = upsert("guide/intro.md", uri="https://[x/guide/intro.md")
    assert resolve_links(odd, parsed, chunked) == ()


@pytest.mark.parametrize(
    ("document_id", "named", "target"),
    [
        ("a.md", "b.md", DocumentKey("peps", "b.md")),
        ("a.md", "rfcs/rfc2119.txt", DocumentKey("rfcs", "rfc2119.txt")),
        ("guide/a.md", "guide/b.md", DocumentKey("peps", "guide/b.md")),
    ],
)
def test_links_of_the_envelope_name_documents(
    document: Make, document_id: str, named: str, target: DocumentKey
) -> None:
    parsed, chunked = document("nothing")
    assert [link.target for link in resolve_links(upsert(document_id, [named]), parsed, chunked)] == [target]


def test_a_target_counts_once_at_the_first_chunk_that_links_to_it(document: Make) -> None:
    links = (TextLink("b.md", "b", 25), TextLink("c.md", "c", 12), TextLink("B", "b", 14))
    parsed, chunked = document("x" * 30, size=10, links=links)
    resolved = resolve_links(upsert("a.md"), parsed, chunked)
    assert [(link.chunk, link.target.document_id) for link in resolved] == [(1, "B"), (1, "c.md")]


def test_links_are_bounded(document: Make) -> None:
    links = tuple(TextLink(f"n{number}.md", "x", 0) for number in range(MAX_LINKS + 50))
    parsed, chunked = document("x", links=links)
    assert len(resolve_links(upsert("a.md"), parsed, chunked)) == MAX_LINKS


@pytest.mark.parametrize(
    "written",
    [
        "Guide/Intro.md",
        "guide/intro.html",
        "guide/intro",
        "/guide/intro/",
        "guide/intro/index.html",
        "guide/intro/README.md",
    ],
)
def test_one_document_has_one_link_key_however_it_is_written(written: str) -> None:
    assert link_key(written) == "guide/intro"


def test_only_a_pages_extension_is_left_out() -> None:
    assert link_key("setup.py") == "setup.py"
    assert link_key("python-3.12") == "python-3.12"
    assert link_key("index.html") == "index"
