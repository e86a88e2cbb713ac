"""Documents made up for the graph store, and what a store shows of them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from indexer.generations import Generation
from indexer.read.kuzu import GraphTables, read_graph
from indexer.verify import graph_digest
from indexer.write.kuzu import GraphWriter
from schemas.graph_delta import (
    AboutEdge,
    ChunkEdge,
    ChunkNode,
    Contribution,
    LinkEdge,
    MentionEdge,
    SectionNode,
)
from schemas.ids import DocumentKey, chunk_id, passage_id, section_id
from tests.statements import statement

Change = tuple[DocumentKey, Contribution | None]
Batch = list[Change]

CHUNKS = 4


def generation_in(folder: Path) -> Generation:
    generation = Generation(folder, "g0001")
    generation.graph_path.parent.mkdir(parents=True, exist_ok=True)
    return generation


def key(number: int) -> DocumentKey:
    return DocumentKey("tales", f"document {number}")


def document(number: int, revision: int = 0) -> Change:
    """A document of four chunks in two sections; the second half of them, and all facts, change with the revision."""
    name = key(number)
    headings = (["First"], ["First", "Second"])
    texts = [f"text {at}" if at < CHUNKS // 2 else f"text {at} of revision {revision}" for at in range(CHUNKS)]
    chunks = [
        ChunkNode(
            chunk_id(name, headings[at // 2], text, 0), passage_id(name, headings[at // 2], text, 0), at // 2, at // 2
        )
        for at, text in enumerate(texts)
    ]
    subject, wanted = f"entity {number % 3}", f"entity {number % 5 + revision}"
    roles = [("subject", subject.title()), ("object", wanted.title()), ("date", f"Year {revision}")]
    return name, Contribution(
        collection=name.collection,
        document_id=name.document_id,
        revision=f"{number}-{revision}",
        title=f"Document {number}",
        sections=[
            SectionNode(section_id(name, headings[0], 0), "First", 1, -1),
            SectionNode(section_id(name, headings[1], 0), "Second", 2, 0),
        ],
        chunks=chunks,
        about=[AboutEdge(f"document {number}", f"Document {number}", 1.0)],
        mentions=[
            MentionEdge(0, subject, subject.title(), "phrase", 2, [0, 3]),
            MentionEdge(3, wanted, wanted.upper(), "phrase", 1, [7 + revision]),
            MentionEdge(1, f"only in document {number}", "Only", "phrase", 1, []),
        ],
        statements=[statement(chunks, 2, "requires", roles, extractor="pattern", confidence=0.5, sentence=5)],
        edges=[ChunkEdge("next_chunk", at, at + 1, 0.85) for at in range(CHUNKS - 1)]
        + [ChunkEdge("similar_to", 0, 3, 0.8), ChunkEdge("related_to", 3, 1, 0.6)],
        links=[LinkEdge(1, "tales", f"document {number + 1}", 1.0)],
    )


def withdrawn(number: int) -> Change:
    return key(number), None


def tables_of(writer: GraphWriter, generation: Generation) -> GraphTables:
    """What a reader sees after a snapshot made now."""
    writer.collect_orphans()
    snapshot = writer.snapshot(generation.snapshots_dir)
    return read_graph(generation.snapshots_dir / snapshot.name)


def digest_of(writer: GraphWriter, generation: Generation) -> str:
    return graph_digest(tables_of(writer, generation))


def digest_after(folder: Path, batches: Iterable[Sequence[Change]]) -> str:
    """The digest of a new graph, in a folder of its own, that was given nothing but these batches."""
    generation = generation_in(folder)
    writer = GraphWriter.open(generation)
    try:
        for position, batch in enumerate(batches):
            writer.apply(batch, position)
        return digest_of(writer, generation)
    finally:
        writer.close()


def story() -> list[Batch]:
    """Five batches: new documents, replaced ones, withdrawn ones, and some that come back."""
    return [
        [document(number) for number in range(30)],
        [document(number, revision=1) for number in range(0, 30, 2)],
        [withdrawn(3), document(4, revision=2), withdrawn(30)],
        [document(number, revision=3) for number in range(25)],
        [document(3, revision=1), withdrawn(0), document(31)],
    ]
