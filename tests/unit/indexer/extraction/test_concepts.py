"""Which names are entities because of what a document states, defines, or has as its title and headings."""

from typing import Any

import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.extraction.concepts import concept_mentions, explained_concepts
from indexer.extraction.entity_mentions import EntityMention
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey


def mentions(text: str, title: str = "Note", typed: tuple[str, ...] = (), **fields: Any) -> list[EntityMention]:
    upsert = DocumentUpsert(
        key=DocumentKey("notes", "note.md"),
        content=text.encode(),
        content_type="text/markdown",
        title=title,
        metadata=fields,
    )
    return concept_mentions(prepare(upsert, ChunkingParameters()), typed)


def types(text: str, **options: Any) -> dict[str, str]:
    return {one.surface: one.entity_type for one in mentions(text, **options)}


def test_both_ends_of_a_statement_are_entities() -> None:
    assert types("The billing service requires the ledger database.") == {
        "billing service": "concept",
        "ledger database": "concept",
    }


def test_end_that_needs_its_article_is_an_entity() -> None:
    found = types("The tow rope is spliced by the rigging workshop. The rigging workshop belongs to the flying club.")
    assert found == dict.fromkeys(("tow rope", "rigging workshop", "flying club"), "concept")


def test_name_that_has_a_type_keeps_it() -> None:
    assert types("The billing service is located in Dublin.", typed=("dublin",)) == {"billing service": "concept"}


def test_values_of_fields_have_the_type_of_their_field() -> None:
    found = types("Nothing else.", title="Harbour report", author="Ann Moss", status="accepted", topic="ferries")
    assert found == {"Harbour report": "work", "Ann Moss": "person", "ferries": "concept"}


@pytest.mark.parametrize("text", ["The pump was built in 1987.", "The pump requires 24."])
def test_literals_are_no_entities(text: str) -> None:
    assert not {"1987", "24"} & types(text).keys()


def test_title_and_heading_are_entities_where_the_text_uses_them() -> None:
    text = "# Tidal turbines\n\nHere the tidal turbine turns.\n\n## Salt marshes\n\nNothing.\n"
    assert types(text, title="Tidal turbines") == {"tidal turbine": "concept"}


def test_singular_and_plural_are_counted_as_one() -> None:
    found = mentions("The tidal turbine is a machine.\n\nMany tidal turbines turn, and one tidal turbine stands.")
    assert [(one.surface, one.count) for one in found if one.name == "tidal turbine"] == [("tidal turbine", 3)]


def test_heading_that_is_a_command_is_no_concept() -> None:
    assert types("# Delete tokens\n\nWe delete tokens each week.") == {}


def test_more_evidence_makes_a_concept_surer() -> None:
    once = mentions("The ledger database is a store.")
    often = mentions("The ledger database is a store. The ledger database requires the archive disk.")
    (first,), (second,) = (
        [one.confidence for one in found if one.surface == "ledger database"] for found in (once, often)
    )
    assert first < second < 1


def test_heading_is_evidence_beside_the_end_of_a_statement() -> None:
    stated = "The billing service requires the ledger database.\n"
    alone, headed = confidences(stated), confidences(f"{stated}\n## Ledger database\n\nThe ledger database is here.\n")
    assert (alone["ledger database"], headed["ledger database"]) == (0.3, 0.51)


def test_document_of_fields_is_less_sure_than_what_it_defines() -> None:
    found = {
        one.surface: one.confidence for one in mentions("A sluice is a gate.", title="Old minutes", author="Ann Moss")
    }
    assert found["Old minutes"] < found["gate"] < found["sluice"]


def confidences(text: str, **options: Any) -> dict[str, float]:
    return {one.surface: one.confidence for one in mentions(text, **options)}


def test_word_that_is_only_a_verb_or_general_is_no_concept() -> None:
    parts = ("Allow", "Requested", "Concerns", "Valves")
    text = "\n\n".join(f"## {word}\n\nHere {word.lower()} is written." for word in parts)
    assert types(text) == {"valves": "concept"}


@pytest.mark.parametrize("title", ["Add a salt marsh", "Restart heron", "Rotate tokens"])
def test_title_that_is_a_command_is_no_concept(title: str) -> None:
    assert types(f"Here we say: {title.lower()}.", title=title) == {}


@pytest.mark.parametrize("fragment", ["new council", "tides of 2 metres", "town of Omsk"])
def test_fragment_of_a_phrase_is_an_end_but_stays_below_the_cut(fragment: str) -> None:
    found = confidences(f"The ledger service requires the {fragment}. The ledger service requires the archive disk.")
    assert found.get(fragment, 0.0) < found["archive disk"] < 0.357 < found["ledger service"] * 2


def test_repeated_phrase_is_a_concept_by_many_repetitions() -> None:
    text = "\n\n".join(["When it rains, tidal turbine blades of steel grow wet and heavy in any case there."] * 20)
    (found,) = {(one.name, one.confidence) for one in mentions(text) if one.name == "tidal turbine blades"}
    assert found == ("tidal turbine blades", 0.05)


def test_document_explains_what_it_defines_or_has_a_heading_for() -> None:
    text = "A sluice is a gate.\n\n## Salt marshes\n\nSalt marshes require the sluice."
    upsert = DocumentUpsert(
        key=DocumentKey("n", "n.md"), content=text.encode(), content_type="text/markdown", title="N"
    )
    prepared = prepare(upsert, ChunkingParameters())
    found = explained_concepts(prepared, concept_mentions(prepared, ()))
    assert {entity.name: relevance for entity, relevance in found} == {"sluice": 0.6, "salt marshes": 0.5}
