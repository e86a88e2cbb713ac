"""From a document event to everything that can be known without the encoder."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import (
    PreparationTask,
    decode_prepared,
    decode_sentences,
    encode_task,
    prepare,
    prepare_bytes,
    revision_of,
)
from indexer.errors import UnparsableDocument
from schemas.events import DocumentUpsert
from schemas.graph_documents import EDGE_TYPE, NODE_TYPE
from schemas.ids import DocumentKey

GUIDE = b"""---
title: Style Guide for Python Code
pep: 8
author: Guido van Rossum, Barry Warsaw
replaces: 7
---

# Introduction

This guide builds on an essay of Guido van Rossum. See [the other one](pep-0257.md).

# Naming

Python 3 is a language. Names matter.
"""


def upsert(content: bytes = GUIDE, content_type: str = "text/markdown", title: str | None = None) -> DocumentUpsert:
    key = DocumentKey("peps", "pep-0008.md")
    return DocumentUpsert(key=key, content=content, content_type=content_type, title=title, metadata={"year": 2001})


def test_a_document_is_prepared() -> None:
    prepared = prepare(upsert(), ChunkingParameters())
    assert prepared.title == "PEP 8 – Style Guide for Python Code"
    assert prepared.revision == upsert().revision
    assert {about.name: about.weight for about in prepared.about} == {"pep 8": 1.0, "style guide for python code": 1.0}
    facts = {(fact.roles[0][2], fact.predicate, fact.roles[1][2]) for fact in prepared.statements}
    assert {
        ("PEP 8", "author", "Guido van Rossum"),
        ("PEP 8", "author", "Barry Warsaw"),
        ("PEP 8", "replaces", "PEP 7"),
        ("PEP 8", "year", "2001"),
        ("Python 3", "is_a", "language"),
    } <= facts
    assert "guido van rossum" in {one.name for one in prepared.mentions}
    assert [link.target.document_id for link in prepared.links] == ["pep-0257.md"]


def test_what_a_document_states_is_metadata_beside_what_was_sent() -> None:
    stated = {"pep": "8", "author": ["Guido van Rossum", "Barry Warsaw"], "replaces": "7"}
    assert prepare(upsert(), ChunkingParameters()).metadata == {"year": 2001, **stated, "stated_fields": list(stated)}
    assert prepare(upsert(), ChunkingParameters(), max_metadata_bytes=60).metadata == {
        "year": 2001,
        "pep": "8",
        "stated_fields": ["pep"],
    }


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("text/x-rst", b":Author: Ada Lovelace\n:Status: Final\n\nRivers flow."),
        ("text/plain", b"Author: Ada Lovelace\nStatus: Final\n\nRivers flow."),
        ("application/json", b'{"author": "Ada Lovelace", "status": "Final", "text": "Rivers flow."}'),
        (
            "text/html",
            b'<meta name="author" content="Ada Lovelace"><meta name="dc.status" content="Final"><p>Rivers flow.',
        ),
    ],
)
def test_every_format_with_a_header_states_fields(content_type: str, content: bytes) -> None:
    metadata = prepare(upsert(content, content_type), ChunkingParameters()).metadata
    assert metadata["author"] == "Ada Lovelace"
    assert "Final" in metadata.values()
    assert metadata["year"] == 2001


def test_title_and_heading_are_carried_to_every_chunk() -> None:
    prepared = prepare(upsert(), ChunkingParameters())
    assert len(prepared.embedding_texts) == len(prepared.chunked.chunks)
    naming = prepared.embedding_texts[-1]
    assert naming == "PEP 8 – Style Guide for Python Code. Naming: Python 3 is a language. Names matter."


def test_a_heading_that_is_the_title_is_not_said_twice() -> None:
    stated = upsert(b"---\npep: 8\n---\n# Rivers\n\nThey flow.", title="Rivers")
    assert prepare(stated, ChunkingParameters()).embedding_texts == ("PEP 8 – Rivers. They flow.",)
    untold = prepare(upsert(b"# Rivers\n\nThey flow.", title="Rivers"), ChunkingParameters())
    assert untold.embedding_texts == ("Rivers. They flow.",)


@pytest.mark.parametrize("content_type", ["text/markdown", "application/pdf", "application/x-nothing"])
def test_a_document_without_content_is_its_title(content_type: str) -> None:
    prepared = prepare(upsert(b" \n", content_type, title=" The  Heron\x07of Zürich. "), ChunkingParameters())
    (only,) = prepared.chunked.chunks
    assert (only.text, only.start, only.end) == ("The Heron of Zürich.", 0, 20)
    assert prepared.chunked.passages[0].text == only.text


def test_a_text_that_is_the_title_is_not_embedded_twice() -> None:
    assert prepare(upsert(b"", title="The Heron"), ChunkingParameters()).embedding_texts == ("The Heron",)
    numbered = upsert(b"---\npep: 8\n---\nThe Heron", title="The Heron")
    assert prepare(numbered, ChunkingParameters()).embedding_texts == ("PEP 8 – The Heron",)


def test_a_title_of_control_characters_is_nothing_to_read() -> None:
    with pytest.raises(UnparsableDocument) as refusal:
        prepare(upsert(b"", title="\x01\x07"), ChunkingParameters())
    assert refusal.value.reason == "empty_content"


def test_the_same_document_travels_as_bytes() -> None:
    task = encode_task(PreparationTask(upsert(), ChunkingParameters(chunk_characters=200)))
    result = prepare_bytes(task)
    assert decode_prepared(result) == prepare(upsert(), ChunkingParameters(chunk_characters=200))
    assert prepare_bytes(task) == result
    plain = decode_prepared(prepare_bytes(encode_task(PreparationTask(upsert(), ChunkingParameters(), extracts=False))))
    assert plain == prepare(upsert(), ChunkingParameters(), extracts=False)
    assert not plain.mentions


TEXTS = st.lists(st.sampled_from(["Rivers flow.", "Beds move with every flood.", "# A", "## B", "- one"]), max_size=12)


@settings(deadline=None)
@given(before=TEXTS, inside=TEXTS, edited=TEXTS)
def test_ids_are_those_of_the_text_and_outlive_edits_in_other_sections(
    before: list[str], inside: list[str], edited: list[str]
) -> None:
    def ids(*parts: list[str], key: str = "a") -> dict[str, tuple[str, ...]]:
        """{id: its headings} of the chunks."""
        content = "\n\n".join(["# Start", *(line for part in parts for line in part), "# Last", "It ends here."])
        named = msgspec.structs.replace(upsert(content.encode()), key=DocumentKey("c", key))
        prepared = prepare(named, ChunkingParameters())
        again = prepare(named, ChunkingParameters())
        assert again == prepared
        found = {one.id: prepared.chunked.sections[one.section].headings for one in prepared.chunked.chunks}
        assert len(found) == len(prepared.chunked.chunks), "two chunks have one id"
        return found

    first, second = ids(before, inside), ids(before, edited)
    [last] = [identifier for identifier, headings in first.items() if headings == ("Last",)]
    assert second[last] == ("Last",)
    assert not first.keys() & ids(before, inside, key="b").keys()


def test_what_cannot_be_read_is_refused_with_a_reason() -> None:
    with pytest.raises(UnparsableDocument) as refusal:
        prepare_bytes(encode_task(PreparationTask(upsert(b"x", "application/x-nothing"), ChunkingParameters())))
    assert refusal.value.reason == "unknown_media_type"


def test_a_choice_of_chunking_makes_another_revision_and_none_the_documents_own() -> None:
    chosen = ChunkingParameters(chunk_characters=200)
    revisions = {revision_of(upsert(), one) for one in (None, chosen, ChunkingParameters(method="semantic"))}
    assert len(revisions) == 3
    assert revision_of(upsert(), None) == upsert().revision
    assert revision_of(upsert(), chosen) == revision_of(upsert(), ChunkingParameters(chunk_characters=200))
    made = prepare_bytes(encode_task(PreparationTask(upsert(), chosen, revision_of(upsert(), chosen))))
    assert decode_prepared(made).revision == revision_of(upsert(), chosen)


def test_the_sentences_to_compare_come_section_by_section() -> None:
    answer = prepare_bytes(
        encode_task(PreparationTask(upsert(), ChunkingParameters(method="semantic"), output="sentences"))
    )
    assert decode_sentences(answer) == [
        ["This guide builds on an essay of Guido van Rossum.", "See the other one."],
        ["Python 3 is a language.", "Names matter."],
    ]
    turned = prepare(
        upsert(), ChunkingParameters(chunk_characters=60, chunk_overlap=0, passage_characters=200), boundaries=[1]
    )
    assert [chunk.text for chunk in turned.chunked.chunks][:2] == [
        "This guide builds on an essay of Guido van Rossum.",
        "See the other one.",
    ]


def test_the_language_is_told_from_the_text_unless_it_is_chosen() -> None:
    german = upsert(
        "Der Fluss ist seit dem 3. Mai 2024 sehr hoch, und die Leute bleiben in der Stadt. Er fällt.".encode()
    )
    told, chosen = (ChunkingParameters(language=language) for language in ("auto", "en"))
    assert len(decode_sentences(prepare_bytes(encode_task(PreparationTask(german, told, output="sentences"))))[0]) == 2
    assert len(decode_sentences(prepare_bytes(encode_task(PreparationTask(german, chosen, output="sentences"))))[0]) > 2


def made(document_id: str, content_type: str, **fields: object) -> DocumentUpsert:
    key = DocumentKey("birds", document_id)
    return DocumentUpsert(key=key, content=msgspec.json.encode(fields), content_type=content_type, title="not read")


def test_node_is_prepared_as_a_document_of_its_text() -> None:
    text = "Owner: Petrel\n\nIt owns the heron;\nAda Lovelace leads it."
    node = made("node:petrel", NODE_TYPE, label="Team Petrel", type="team", text=text, aliases=["Petrels, the"])
    prepared = prepare(node, ChunkingParameters())
    assert prepared.title == "Team Petrel"
    assert [passage.text for passage in prepared.chunked.passages] == [text]
    assert {about.name for about in prepared.about} == {"team petrel", "petrels the"}
    assert prepared.metadata == {"node": "petrel", "node_type": "team"}
    assert [(each.name, each.label, each.type) for each in prepared.nodes] == [("petrel", "Team Petrel", "team")]
    assert decode_prepared(prepare_bytes(encode_task(PreparationTask(node, ChunkingParameters())))) == prepared


def test_node_without_text_has_no_passages() -> None:
    prepared = prepare(made("node:petrel", NODE_TYPE, label="Petrel", text=" \n"), ChunkingParameters())
    assert prepared.chunked.sections == prepared.chunked.passages == prepared.chunked.chunks == ()
    assert [about.name for about in prepared.about] == ["petrel"]


def test_edge_is_prepared_as_a_relation_alone() -> None:
    edge = made("edge:e1", EDGE_TYPE, source="petrel", target="heron", predicate="owns", weight=0.5, note="Since May.")
    prepared = prepare(edge, ChunkingParameters())
    assert (prepared.chunked.chunks, prepared.about, prepared.statements) == ((), (), ())
    assert prepared.title == "petrel owns heron"
    [relation] = prepared.relations
    assert (relation.name, relation.source, relation.target, relation.weight) == ("e1", "petrel", "heron", 0.5)
    assert msgspec.json.decode(relation.attributes) == {"by": None, "note": "Since May.", "properties": {}}
