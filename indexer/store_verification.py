"""Verification: compares the stores with their checksums, and the text tables with the newest graph snapshot."""

import hashlib
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from indexer.errors import DamagedStore, IncompatibleGeneration
from indexer.generation_folders import Generation, current_generation, damaged_manifests
from indexer.graph.snapshots import (
    GraphSnapshot,
    damaged_snapshots,
    latest_snapshot,
    newest_intact_snapshot,
    read_graph,
)
from indexer.graph.tables import DESCRIBED, NODES, GraphTables
from indexer.integrity.files import Damage, damage_advice, damaged_tables
from indexer.read.lance_reader import LanceReader, LanceSnapshot
from indexer.schema import newest_mark
from schemas.ids import DocumentKey
from schemas.orders import MOST_DOCUMENTS

ROWS_ADVICE = "'thalweg verify --repair --store text' has the worker make the stores again from the log, beside these."
SHOWN = 20
POLL_SECONDS = 0.25
WEIGHT_DECIMALS = 4
BATCH_ROWS = 10_000
DIGESTED = tuple(name for name in DESCRIBED if name != "document_names")  # links have what these hold


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result: `ok` means complete, without differences and without damage.

    `complete`: the graph snapshot includes everything that the text does, and no commit is under way; else the two are
    not compared, as what differs may be on its way. `uncommitted`: documents of that commit. `damage`: files and rows
    that do not match their checksums, and `advice` how to repair them; with damaged rows nothing is compared, and the
    digest is empty.
    `documents_that_differ`: as many as one repair takes, and one more; `graph_differs`: in what belongs to no document.
    `digest` depends on content alone: equal documents give an equal digest, whatever their order, offsets or times.
    """

    generation: str
    ok: bool
    complete: bool
    documents: int = 0
    passages: int = 0
    chunks: int = 0
    graph: dict[str, int] = {}
    differences: list[str] = []
    difference_count: int = 0
    stale_rows: int = 0
    graph_position: int = -1
    graph_expected: int = -1
    digest: str = ""
    digests: dict[str, str] = {}
    uncommitted: int = 0
    damage: list[str] = []
    advice: str = ""
    documents_that_differ: list[str] = []
    graph_differs: bool = False

    def lines(self) -> Iterator[str]:
        """The report for a person."""
        yield from _named("damaged", self.damage[:SHOWN], len(self.damage))
        if self.advice:
            yield self.advice
        if self.digest:
            yield from self._compared()

    def _compared(self) -> Iterator[str]:
        counts = ", ".join(f"{count} {name}" for name, count in self.graph.items())
        yield f"text   {self.documents} documents, {self.passages} passages, {self.chunks} chunks"
        yield f"graph  {counts}"
        if self.stale_rows:
            yield f"{self.stale_rows} rows of replaced revisions wait to be removed; no search shows them"
        if self.uncommitted:
            yield f"a commit of {self.uncommitted} documents is not finished; only a running worker finishes it"
        if (behind := self.graph_expected - self.graph_position) > 0:
            yield f"the newest graph snapshot is {behind} records behind the text"
        yield from _named("differs", self.differences, self.difference_count)
        if self.is_wrong or self.complete:
            yield f"{'equal' if self.ok else 'NOT equal'}; digest {self.digest}"
        else:
            yield "not complete: text and graph could not be compared yet; try a longer --wait while a worker runs"

    @property
    def is_wrong(self) -> bool:
        """Whether anything differs or is damaged, also where it is not complete."""
        return bool(self.differences or self.damage)


def _named(what: str, shown: Sequence[str], count: int) -> Iterator[str]:
    yield from (f"{what}: {each}" for each in shown)
    if count > len(shown):
        yield f"... and {count - len(shown)} more"


def verify_when_complete(data_dir: Path, wait_seconds: float) -> VerifyReport:
    """Verify the current generation as soon as a graph snapshot includes everything that the text does.

    After `wait_seconds`, and at once where something is damaged, the report is not complete. Raises
    IncompatibleGeneration where there are no stores yet.

    1. compare every file and every row with its checksum
    2. wait for the snapshot
    3. compare the stores; the graph's snapshot is chosen first, so that the text holds all that it does
    """
    generation = current_generation(data_dir)
    if generation is None:
        raise IncompatibleGeneration(f"There are no stores in {data_dir} yet: start a worker on it with 'thalweg up'.")
    damage = all_damage(generation)  # 1
    try:
        reader = LanceReader.open(generation)
        if not damage:
            reader.snapshot().require_intact_rows()
    except DamagedStore as error:
        return _not_compared(generation, damage, error)
    deadline = time.monotonic() + (0.0 if damage else wait_seconds)
    while True:
        is_late = time.monotonic() >= deadline
        if is_late or _is_complete(generation, reader.snapshot(), latest_snapshot(generation.snapshots_dir)):  # 2
            intact = newest_intact_snapshot(generation.snapshots_dir)
            text = reader.snapshot()
            if is_late or _is_complete(generation, text, intact):
                return verify(generation, text, intact, damage)  # 3
        time.sleep(POLL_SECONDS)


def _position(snapshot: GraphSnapshot | None) -> int:
    return snapshot.graph_position if snapshot is not None else -1


def _is_complete(generation: Generation, text: LanceSnapshot, snapshot: GraphSnapshot | None) -> bool:
    """Whether a snapshot of the graph, older than that of the text, has the same content."""
    has_all = _position(snapshot) >= newest_mark(text.positions) and not generation.incomplete_graph_dir.exists()
    return has_all and not text.uncommitted_documents()


def damage_of(generation: Generation) -> Iterator[list[Damage]]:
    """All damage in a generation, in steps that read some files each."""
    yield [Damage(*each) for each in damaged_manifests(generation)]
    yield from damaged_tables(generation)
    yield from ([each] for each in damaged_snapshots(generation.snapshots_dir))


def all_damage(generation: Generation) -> list[Damage]:
    return [damage for step in damage_of(generation) for damage in step]


def verify(
    generation: Generation, text: LanceSnapshot, snapshot: GraphSnapshot | None, damage: Sequence[Damage] = ()
) -> VerifyReport:
    """Compare the text tables with a graph snapshot; None is the empty graph. `damage` goes into the report."""
    rows = text.content_rows()
    is_complete, uncommitted = _is_complete(generation, text, snapshot), text.uncommitted_documents()
    revisions = {row["key"]: row["revision"] for row in rows.documents.to_pylist()}
    passages, stale_passages = _current(rows.passages, revisions)
    chunks, stale_chunks = _current(rows.chunks, revisions)
    graph = read_graph(generation.snapshots_dir, snapshot) if snapshot is not None else None
    found = list(_text_differences(rows.documents, chunks, passages))
    found += _graph_differences(graph, revisions, chunks) if is_complete else ()
    differences = [each.what for each in found]
    documents = rows.documents.drop_columns(["version"])
    digests = {
        "text": _digest([*_tagged("document", documents), *_rows("passage", passages), *_rows("chunk", chunks)]),
        "graph": graph_digest(graph) if graph is not None else _digest([]),
    }
    return VerifyReport(
        generation=generation.name,
        ok=is_complete and not differences and not damage,
        complete=is_complete,
        documents=len(revisions),
        passages=len(passages),
        chunks=len(chunks),
        graph=_counts(graph),
        differences=differences[:SHOWN],
        difference_count=len(differences),
        stale_rows=stale_passages + stale_chunks,
        graph_position=_position(snapshot),
        graph_expected=newest_mark(text.positions),
        digest=_digest([[digests["text"], digests["graph"]]]),
        digests=digests,
        uncommitted=uncommitted,
        damage=[str(each) for each in damage],
        advice=damage_advice(damage) if damage else "",
        documents_that_differ=list(dict.fromkeys(each.key for each in found if each.key))[: MOST_DOCUMENTS + 1],
        graph_differs=any(each.key is None for each in found),
    )


def _not_compared(generation: Generation, damage: Sequence[Damage], error: DamagedStore) -> VerifyReport:
    """Damaged files are found by the worker, too; of rows in files that are as they were recorded it does not know."""
    return VerifyReport(
        generation=generation.name,
        ok=False,
        complete=False,
        damage=[str(each) for each in damage] or [str(error)],
        advice=damage_advice(damage) if damage else ROWS_ADVICE,
    )


def _current(table: pa.Table, revisions: Mapping[str, str]) -> tuple[list[dict[str, Any]], int]:
    """(rows of their document's current revision, number of the others)."""
    rows = table.to_pylist()
    current = [row for row in rows if revisions.get(row["key"]) == row["revision"]]
    return current, len(rows) - len(current)


class _Difference(NamedTuple):
    """`key` is the document's, None where it is in what belongs to none."""

    key: str | None
    what: str


def _text_differences(
    documents: pa.Table, chunks: list[dict[str, Any]], passages: list[dict[str, Any]]
) -> Iterator[_Difference]:
    for key, count in Counter(documents["key"].to_pylist()).items():
        if count > 1:
            yield _Difference(key, f"{key} has {count} rows in the documents")
    for name, rows in (("chunk", chunks), ("passage", passages)):
        for (key, identifier), count in Counter((row["key"], row["id"]) for row in rows).items():
            if count > 1:
                yield _Difference(key, f"{name} {identifier} of {key} is there {count} times")
        counted = Counter(row["key"] for row in rows)
        for row in documents.to_pylist():
            if row[f"{name}s"] != counted[row["key"]]:
                wanted, there = row[f"{name}s"], counted[row["key"]]
                yield _Difference(row["key"], f"{row['key']} should have {wanted} {name}s and has {there}")


def _graph_differences(
    graph: GraphTables | None, revisions: Mapping[str, str], chunks: list[dict[str, Any]]
) -> Iterator[_Difference]:
    if graph is None:
        if revisions:
            yield _Difference(None, f"{len(revisions)} documents in the text and no graph snapshot")
        return
    rows = graph.documents.select(["collection", "document_id", "revision"]).to_pylist()
    keys = [f"{row['collection']}/{row['document_id']}" for row in rows]
    in_graph = {key: row["revision"] for key, row in zip(keys, rows, strict=True)}
    for key in sorted(revisions.keys() | in_graph.keys()):
        if revisions.get(key) != in_graph.get(key):
            there = f"{key} has revision {revisions.get(key)} in the text and {in_graph.get(key)} in the graph"
            yield _Difference(key, there)
    text_chunks = {(row["key"], row["id"]) for row in chunks}
    graph_chunks = {
        (keys[document], identifier)
        for document, identifier in zip(graph.documents_of("chunks").tolist(), graph.ids("chunks"), strict=True)
    }
    for key, identifier in sorted(text_chunks ^ graph_chunks):
        where = "text" if (key, identifier) in text_chunks else "graph"
        yield _Difference(key, f"chunk {identifier} of {key} is only in the {where}")
    for name in ("documents", "sections", "chunks", "entities", "statements"):
        identifiers = graph.ids(name)
        if len(identifiers) != len(set(identifiers)):
            yield _Difference(None, f"{len(identifiers) - len(set(identifiers))} {name} are in the graph twice")


def graph_digest(graph: GraphTables) -> str:
    """32 hex digits of a graph's content, whatever the order of its rows."""
    return _digest(row for name in DIGESTED for part in graph.with_ids(name) for row in _tagged(name, part))


def document_digests(
    graph: GraphTables, keys: Collection[DocumentKey], without_edges: Collection[str] = ()
) -> dict[DocumentKey, tuple[str, str]]:
    """(revision, digest) of what the graph holds of each of these documents that it has: its nodes, and the edges that
    lead from them. Edges between chunks are left out in the collections `without_edges`."""
    rows = graph.documents.select(["collection", "document_id", "revision"]).to_pylist()
    found = [DocumentKey(row["collection"], row["document_id"]) for row in rows]
    wanted = np.array([number for number, key in enumerate(found) if key in keys], dtype=np.int32)
    unlinked = np.array([number for number in wanted if found[number].collection in without_edges], dtype=np.int32)
    totals = dict.fromkeys(wanted.tolist(), 0)
    for name in DIGESTED:
        if name in NODES and NODES[name].is_shared:  # belongs to no document
            continue
        owners = graph.documents_of(name)
        chosen = np.isin(owners, wanted)
        if name == "chunk_edges":
            chosen &= ~np.isin(owners, unlinked)
        part = replace(graph, **{name: graph.table(name).filter(pa.array(chosen))})
        tagged = (row for batch in part.with_ids(name) for row in _tagged(name, batch))
        for owner, row in zip(owners[chosen].tolist(), tagged, strict=True):
            totals[owner] += _number(row)
    return {found[number]: (rows[number]["revision"], _sum_digest(total)) for number, total in totals.items()}


def _rows(name: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Any]]:
    return ([name, *sorted(row.items())] for row in rows)


def _tagged(name: str, table: pa.Table) -> Iterator[list[Any]]:
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        for row in batch.to_pylist():
            yield [name, *sorted((column, _rounded(value)) for column, value in row.items())]


def _rounded(value: Any) -> Any:
    return round(value, WEIGHT_DECIMALS) if isinstance(value, float) else value


def _digest(rows: Iterable[list[Any]]) -> str:
    """32 hex digits of the rows as a multiset: the sum of their SHA-256, modulo 2^256, in the memory of one row."""
    return _sum_digest(sum(map(_number, rows)))


def _number(row: list[Any]) -> int:
    return int.from_bytes(hashlib.sha256(msgspec.json.encode(row)).digest(), "big")


def _sum_digest(total: int) -> str:
    return hashlib.sha256((total % (1 << 256)).to_bytes(32, "big")).hexdigest()[:32]


def _counts(graph: GraphTables | None) -> dict[str, int]:
    if graph is None:
        return {}
    counts = graph.counts()
    return {name: counts[name] for name in DIGESTED}
