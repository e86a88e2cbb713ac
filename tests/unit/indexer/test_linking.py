"""Edges between the chunks of a document, and the whole contribution, with numbers worked by hand."""

import msgspec
import numpy as np
import pytest

from indexer.documents import (
    AboutName,
    Chunk,
    ChunkedDocument,
    DocumentLink,
    Mention,
    Passage,
    PreparedDocument,
    Section,
    Statement,
)
from indexer.extraction.entity_mentions import EntityMention
from indexer.linking import LinkingRules, chunk_edges, contribution
from schemas.curation import LinkingChoice
from schemas.graph_delta import AboutEdge, ChunkEdge, LinkEdge, MentionEdge, decode_contribution, encode_contribution
from schemas.ids import DocumentKey, section_id, statement_id

KEY = DocumentKey("d", "n.md")


def chunked(count: int, sections: tuple[Section, ...] = (Section((), 0, 9),)) -> ChunkedDocument:
    chunks = tuple(Chunk(f"c{number}", number, 0, 0, number, number + 1, "x") for number in range(count))
    return ChunkedDocument(sections, (Passage("p0", 0, 0, 0, 9, "x" * 9),), chunks)


def at_angles(*degrees: float) -> np.ndarray:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def test_neighbours_at_a_right_angle_are_only_next() -> None:
    assert chunk_edges(chunked(2).chunks, at_angles(0, 90)) == [ChunkEdge("next_chunk", 0, 1, 0.85)]


def test_opposite_neighbours_weigh_no_less() -> None:
    assert chunk_edges(chunked(2).chunks, at_angles(0, 180)) == [ChunkEdge("next_chunk", 0, 1, 0.85)]


def test_equal_neighbours_are_similar() -> None:
    # .85 x 1.15 = .9775; .9 x 1
    assert chunk_edges(chunked(2).chunks, at_angles(0, 0)) == [
        ChunkEdge("next_chunk", 0, 1, 0.9775),
        ChunkEdge("similar_to", 0, 1, 0.9),
    ]


def test_similar_begins_above_a_cosine_of_eight_tenths() -> None:
    # cos 60° = .5: .85 x (1 + .15 x .5) = .91375; cos 36° = .809017: .85 x 1.12135255 = .95315, .9 x .809017 = .728115
    edges = chunk_edges(chunked(3).chunks, at_angles(0, 60, 96))
    assert [(edge.kind, edge.source, edge.target) for edge in edges] == [
        ("next_chunk", 0, 1),
        ("next_chunk", 1, 2),
        ("similar_to", 1, 2),
    ]
    assert [edge.weight for edge in edges] == pytest.approx([0.91375, 0.95315, 0.728115], abs=2e-6)


def test_chunks_further_apart_are_related_both_ways() -> None:
    edges = chunk_edges(chunked(3).chunks, at_angles(0, 90, 0))
    assert [edge for edge in edges if edge.kind == "related_to"] == [
        ChunkEdge("related_to", 0, 2, 0.75),
        ChunkEdge("related_to", 2, 0, 0.75),
    ]
    # cos 42° = .743145 is below the threshold
    assert [edge.kind for edge in chunk_edges(chunked(3).chunks, at_angles(0, 90, 42))] == ["next_chunk", "next_chunk"]


def test_no_chunk_is_related_to_more_than_eight() -> None:
    edges = chunk_edges(chunked(40).chunks, at_angles(*[0] * 40))
    related = [edge for edge in edges if edge.kind == "related_to"]
    sources = [edge.source for edge in related]
    assert max(sources.count(source) for source in range(40)) <= 8
    assert {(edge.source, edge.target) for edge in related} == {(edge.target, edge.source) for edge in related}


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(7).normal(size=(60, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    whole = chunk_edges(chunked(60).chunks, vectors)
    monkeypatch.setattr("indexer.linking._BLOCK_FLOATS", 180)  # three rows at a time
    in_blocks = chunk_edges(chunked(60).chunks, vectors)
    assert [(edge.kind, edge.source, edge.target) for edge in in_blocks] == [
        (edge.kind, edge.source, edge.target) for edge in whole
    ]
    assert [edge.weight for edge in in_blocks] == pytest.approx([edge.weight for edge in whole], abs=2e-6)


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_chunks_have_no_edges(count: int) -> None:
    assert chunk_edges(chunked(count).chunks, np.zeros((count, 3), dtype=np.float32)) == []


def test_each_chunk_needs_its_vector() -> None:
    with pytest.raises(ValueError, match="3 chunks need as many vectors"):
        chunk_edges(chunked(3).chunks, at_angles(0, 0))


def test_a_contribution_holds_everything_in_order() -> None:
    sections = (Section(("A",), 0, 1), Section(("A", "B"), 1, 2), Section(("A", "X", "C"), 2, 3), Section(("A",), 3, 4))
    facts = (
        Statement(1, "uses", (("subject", "a", "A"), ("object", "b", "B")), 0.7, "pattern", 3),
        Statement(0, "author", (("subject", "t", "T"), ("object", "ann", "Ann")), 1.0, "header"),
        Statement(1, "uses", (("subject", "a", "A"), ("object", "b", "b")), 0.7, "pattern", 4),
    )
    prepared = PreparedDocument(
        key=KEY,
        revision="r",
        title="T",
        uri=None,
        content_type="text/plain",
        metadata={},
        chunked=chunked(2, sections),
        embedding_texts=("", ""),
        about=(AboutName("t", "T", 1.0), AboutName("s", "S", 0.7)),
        mentions=(Mention(1, "b", "B", "thing", 2, (3, 4)), Mention(0, "z", "Z", "thing", 1, (0,))),
        statements=facts,
        links=(DocumentLink(1, DocumentKey("e", "y.md"), 1.0), DocumentLink(0, DocumentKey("d", "x.md"), 1.0)),
    )
    made = contribution(prepared, at_angles(0, 90))
    assert [(node.title, node.level, node.parent) for node in made.sections] == [
        ("A", 1, -1),
        ("B", 2, 0),
        ("C", 3, 0),
        ("A", 1, -1),
    ]
    assert made.sections[3].id == section_id(KEY, ("A",), 1)
    assert [(node.id, node.passage_id, node.passage, node.section) for node in made.chunks] == [
        ("c0", "p0", 0, 0),
        ("c1", "p0", 0, 0),
    ]
    assert made.about == [AboutEdge("s", "S", 0.7), AboutEdge("t", "T", 1.0)]
    terms = [edge for edge in made.mentions if edge.kind]
    assert [edge.name for edge in terms] == ["z", "b"]
    assert terms[0] == MentionEdge(0, "z", "Z", "thing", 1, [0])
    ends = [(edge.chunk, edge.name, edge.entity_type) for edge in made.mentions if edge.entity_type]
    assert ends == [(0, "ann", "thing"), (0, "t", "work")]  # a letter is no name
    assert [(node.chunk, node.predicate, node.sentence) for node in made.statements] == [
        (0, "author", -1),
        (1, "uses", 3),
    ]
    assert made.statements[1].id == statement_id("c1", "uses", [("subject", "a"), ("object", "b")], "pattern")
    assert made.edges == [ChunkEdge("next_chunk", 0, 1, 0.85)]
    assert made.links == [LinkEdge(0, "d", "x.md", 1.0), LinkEdge(1, "e", "y.md", 1.0)]
    assert decode_contribution(encode_contribution(made)) == made
    reordered = msgspec.structs.replace(prepared, about=prepared.about[::-1], mentions=prepared.mentions[::-1])
    assert contribution(reordered, at_angles(0, 90)) == made
    found = [
        EntityMention(1, "b", "B Ltd", 1, (3,), "organisation", 0.91234),
        EntityMention(0, "q", "Q", 2, (0, 1), "place", 1.0),
    ]
    tagged = contribution(prepared, at_angles(0, 90), entities=found).mentions
    assert [edge for edge in tagged if edge.name not in ("ann", "t")] == [
        MentionEdge(0, "q", "Q", "", 2, [0, 1], "place", 1.0),
        MentionEdge(0, "z", "Z", "thing", 1, [0]),
        MentionEdge(1, "b", "B Ltd", "thing", 2, [3, 4], "organisation", 0.912),
    ]


def test_a_collection_may_choose_other_rules() -> None:
    """Angles 0, 60 and 0 degrees: cosines of neighbours .5, of the others 1."""
    chosen = LinkingRules().with_choice(
        LinkingChoice(next_chunk=0.5, next_chunk_raise=0.0, similar_above=0.4, similar=0.8, max_related=0)
    )
    assert chunk_edges(chunked(3).chunks, at_angles(0, 60, 0), chosen) == [
        ChunkEdge("next_chunk", 0, 1, 0.5),
        ChunkEdge("next_chunk", 1, 2, 0.5),
        ChunkEdge("similar_to", 0, 1, 0.4),
        ChunkEdge("similar_to", 1, 2, 0.4),
    ]


def test_names_of_a_contribution_are_those_the_document_means() -> None:
    prepared = PreparedDocument(
        key=KEY,
        revision="r",
        title="T",
        uri=None,
        content_type="text/plain",
        metadata={},
        chunked=chunked(2),
        embedding_texts=("", ""),
        about=(),
        mentions=(Mention(0, "john carter", "John Carter", "person", 1, (0,)),),
        statements=(
            Statement(0, "leads", (("subject", "john", "John"), ("object", "team", "team")), 0.7, "sentence", 1),
            Statement(
                0, "also_known_as", (("subject", "john", "John"), ("object", "carter", "Carter")), 0.7, "sentence", 2
            ),
        ),
        links=(),
    )
    found = [
        EntityMention(0, "john carter", "John Carter", 1, (0,), "person", 0.9),
        EntityMention(0, "john", "John", 2, (1, 2), "person", 0.8),
        EntityMention(1, "carter", "Carter", 1, (3,), "thing", 0.5),
        EntityMention(1, "the cloud diary", "The Cloud diary", 1, (3,), "thing", 0.5),
        EntityMention(1, "cloud diary", "Cloud diary", 2, (3,), "concept", 0.5),
    ]
    made = contribution(prepared, at_angles(0, 90), entities=found)
    assert [(edge.chunk, edge.name, edge.count, edge.entity_type) for edge in made.mentions if edge.entity_type] == [
        (0, "john carter", 3, "person"),
        (1, "cloud diary", 2, "concept"),
        (1, "john carter", 1, "person"),
    ]
    assert [(node.predicate, [role.name for role in node.roles]) for node in made.statements] == [
        ("leads", ["john carter", "team"])
    ]
    assert made.statements[0].roles[0].surface == "John"
