"""A data directory as a worker leaves it, single bytes of its files changed, and what is then read from it."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import EXTRACTOR_VERSION, prepare
from indexer.embedding.encoder import HashingEncoder, text_hash
from indexer.errors import DamagedStore, IncompatibleGeneration, TransientStoreError
from indexer.generation_folders import Generation, open_generation
from indexer.graph.snapshots import newest_intact_snapshot, published_snapshots, read_graph
from indexer.graph.store import GraphStore
from indexer.linking import contribution
from indexer.read.arrow_folders import MANIFEST as SNAPSHOT_MANIFEST
from indexer.read.rows import ChunkSpan
from indexer.schema import DocumentRow, StoredPosition
from indexer.store_verification import all_damage, graph_digest, verify_when_complete
from indexer.write.lance_maintenance import MaintenanceParameters
from indexer.write.lance_rows import IndexedRows
from indexer.write.lance_writer import LanceWriter
from query_api.index.text.text_snapshot import TextReader, TextSnapshot
from schemas.events import DocumentUpsert
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey
from schemas.provenance import Retrieval
from tests.support.fixtures.manifest import MANIFEST as ANY_MANIFEST

QUESTIONS = ("river banks", "harbour of the north", "who measured the tide")
VERIFIED = 3  # changes of each file that 'verify' looks at as a whole; it begins with what finds the others
REFUSED = (DamagedStore, IncompatibleGeneration, TransientStoreError)
BUSY = MaintenanceParameters(commits=4, fragments=3, busy_share=1e9, idle_seconds=0.0)
MANIFEST = msgspec.structs.replace(
    ANY_MANIFEST, generation="g0001", embedding_digest=HashingEncoder.digest, extractor=EXTRACTOR_VERSION
)


def written_document(number: int, offset: int, edition: int = 0) -> tuple[IndexedRows, Contribution]:
    """A document's rows and its contribution, as the worker makes them."""
    content = (
        f"# River {number}\n\nThe river {number} has banks, edition {edition}. Ada Lovelace measured the tide.\n\n"
        f"## Harbour\n\nThe Harbour of the North lies at [its mouth](river-{number + 1}.md). It holds {number} ships.\n"
    )
    key = DocumentKey("waters", f"river-{number}.md")
    upsert = DocumentUpsert(key=key, content=content.encode(), content_type="text/markdown", metadata={"n": number})
    made = prepare(upsert, ChunkingParameters())
    vectors = HashingEncoder().encode(made.embedding_texts)
    row = DocumentRow.from_prepared(
        made, version=None, partition=0, offset=offset, timestamp_ms=1_700_000_000_000 + offset
    )
    hashes = [text_hash(text) for text in made.embedding_texts]
    return IndexedRows(row, made, vectors, hashes), contribution(made, vectors)


def make_stores(data_dir: Path, documents: int = 24) -> Generation:
    """Stores with everything in them: replaced documents, several versions, indexes, two snapshots, retrievals."""
    generation = open_generation(data_dir, MANIFEST)
    writer = LanceWriter.open(generation, HashingEncoder.dimension, BUSY)
    graph = GraphStore.open(generation)
    offset = 0
    for edition in range(3):
        for start in range(0, documents, 8):
            made = [
                written_document(number, offset + number, edition)
                for number in range(start, min(start + 8, documents))
                if number % (edition + 1) == 0
            ]
            writer.replace([rows for rows, _ in made])
            graph.apply([(rows.row.key, contributed) for rows, contributed in made], offset)
            writer.store_positions({0: StoredPosition(offset + documents, offset)})
            offset += documents
            writer.maintain()
        graph.snapshot()
    writer.add_retrievals([(f"r_{number}", _retrieval(number)) for number in range(5)])
    writer.close()
    return generation


def _retrieval(number: int) -> Retrieval:
    return Retrieval(
        retrieval_id=f"r_{number}",
        query=f"question {number}",
        collection=None,
        mode="hybrid",
        at_ms=number,
        snapshot={},
        parameters={},
        hits=[],
    )


@contextmanager
def changed(file: Path, offset: int, flipped: int) -> Iterator[None]:
    """One byte of the file is another one, by the bits that `flipped` has, until the end of the block."""
    before = file.read_bytes()
    file.write_bytes(before[:offset] + bytes([before[offset] ^ flipped]) + before[offset + 1 :])
    try:
        yield
    finally:
        file.write_bytes(before)


@contextmanager
def spoilt(file: Path, how: str) -> Iterator[None]:
    """The file is cut in its middle, or all zeros, until the end of the block."""
    before = file.read_bytes()
    file.write_bytes(before[: len(before) // 2] if how == "cut" else bytes(len(before)))
    try:
        yield
    finally:
        file.write_bytes(before)


def kinds_of(generation: Generation) -> dict[str, list[Path]]:
    """The files of a data directory by what they are."""
    root = generation.root
    kinds: dict[str, list[Path]] = {}
    for file in sorted(root.rglob("*")):
        if not file.is_file() or file.name == "lock":
            continue
        parts = file.relative_to(root).parts
        if parts[0] == "lance" and len(parts) > 2:
            kind = "lance " + ("hint" if file.suffix == ".json" else parts[2].strip("_"))
        elif parts[0] == "lance":
            kind = "lance checksums"
        elif parts[0] == "snapshots":
            kind = "snapshot manifests" if file.name == SNAPSHOT_MANIFEST else "snapshots"
        else:
            kind = "manifest"
        kinds.setdefault(kind, []).append(file)
    return kinds


def is_live(file: Path) -> bool:
    """Whether the newest state is read from it: of manifests the newest one; of transactions none."""
    if file.suffix == ".manifest":
        return file == min(file.parent.iterdir())
    return file.suffix != ".txn"


def text_answers(snapshot: TextSnapshot) -> dict[str, Any]:
    """Whatever the query service reads from the text stores, from memory and from the tables."""
    encoder = HashingEncoder()
    vectors = encoder.encode(QUESTIONS)
    documents, _ = snapshot.list_documents(None, None, 1_000)
    keys = [row.key for row in documents]
    words = [snapshot.keyword_search(question, 20) for question in QUESTIONS]
    near = [snapshot.vector_search(vector, 20) for vector in vectors]
    chunk_ids = [hit.chunk_id for hits in near for hit in hits]
    passage_ids = [hit.passage_id for hits in words for hit in hits]
    return {
        "documents": documents,
        "rows": snapshot.documents([*keys, DocumentKey("waters", "nowhere")]),
        "words": words,
        "near": near,
        "passages": snapshot.passages(passage_ids),
        "chunks": snapshot.chunks(chunk_ids),
        "of passages": snapshot.chunks_of_passages(passage_ids),
        "spans": snapshot.chunks_in([ChunkSpan(key, 0, 9) for key in keys[:5]]),
        "vectors": {name: vector.tobytes() for name, vector in snapshot.vectors(chunk_ids[:5]).items()},
        "retrievals": [snapshot.retrieval(f"r_{number}") for number in range(5)],
        "positions": snapshot.positions,
    }


def snapshot_digests(generation: Generation) -> dict[int, str]:
    """The digest of each snapshot by the position it holds: any of these is an answer that the log makes whole."""
    return {
        snapshot.graph_position: graph_digest(read_graph(generation.snapshots_dir, snapshot))
        for snapshot in published_snapshots(generation.snapshots_dir)
    }


def read_newest_graph(generation: Generation) -> tuple[int, str]:
    """What a query service that opens the graph now begins with."""
    snapshot = newest_intact_snapshot(generation.snapshots_dir)
    if snapshot is None:
        return -1, ""
    tables = read_graph(generation.snapshots_dir, snapshot)
    return snapshot.graph_position, graph_digest(tables)


@dataclass
class Tally:
    """What became of the changes to files of one kind. `told` counts those found at the start or else by a look at all
    files; `verified` those that the whole of 'verify' and a look at all files were asked about."""

    files: int = 0
    changes: int = 0
    found_at_open: int = 0
    found_at_read: int = 0
    told: int = 0
    found_by_scrub: int = 0
    verified: int = 0
    found_by_verify: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def all_told(self) -> bool:
        return self.told == self.changes and self.found_by_scrub == self.found_by_verify == self.verified


class Experiment:
    """Changes one byte at a time, and looks at what is found and what is answered."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._text = text_answers(TextReader.open(generation).snapshot())
        self._graphs = snapshot_digests(generation)

    def on(self, kind: str, file: Path, changes: int, random: random.Random, tally: Tally) -> None:
        """So many changes of single bytes, each alone and put back."""
        tally.files += 1
        held = TextReader.open(self._generation).snapshot()
        size = file.stat().st_size
        for number in range(changes if size else 0):
            offset, flipped = random.randrange(size), random.randrange(1, 256)
            with changed(file, offset, flipped):
                self._look(f"{file.relative_to(self._generation.root)} at {offset} ^ {flipped}", kind, held, tally)
                if number < VERIFIED:
                    self._verify(tally)
            tally.changes += 1

    def spoil(self, kind: str, file: Path, tally: Tally) -> None:
        """The file cut, and all zeros."""
        held = TextReader.open(self._generation).snapshot()
        for how in ("cut", "zeroed") if file.stat().st_size else ():
            with spoilt(file, how):
                self._look(f"{file.relative_to(self._generation.root)} {how}", kind, held, tally)
                self._verify(tally)
            tally.changes += 1

    def _look(self, what: str, kind: str, held: TextSnapshot, tally: Tally) -> None:
        told = False
        try:
            if text_answers(TextReader.open(self._generation).snapshot()) != self._text:
                tally.wrong.append(f"opened with {what}")
        except REFUSED:
            tally.found_at_open += 1
            told = True
        if kind.startswith("lance"):
            try:
                if text_answers(held) != self._text:
                    tally.wrong.append(f"read beside {what}")
            except REFUSED:
                tally.found_at_read += 1
        if kind.startswith("snap"):
            position, digest = read_newest_graph(self._generation)
            if self._graphs.get(position) != digest:
                tally.wrong.append(f"graph with {what}")
            tally.found_at_read += position != max(self._graphs)
        tally.told += told or bool(all_damage(self._generation))

    def _verify(self, tally: Tally) -> None:
        tally.verified += 1
        tally.found_by_scrub += bool(all_damage(self._generation))
        try:
            tally.found_by_verify += not verify_when_complete(self._generation.data_dir, 0).ok
        except REFUSED:
            tally.found_by_verify += 1
