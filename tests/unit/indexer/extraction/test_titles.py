"""The names a document is about, and what it is called."""

from typing import Any

import pytest

from indexer.documents import ParsedDocument
from indexer.extraction.series import SeriesNumber, series_of_path
from indexer.extraction.titles import about_names, document_title
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey

NOTE = DocumentKey("default", "note.md")


def names(title: str, key: DocumentKey = NOTE, metadata: Any = None, **parsed: Any) -> dict[str, float]:
    document = ParsedDocument(title, "", (), **parsed)
    return {about.name: about.weight for about in about_names(title, document, key, metadata)}


def test_a_title_is_the_first_name() -> None:
    assert names("Shirley Temple") == {"shirley temple": 1.0}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Mercury (planet)", {"mercury": 1.0, "mercury planet": 1.0}),
        ("Lambert, Margrave of Tuscany", {"lambert margrave of tuscany": 1.0, "lambert": 0.7}),
        ("Sir Matt Busby", {"sir matt busby": 1.0, "matt busby": 0.8}),
        ("Dr. Cora Norman", {"dr. cora norman": 1.0, "cora norman": 0.8}),
        ("Star Wars: The Clone Wars", {"star wars the clone wars": 1.0, "star wars": 0.7}),
        ("Alien – Director's Cut", {"alien director cut": 1.0, "alien": 0.7}),
        ("The Lord of the Rings", {"the lord of the rings": 1.0, "lord of the rings": 0.9}),
        ("The Office", {"the office": 1.0, "office": 0.7}),
        ("The Who", {"the who": 1.0}),
    ],
)
def test_endings_and_beginnings_come_off_at_a_price(title: str, expected: dict[str, float]) -> None:
    assert names(title) == expected


def test_a_name_from_two_rules_keeps_the_greater_weight() -> None:
    assert names("Boston, Lincolnshire", metadata={"aliases": ["Boston"]})["boston"] == 1.0


def test_stated_aliases_count_as_the_title_does() -> None:
    stated = names("Kuzu", fields=(("aliases", "[Kùzu, the graph store]"),), metadata={"alias": "kz"})
    assert stated == {"kuzu": 1.0, "the graph store": 1.0, "kz": 1.0}


@pytest.mark.parametrize(
    ("path", "identifier"),
    [
        ("peps/pep-0008.rst", "PEP 8"),
        ("pep-0008", "PEP 8"),
        ("https://peps.python.org/pep-3119/", "PEP 3119"),
        ("rfc2119.txt", "RFC 2119"),
        ("jira/abc_12.md", "ABC 12"),
    ],
)
def test_a_file_name_may_tell_a_place_in_a_series(path: str, identifier: str) -> None:
    found = series_of_path(path)
    assert found is not None
    assert found.identifier == identifier


@pytest.mark.parametrize(
    "path", ["hp00000", "page-3.md", "chapter-01.md", "notes/2024-01-05.md", "pep-0008-old2x9", "8"]
)
def test_a_number_alone_makes_no_series(path: str) -> None:
    found = series_of_path(path)
    assert found is None or found == SeriesNumber("pep", 8)


def test_a_title_that_tells_its_number_is_known_without_it() -> None:
    assert names("PEP 8 – Style Guide", DocumentKey("p", "pep-0008.rst")) == {
        "pep 8 style guide": 1.0,
        "pep 8": 1.0,
        "style guide": 1.0,
    }
    assert names("PEP 80", DocumentKey("p", "pep-0008.rst"))["pep 80"] == 1.0


def test_an_id_names_a_document_by_its_series_too() -> None:
    assert names("Type Hints", DocumentKey("peps", "pep-0484")) == {"type hints": 1.0, "pep 484": 1.0}
    assert names("Crash", DocumentKey("tracker", "abc-12.md")) == {"crash": 1.0, "abc 12": 1.0}


@pytest.mark.parametrize(
    ("collection", "document_id"),
    [("cacm", "CACM-0205"), ("cacm-0f3a", "CACM-0205"), ("all", "cacm/CACM-0205"), ("jobs", "job-7.md")],
)
def test_an_id_that_counts_through_its_collection_is_no_name(collection: str, document_id: str) -> None:
    assert names("Roots", DocumentKey(collection, document_id)) == {"roots": 1.0}


def test_a_number_field_named_as_the_id_begins_is_an_identifier() -> None:
    assert names("Style Guide", DocumentKey("p", "x/pep-0008.rst"), fields=(("pep", "8"),))["pep 8"] == 1.0
    assert names("Plan", DocumentKey("p", "zz-plan.md"), fields=(("zz", "12"),))["zz 12"] == 1.0
    assert names("Keywords", fields=(("rfc", "2119"),))["rfc 2119"] == 1.0
    assert "order 3" not in names("Plan", fields=(("order", "3"),))


@pytest.mark.parametrize(
    ("given", "parsed", "document_id", "title"),
    [
        ("Given", "Parsed", "a/b.md", "Given"),
        (None, "Parsed", "a/b.md", "Parsed"),
        (None, None, "a/b.md", "b.md"),
        (None, "Style Guide for Python Code", "pep-0008.rst", "PEP 8 – Style Guide for Python Code"),
        (None, "PEP 8: Style", "pep-0008.rst", "PEP 8: Style"),
        (None, "Like PEP 80", "pep-0008.rst", "PEP 8 – Like PEP 80"),
        (None, None, "pep-0008.rst", "PEP 8"),
    ],
)
def test_the_title_holds_the_number_that_the_document_states(
    given: str | None, parsed: str | None, document_id: str, title: str
) -> None:
    fields = (("pep", "8"),) if document_id.startswith("pep") else ()
    assert titled(document_id, given, parsed, fields) == title


@pytest.mark.parametrize(
    ("document_id", "parsed", "title"),
    [
        ("CACM-0205", "Extraction of Roots", "Extraction of Roots"),
        ("CACM-0205", None, "CACM-0205"),
        ("abc-12.md", "A Crash", "A Crash"),
        ("pep-0484.rst", "Type Hints", "Type Hints"),
        ("pep-0484.rst", None, "PEP 484"),
    ],
)
def test_a_number_that_only_the_id_tells_stays_out_of_the_title(
    document_id: str, parsed: str | None, title: str
) -> None:
    assert titled(document_id, None, parsed, ()) == title


def titled(document_id: str, given: str | None, parsed: str | None, fields: tuple[tuple[str, str], ...]) -> str:
    upsert = DocumentUpsert(key=DocumentKey("cacm", document_id), content=b"x", content_type="text/plain", title=given)
    return document_title(upsert, ParsedDocument(parsed, "x", (), fields=fields))


def test_a_title_that_is_given_has_no_soft_hyphens() -> None:
    assert titled("a.md", "Be\u00adtriebs\u00adrat", None, ()) == "Betriebsrat"


def test_a_title_that_only_the_content_gives_is_shortened() -> None:
    upsert = DocumentUpsert(key=NOTE, content=b"text", content_type="text/html")
    title = document_title(upsert, ParsedDocument("word " * 1_000_000, "text", ()))
    assert len(title) <= 2_000
    assert title.endswith("word…")
