"""What a document states: in its header, and in plain sentences."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.documents import Chunk, ChunkedDocument, ParsedDocument, Section
from indexer.extraction.lexicon import word_set
from indexer.extraction.offsets import OffsetIndex
from indexer.extraction.relations import extract_statements
from schemas.ids import DocumentKey

Make = Callable[..., tuple[ParsedDocument, ChunkedDocument]]
Triples = list[tuple[str, str, str]]
WORDS = sorted(
    word_set(
        """Heron Marsh (Delta) the a worker uses is owned by runs on founded in 2019 and , which . Lund 's of born 3 May
        1971 (born Kiel) Port 8443 “x” – also not may that broker (MB) message pipes are were being What require needed
        on only fitting known as kind"""
    )
)


def header(document: Make, fields: dict[str, str], metadata: Any = None, key: str = "pep-0101.rst") -> Triples:
    parsed, chunked = document("nothing here", fields=tuple(fields.items()))
    statements = extract_statements(
        "Some Title",
        parsed,
        chunked,
        DocumentKey("peps", key),
        metadata or {},
        OffsetIndex.from_document(parsed, chunked),
    )
    assert {
        (statement.chunk, statement.sentence, statement.confidence, statement.extractor) for statement in statements
    } <= {(0, -1, 1.0, "header")}
    return [(statement.roles[0][2], statement.predicate, statement.roles[1][2]) for statement in statements]


def sentences(document: Make, text: str) -> Triples:
    parsed, chunked = document(text)
    statements = extract_statements(
        "Some Title", parsed, chunked, DocumentKey("d", "note.md"), {}, OffsetIndex.from_document(parsed, chunked)
    )
    return [(statement.roles[0][2], statement.predicate, statement.roles[1][2]) for statement in statements]


def test_numbers_of_the_own_series_become_identifiers(document: Make) -> None:
    assert header(document, {"pep": "101", "replaces": "102, 0345", "superseded_by": "PEP 566"}) == [
        ("PEP 101", "replaces", "PEP 102"),
        ("PEP 101", "replaces", "PEP 345"),
        ("PEP 101", "superseded_by", "PEP 566"),
    ]


def test_a_number_elsewhere_stays_a_number(document: Make) -> None:
    assert header(document, {"pep": "101", "python_version": "3.5, 3"}) == [
        ("PEP 101", "python_version", "3"),
        ("PEP 101", "python_version", "3.5"),
    ]


def test_without_a_series_the_title_is_the_subject(document: Make) -> None:
    assert header(document, {"replaces": "102"}, key="note.md") == [("Some Title", "replaces", "102")]


@pytest.mark.parametrize(
    ("value", "persons"),
    [
        ("Guido van Rossum, Barry Warsaw", ["Barry Warsaw", "Guido van Rossum"]),
        ("Guido van Rossum and Barry Warsaw", ["Barry Warsaw", "Guido van Rossum"]),
        (
            "Guido van Rossum <guido@example.org>\nBarry Warsaw (barry@example.org)",
            ["Barry Warsaw", "Guido van Rossum"],
        ),
        ("A. M. Kuchling; guido@example.org", ["A. M. Kuchling"]),
        ("Fred L. Drake, Jr.", ["Fred L. Drake, Jr."]),
        ("The core team and community", ["The core team and community"]),
        ("`Alyssa Coghlan <https://example.org>`__", ["Alyssa Coghlan"]),
    ],
)
def test_persons_are_split_and_their_addresses_dropped(document: Make, value: str, persons: list[str]) -> None:
    assert [value for _, _, value in header(document, {"authors": value})] == persons
    assert {predicate for _, predicate, _ in header(document, {"authors": value})} == {"author"}


def test_long_values_addresses_and_empty_ones_are_dropped(document: Make) -> None:
    assert (
        header(document, {"status": "x" * 121, "resolution": "https://example.org/1", "type": "", "title": "T"}) == []
    )
    assert header(document, {"status": "x" * 120}) == [("PEP 101", "status", "x" * 120)]


def test_metadata_of_the_envelope_states_statements_too(document: Make) -> None:
    metadata = {"year": 1998, "tags": ["graph", "search"], "draft": True, "nested": {"a": 1}}
    assert header(document, {"pep_delegate": "Paul Moore"}, metadata) == [
        ("PEP 101", "delegate", "Paul Moore"),
        ("PEP 101", "tag", "graph"),
        ("PEP 101", "tag", "search"),
        ("PEP 101", "year", "1998"),
    ]


def test_header_and_metadata_that_agree_state_one_statement(document: Make) -> None:
    assert header(document, {"author": "Paul Moore"}, {"author": ["paul moore"]}) == [
        ("PEP 101", "author", "Paul Moore")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Teutberga( died 875) was a queen of Lotharingia by marriage.", ("Teutberga", "is_a", "queen of Lotharingia")),
        (
            "Ada Lovelace, the countess, was an English mathematician.",
            ("Ada Lovelace", "is_a", "English mathematician"),
        ),
        ("Kafka is the broker that keeps the log.", ("Kafka", "is_a", "broker")),
        ("The Solar System is part of the Milky Way.", ("Solar System", "part_of", "Milky Way")),
        ("Today PEP 8 replaces PEP 7 at last.", ("PEP 8", "replaces", "PEP 7")),
        ("Here Flask depends on Werkzeug.", ("Flask", "depends_on", "Werkzeug")),
        ("Now PEP 345 has been superseded by PEP 566.", ("PEP 566", "replaces", "PEP 345")),
        ("We kept the global interpreter lock (GIL).", ("global interpreter lock", "also_known_as", "GIL")),
        ("The Centers for Disease Control (CDC) said so.", ("Centers for Disease Control", "also_known_as", "CDC")),
    ],
)
def test_plain_sentences_state_statements(document: Make, text: str, expected: tuple[str, str, str]) -> None:
    assert expected in sentences(document, text)


@pytest.mark.parametrize(
    "text",
    [
        "It is a pity.",
        "This requires Python 3.",
        "We say that Kafka is a broker.",
        "Kafka is a.",
        "Some (ABC) words.",
        "Rust is Rust.",
        "Homebrew is the easiest.",
        "from kafka import Producer",
        "Kafka uses {topics} here.",
    ],
)
def test_other_sentences_state_none(document: Make, text: str) -> None:
    assert sentences(document, text) == []


def test_a_definition_of_what_the_document_is_about_is_the_surest(document: Make) -> None:
    parsed, chunked = document("The Beatles were a rock band. Genesis was a rock band.")
    made = extract_statements(
        "The Beatles", parsed, chunked, DocumentKey("d", "n.md"), {}, OffsetIndex.from_document(parsed, chunked)
    )
    assert {(one.roles[0][1], one.extractor, one.confidence) for one in made} == {
        ("the beatles", "definition", 0.9),
        ("genesis", "definition", 0.8),
    }


def test_a_fact_has_its_time_and_place(document: Make) -> None:
    parsed, chunked = document(
        "In 2019 Northgate acquired Pellucid. Acme was founded by Ada Lovelace in Porto in 1990."
    )
    first, second = extract_statements(
        "T", parsed, chunked, DocumentKey("d", "n.md"), {}, OffsetIndex.from_document(parsed, chunked)
    )
    assert first.roles == (
        ("subject", "northgate", "Northgate"),
        ("object", "pellucid", "Pellucid"),
        ("time", "2019", "2019"),
    )
    assert second.roles[2:] == (("place", "porto", "Porto"), ("time", "1990", "1990"))


def test_a_sentence_of_a_statement_holds_both_its_ends(document: Make) -> None:
    text = "Acme hires people. The Ledger service, which Ann wrote, handles payments. Team Petrel owns Beacon (2020)."
    parsed, chunked = document(text)
    offsets = OffsetIndex.from_document(parsed, chunked)
    statements = extract_statements("T", parsed, chunked, DocumentKey("d", "n.md"), {}, offsets)
    assert {one.predicate for one in statements} == {"handles", "owns"}
    for statement in statements:
        start, end = offsets.sentences[statement.sentence]
        assert all(surface in text[start:end] for _, _, surface in statement.roles)


def test_a_sentence_cut_in_two_states_its_fact_where_both_ends_are(document: Make) -> None:
    text = "As many people here know, Heron owns Marsh. Gull and also Heron and Delta require the wide old lake."
    parsed, chunked = document(text, size=26)
    made = extract_statements(
        "T", parsed, chunked, DocumentKey("d", "n.md"), {}, OffsetIndex.from_document(parsed, chunked)
    )
    assert [(one.predicate, one.chunk) for one in made] == [("owns", 1)]


@given(st.lists(st.sampled_from(WORDS), max_size=30), st.integers(10, 80))
def test_any_statement_of_a_sentence_stands_in_it_and_in_its_chunk(words: list[str], size: int) -> None:
    text = " ".join(words)
    section = Section((), 0, len(text))
    pieces = [(start, min(start + size, len(text))) for start in range(0, len(text), size)]
    chunks = tuple(Chunk(f"c{at}", at, 0, 0, *piece, text[slice(*piece)]) for at, piece in enumerate(pieces))
    parsed, chunked = ParsedDocument(None, text, (section,)), ChunkedDocument((section,), (), chunks)
    offsets = OffsetIndex.from_document(parsed, chunked)
    for one in extract_statements("T", parsed, chunked, DocumentKey("d", "n.md"), {}, offsets):
        start, end = offsets.sentences[one.sentence]
        assert all(surface in text[start:end] for _, _, surface in one.roles)
        assert all(surface in chunks[one.chunk].text for _, _, surface in one.roles[:2])


@pytest.mark.parametrize(
    "sentence",
    [
        "What the old pipes are is a kind of valve that is required by the pump and by the tank",
        "Slow worms, which are being kept in Lund by Ada Heron, are lizards known as blindworms",
        "The worker (MB) was founded in 2019 and only runs on three of the brokers, not on one",
    ],
)
def test_sentence_cut_at_any_word_is_read(document: Make, sentence: str) -> None:
    words = sentence.split()
    for start, end in itertools.combinations(range(len(words) + 1), 2):
        sentences(document, " ".join(words[start:end]))


def test_lines_that_state_fields_are_about_their_section_or_the_document(document: Make) -> None:
    parts = (
        "- Owner: Team Petrel\n- Weight: 20\n",
        "Owner | Name\nOwner | Team Osprey\nStatus | Live\nLayout | post\n",
        "- Runs on: Nomad",
    )
    headings = (("Systems",), ("Systems", "Pricing API"), ("Systems", "Notes"))
    starts = [sum(map(len, parts[:at])) for at in range(len(parts))]
    sections = tuple(
        Section(heading, start, start + len(part)) for heading, start, part in zip(headings, starts, parts, strict=True)
    )
    parsed, chunked = document("".join(parts), sections=sections)
    made = extract_statements(
        "Some Title", parsed, chunked, DocumentKey("d", "n.md"), {}, OffsetIndex.from_document(parsed, chunked)
    )
    assert [(one.roles[0][2], one.predicate, one.roles[1][2], one.chunk, one.extractor) for one in made] == [
        ("Some Title", "owner", "Team Petrel", 0, "list"),
        ("Pricing API", "owner", "Team Osprey", 1, "list"),
        ("Pricing API", "status", "Live", 1, "list"),
        ("Some Title", "runs_on", "Nomad", 2, "list"),
    ]


def test_a_document_with_a_header_says_there_what_it_is(document: Make) -> None:
    parsed, chunked = document("- Owner: Team Petrel", fields=(("status", "Live"),))
    made = extract_statements(
        "T", parsed, chunked, DocumentKey("d", "n.md"), {}, OffsetIndex.from_document(parsed, chunked)
    )
    assert [one.predicate for one in made] == ["status"]


def test_a_statement_stands_in_the_chunk_and_sentence_that_state_it(document: Make) -> None:
    parsed, chunked = document("We begin it here.   Kafka is a broker. ", size=20)
    [statement] = extract_statements(
        "T", parsed, chunked, DocumentKey("d", "n.md"), {}, OffsetIndex.from_document(parsed, chunked)
    )
    assert (statement.chunk, statement.sentence, statement.extractor) == (1, 1, "definition")
    assert statement.roles == (("subject", "kafka", "Kafka"), ("object", "broker", "broker"))


@pytest.mark.processor_seconds(20)
@pytest.mark.parametrize(
    "unit",
    ["A is a ", "A requires ", "X (", "(ABC) ", "A, b, is a ", "of the ", "used, which ", "Ada Ltd. and ", "a (b) "],
)
def test_hostile_sentences_take_linear_time(document: Make, unit: str) -> None:
    assert len(sentences(document, unit * 30_000)) <= 16
