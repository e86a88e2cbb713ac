"""What is taken of an extractor's answer: what the chunk says, and nothing else."""

from typing import Any

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.documents import PreparedDocument
from indexer.extraction.extractor import (
    MAX_ANSWERED,
    AnsweredEntity,
    AnsweredStatement,
    Extraction,
    ExtractorAnswer,
    entities_of,
    known_names,
    statements_of,
    taken,
)
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey

TEXT = (
    "Team Petrel owns Beacon. Beacon is a billing service written in March 2024. "
    "It costs 40 euros. Petrel's plans are made by Ann Lee."
)


def document(text: str = TEXT, **fields: Any) -> PreparedDocument:
    upsert = DocumentUpsert(
        key=DocumentKey("c", "d"), content=text.encode(), content_type="text/plain", title="Notes", **fields
    )
    return prepare(upsert, ChunkingParameters())


def of(*entities: AnsweredEntity, statements: list[AnsweredStatement] | None = None) -> Extraction:
    prepared = document()
    return taken(prepared, prepared.chunked.chunks[0], ExtractorAnswer(list(entities), statements), "m:1")


def test_names_in_the_text_are_taken_with_their_count_and_sentences() -> None:
    (beacon,) = of(AnsweredEntity("Beacon", "product")).mentions
    assert (beacon.name, beacon.surface, beacon.entity_type) == ("beacon", "Beacon", "product")
    assert (beacon.count, beacon.sentences) == (2, (0, 1))


def test_invented_names_unknown_types_and_parts_of_words_are_refused() -> None:
    found = of(
        AnsweredEntity("Team Heron", "organisation"),
        AnsweredEntity("Beacon", "gadget"),
        AnsweredEntity("Beac", "product"),
        AnsweredEntity("team petrel", "organisation"),
        AnsweredEntity("", "person"),
        AnsweredEntity(".", "thing"),
        AnsweredEntity("It", "thing"),
        AnsweredEntity("Beacon" * 100_000, "product"),
    )
    assert (found.mentions, found.refused) == ((), 8)


def test_of_an_endless_answer_the_beginning_is_looked_at() -> None:
    invented = [AnsweredEntity(f"Name {number}", "thing") for number in range(MAX_ANSWERED)]
    found = of(*invented, AnsweredEntity("Beacon", "product"))
    assert (found.mentions, found.refused) == ((), MAX_ANSWERED + 1)


def test_numbers_and_times_are_treated_as_the_rules_do() -> None:
    found = of(AnsweredEntity("40 euros", "number"), AnsweredEntity("March 2024", "time"), AnsweredEntity("It", "time"))
    assert [one.surface for one in found.mentions] == ["March 2024"]


def test_a_statement_needs_its_sentence_in_the_text_and_its_names_in_the_sentence() -> None:
    sentence = "Team Petrel owns Beacon."
    found = of(
        statements=[
            AnsweredStatement("Team Petrel", "Owns", "Beacon", sentence),
            AnsweredStatement("Team Petrel", "owns", "Beacon", sentence),
            AnsweredStatement("Team Petrel", "sold", "Beacon", "Team Petrel sold Beacon."),
            AnsweredStatement("Ann Lee", "owns", "Beacon", sentence),
            AnsweredStatement("Team Petrel", "owns", "Team Petrel", sentence),
            AnsweredStatement("Team Petrel", "(:", "Beacon", sentence),
        ]
    )
    (statement,) = found.statements or ()
    assert (statement.predicate, statement.extractor, statement.sentence) == ("owns", "m:1", 0)
    assert statement.roles == (("subject", "team petrel", "Team Petrel"), ("object", "beacon", "Beacon"))
    assert found.refused == 4


def test_a_definition_has_to_stand_in_a_sentence_that_names_the_entity() -> None:
    (defined,) = of(AnsweredEntity("Beacon", "product", "a billing service"), statements=[]).statements or ()
    assert (defined.predicate, defined.sentence) == ("is_a", 1)
    elsewhere = of(AnsweredEntity("Ann Lee", "person", "a billing service"), statements=[])
    assert (elsewhere.statements, elsewhere.refused) == ((), 1)
    assert of(AnsweredEntity("Ann Lee", "person", "the queen"), statements=[]).refused == 1


def test_a_document_without_extractions_is_as_it_was() -> None:
    prepared = document()
    assert entities_of(prepared, (), None) is None
    assert statements_of(prepared, (None,)) == prepared.statements


def test_chunks_without_an_extraction_keep_what_the_rules_found() -> None:
    prepared = document("Dr. Ann Lee founded the University of Basel.\n\n" + "Some words follow here. " * 40)
    assert len(prepared.chunked.chunks) > 1
    extractions: list[Extraction | None] = [None] * len(prepared.chunked.chunks)
    extractions[1] = Extraction((), (), 0)
    kept = entities_of(prepared, extractions, None)
    assert kept
    assert {one.chunk for one in kept} == {0}
    assert statements_of(prepared, extractions) == prepared.statements
    extractions[0] = Extraction((), (), 0)
    assert entities_of(prepared, extractions, None) == []


def test_what_metadata_states_stays_and_is_not_stated_twice() -> None:
    prepared = document(metadata={"owner": "Team Petrel"})
    (metadata,) = (one for one in prepared.statements if one.predicate == "owner")
    repeated = [metadata, *(one for one in of(statements=[]).statements or ())]
    merged = statements_of(prepared, [Extraction((), tuple(repeated), 0)])
    assert merged.count(metadata) == 1


def test_known_names_begin_with_what_the_document_is_about() -> None:
    names = known_names(document())
    assert names[0] == "Notes"
    assert "Beacon" in names
