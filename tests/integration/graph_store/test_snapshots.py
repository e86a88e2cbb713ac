"""Snapshots of the graph: published as a whole, checked when opened, kept for a while; and compaction from them."""

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from indexer.errors import DamagedStore
from indexer.generations import Generation
from indexer.graph import publication
from indexer.graph.snapshots import (
    MANIFEST,
    damaged_snapshots,
    latest_snapshot,
    newest_intact_snapshot,
    published_snapshots,
    read_graph,
    snapshot_named,
)
from indexer.graph.tables import TABLES
from indexer.write import kuzu_compaction, kuzu_export
from indexer.write.kuzu import GraphWriter
from query_api.index.generation import LiveGraph
from query_api.index.stores import Stores
from streams.metrics import WorkerMetrics
from streams.runtime.progress import Progress
from streams.runtime.snapshots import Snapshots, SnapshotSchedule
from streams.runtime.store_thread import StoreThread
from tests.support.fixtures.graph import digest_after, digest_of, document, story, tables_of, withdrawn

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "zeroed": lambda content: bytes(len(content)),
    "one byte flipped": lambda content: content[:-30] + bytes([content[-30] ^ 1]) + content[-29:],
}


def test_a_snapshot_says_what_it_holds(writer: GraphWriter, generation: Generation) -> None:
    writer.apply([document(number) for number in range(9)], 12)

    made = writer.snapshot()

    folder = generation.snapshots_dir / made.name
    assert {path.name for path in folder.iterdir()} == {MANIFEST, *(f"{name}.arrow" for name in TABLES)}
    assert (made.graph_position, made.rows("documents"), made.rows("chunks"), made.unreachable) == (12, 9, 36, {})
    assert made.content_bytes == sum(path.stat().st_size for path in folder.glob("*.arrow"))
    assert [made] == published_snapshots(generation.snapshots_dir)
    assert snapshot_named(generation.snapshots_dir, made.name) == made
    with pytest.raises(FileNotFoundError, match="no longer there"):
        snapshot_named(generation.snapshots_dir, "000000000012-1")


def test_as_many_snapshots_are_kept_as_are_chosen(generation: Generation) -> None:
    writer = GraphWriter.open(generation, kept_snapshots=5)
    for position in range(7):
        writer.apply([document(position)], position)
        writer.snapshot()
    writer.close()
    assert [each.graph_position for each in published_snapshots(generation.snapshots_dir)] == [6, 5, 4, 3, 2]


def test_what_is_applied_while_a_snapshot_is_exported_is_not_in_it(writer: GraphWriter, generation: Generation) -> None:
    writer.apply([document(1)], 0)
    copy = writer.copy()
    writer.apply([document(2)], 1)

    snapshot = writer.publish(copy)

    assert snapshot.graph_position == 0
    assert read_graph(generation.snapshots_dir, snapshot).documents["document_id"].to_pylist() == ["document 1"]
    assert writer.publish(copy) == snapshot, "publishing may be repeated"


def test_no_range_holds_much_more_than_its_share(
    writer: GraphWriter, generation: Generation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for position, batch in enumerate(story()):
        writer.apply(batch, position)
    whole = digest_of(writer, generation)
    for name, value in (("ROWS_AT_A_TIME", 12), ("FIRST_RANGE", 2), ("SCANS", 10_000)):
        monkeypatch.setattr(kuzu_export, name, value)
    sizes: list[int] = []
    run = kuzu_export._Export._run

    def counted(export: kuzu_export._Export, cypher: str, **parameters: object) -> pa.Table:
        found = run(export, cypher, **parameters)
        sizes.append(found.num_rows)
        return found

    monkeypatch.setattr(kuzu_export._Export, "_run", counted)
    assert digest_of(writer, generation) == whole
    assert max(sizes) <= 4 * 12, "no node here has more than four edges of a kind"
    assert sum(sizes) > 20 * 12


def test_a_range_that_does_not_fit_into_the_buffer_is_halved(
    writer: GraphWriter, generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.apply([document(number) for number in range(20)], 0)
    whole = digest_of(writer, generation)
    run = kuzu_export._Export._run

    def full(export: kuzu_export._Export, cypher: str, **parameters: Any) -> pa.Table:
        if parameters and parameters["until"] - parameters["first"] > 5:
            raise RuntimeError("Buffer manager exception: Unable to allocate memory! The buffer pool is full and ...")
        return run(export, cypher, **parameters)

    monkeypatch.setattr(kuzu_export._Export, "_run", full)
    assert digest_of(writer, generation) == whole


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_told_and_the_snapshot_before_serves(
    damage: str, writer: GraphWriter, generation: Generation
) -> None:
    writer.apply([document(1)], 0)
    before = writer.snapshot()
    writer.apply([document(2)], 1)
    newest = writer.snapshot()
    for path in (generation.snapshots_dir / newest.name).iterdir():
        content = path.read_bytes()
        path.write_bytes(DAMAGES[damage](content))
        found = list(damaged_snapshots(generation.snapshots_dir))
        assert [each.path for each in found] == [f"snapshots/{newest.name}/{path.name}"]
        assert newest_intact_snapshot(generation.snapshots_dir) == before
        if path.name != MANIFEST:
            with pytest.raises(DamagedStore, match=f"{path.name} .* {newest.name}.* snapshot before is read"):
                read_graph(generation.snapshots_dir, newest)
        path.unlink()
        assert newest_intact_snapshot(generation.snapshots_dir) == before
        assert list(damaged_snapshots(generation.snapshots_dir))
        path.write_bytes(content)
    assert newest_intact_snapshot(generation.snapshots_dir) == newest


def test_damaged_snapshots_are_set_aside_and_the_last_is_kept(writer: GraphWriter, generation: Generation) -> None:
    for position in range(3):
        writer.apply([document(position)], position)
        made = writer.snapshot()
        (generation.snapshots_dir / made.name / "chunks.arrow").write_bytes(b"")
        assert [each.what for each in writer.set_aside_damaged()] == ["does not match its checksum"]
        assert published_snapshots(generation.snapshots_dir) == []
        assert list(damaged_snapshots(generation.snapshots_dir)) == []

    intact = writer.snapshot()

    assert published_snapshots(generation.snapshots_dir) == [intact]
    assert sorted(path.name for path in generation.snapshots_dir.iterdir()) == [f".{made.name}.damaged", intact.name]


def test_snapshots_of_an_earlier_version_are_replaced_at_the_first_start(generation: Generation) -> None:
    writer = GraphWriter.open(generation)
    writer.apply([document(1)], 3)
    writer.close()
    generation.snapshots_dir.mkdir(exist_ok=True)
    name = "000000000003-1795421879497"
    for left in (f"{name}.kuzu", f"{name}.json", "LATEST", f".{name}.kuzu.part"):
        (generation.snapshots_dir / left).write_bytes(b'{"name":"x","schema":2}')

    stores = Stores(1_000, "documents")
    assert stores.newest_graph_file(generation) is None
    assert LiveGraph(stores.build_graph(generation, None)).view.position == -1, "the topic's beginning is read"
    assert list(damaged_snapshots(generation.snapshots_dir)) == []

    writer = GraphWriter.open(generation)
    made = writer.snapshot()
    writer.close()
    assert made.graph_position == 3
    assert [path.name for path in generation.snapshots_dir.iterdir()] == [made.name]


def test_what_is_applied_while_it_is_compacted_is_in_the_compacted_graph(
    writer: GraphWriter, generation: Generation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kuzu_compaction, "MAX_SWELLING", 0.0)
    monkeypatch.setattr(kuzu_compaction, "FEW_DOCUMENTS", 2)
    writer.apply([document(number) for number in range(20)], 0)
    copy = writer.copy()
    writer.apply([document(1, revision=1), withdrawn(2)], 1)
    compaction = writer.compaction(copy, writer.publish(copy))
    assert compaction is not None
    writer.apply([document(number, revision=2) for number in range(3, 8)], 2)

    compaction.build()
    writer.apply([document(30)], 3)

    old = generation.graph_path.stat().st_ino
    assert writer.put_in_place(compaction)
    assert generation.graph_path.stat().st_ino != old
    assert writer.position() == 3
    rest = [document(1, revision=1), *(document(number, revision=2) for number in range(3, 8)), document(30)]
    rest += [document(number) for number in (0, *range(8, 20))]
    assert digest_of(writer, generation) == digest_after(tmp_path / "rest", [rest])


def test_a_compaction_that_too_much_comes_in_between_leaves_the_graph_as_it_is(
    writer: GraphWriter, generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kuzu_compaction, "MAX_SWELLING", 0.0)
    monkeypatch.setattr(kuzu_compaction, "MAX_RECORDED_BYTES", 1_000)
    writer.apply([document(1)], 0)
    copy = writer.copy()
    compaction = writer.compaction(copy, writer.publish(copy))
    assert compaction is not None
    compaction.build()
    writer.apply([document(2)], 1)

    assert not writer.put_in_place(compaction)

    assert writer.position() == 1
    assert tables_of(writer, generation).documents.num_rows == 2
    assert not list(generation.graph_path.parent.glob("*fresh*"))


def test_a_full_disk_leaves_no_half_copy_and_no_compaction(
    writer: GraphWriter, generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.apply([document(1)], 0)

    def full(graph: Path, *_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(publication.hashlib, "sha256", lambda: SimpleNamespace(update=full))
        with pytest.raises(OSError, match="No space left"):
            writer.copy()
    assert list(generation.snapshots_dir.iterdir()) == []
    assert kuzu_compaction.needs_compaction(10**9, 10**6, free_bytes=10**9)
    assert not kuzu_compaction.needs_compaction(10**9, 10**6, free_bytes=10**6)


async def test_the_worker_compacts_beside_commits(
    writer: GraphWriter, generation: Generation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kuzu_compaction, "MAX_SWELLING", 0.0)
    metrics, progress = WorkerMetrics(), Progress()
    store, beside = StoreThread("kuzu", metrics, progress), StoreThread("graph snapshots", metrics, progress)
    schedule = SnapshotSchedule(idle_seconds=0.01, min_seconds=0.01, max_seconds=0.01, share=1, pending=False)
    snapshots = Snapshots(writer=writer, thread=store, beside=beside, schedule=schedule, metrics=metrics, newest=None)
    before = generation.graph_path.stat().st_ino
    running = asyncio.create_task(snapshots.run())
    position = 0
    while generation.graph_path.stat().st_ino == before:
        await store.run(writer.apply, [document(position % 40, revision=position // 40)], position)
        position += 1
        schedule.changed()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await snapshots.make()
    store.end()
    beside.end()
    newest = latest_snapshot(generation.snapshots_dir)
    assert newest is not None
    assert newest.graph_position == position - 1
    last = {number % 40: document(number % 40, revision=number // 40) for number in range(position)}
    assert digest_of(writer, generation) == digest_after(tmp_path / "last", [list(last.values())])


@pytest.mark.parametrize(
    ("commits", "swelling", "bound"), [(40, 1.15, 1.3), pytest.param(300, 2.0, 3.0, marks=pytest.mark.nightly)]
)
def test_many_commits_without_a_delete_leave_a_file_bounded_by_its_content(
    commits: int,
    swelling: float,
    bound: float,
    writer: GraphWriter,
    generation: Generation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """45 commits of 550 documents left three times their content before, and the more the more commits."""
    monkeypatch.setattr(kuzu_compaction, "MAX_SWELLING", swelling)
    digest, largest = "", 0
    for commit in range(commits):
        writer.apply([document(number) for number in range(10 * commit, 10 * commit + 10)], commit)
        if commit % 4 == 3:
            digest = digest_of(writer, generation)
        largest = max(largest, generation.graph_path.stat().st_size)
    snapshot = latest_snapshot(generation.snapshots_dir)
    assert snapshot is not None
    assert largest <= bound * (kuzu_compaction.INDEX_BYTES + kuzu_compaction.NEW_FILE_SHARE * snapshot.content_bytes)
    assert digest_of(writer, generation) == digest
