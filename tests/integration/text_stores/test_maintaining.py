"""Maintenance on real tables: new rows get into the indexes, files become few, old versions go."""

import time

from indexer.generation_folders import Generation
from indexer.schema import StoredPosition
from indexer.write.lance_maintenance import MaintenanceParameters
from indexer.write.lance_writer import LanceWriter
from query_api.index.text.text_snapshot import TextReader
from schemas.provenance import Retrieval
from tests.support.fakes.usage import made_feedback, made_retrieval
from tests.support.fixtures.text_rows import DIMENSION, document


def test_many_small_commits_end_in_few_files_and_full_indexes(generation: Generation) -> None:
    writer = LanceWriter.open(generation, DIMENSION, MaintenanceParameters(commits=10, busy_share=1e9))
    for number in range(12):
        writer.replace([document(f"d{number}", "River. Sea")])
        writer.store_positions({0: StoredPosition(number, number)})
    before = writer.maintain()
    while writer.maintain().optimised:
        pass
    after = writer.maintain()
    assert before.fragments["documents"] == 12
    assert after.fragments == {
        "chunks": 1,
        "passages": 1,
        "documents": 1,
        "positions": 1,
        "retrievals": 0,
        "feedback": 0,
    }
    assert set(after.unindexed.values()) == {0}
    assert TextReader.open(generation).snapshot().counts()["chunks"] == 24


def test_steady_updates_make_few_files_and_keep_readers_versions(generation: Generation) -> None:
    """Whatever the clock says: the last 24 commits of a table stay, and a reader is at one of the last ones."""
    parameters = MaintenanceParameters(
        commits=32, fragments=12, kept_versions=24, least_kept_seconds=0.05, busy_share=1e9, unindexed_rows=10**6
    )
    writer = LanceWriter.open(generation, DIMENSION, parameters)
    writer.replace([document(f"d{number}", "River. Sea") for number in range(10)])
    reader = TextReader.open(generation)
    first = reader.snapshot()
    most = 0
    for number in range(70):
        writer.replace([document(f"d{number % 10}", f"River {number}. Sea")])
        writer.store_positions({0: StoredPosition(number, number)})
        writer.maintain()
        most = max(most, sum(1 for path in generation.lance_dir.rglob("*") if path.is_file()))
        if number % 5 == 4:
            held = reader.snapshot()
            assert held.is_kept()
            assert held.tables.base.content_rows().documents.num_rows == 10
            reader.refresh()
    assert most < 700, "kept for fifteen minutes it would be 20 for each commit: 1,400"
    assert not first.is_kept()
    assert first.index.revision(document("d1", "").row.key) is not None, "what is in memory is still there"


def test_quiet_writer_continues_after_its_versions_were_removed(generation: Generation) -> None:
    def write(writer: LanceWriter, number: int) -> Retrieval:
        retrieval = made_retrieval(chunk_ids=["c"])
        writer.add_retrievals([(retrieval.retrieval_id, retrieval)])
        writer.put_feedback([(made_feedback(retrieval, "c", 1), number)])
        writer.replace([document(f"d{number}", "River. Sea")])
        writer.store_positions({0: StoredPosition(number, number)})
        return retrieval

    before = LanceWriter.open(generation, DIMENSION)
    for number in range(3):
        write(before, number)
    before.close()
    parameters = MaintenanceParameters(busy_share=1e9, kept_version_seconds=0.2, least_kept_seconds=0.02)
    writer = LanceWriter.open(generation, DIMENSION, parameters)
    seen = set((generation.lance_dir / "retrievals.lance" / "_versions").glob("*.manifest"))
    deadline = time.monotonic() + 30
    while any(manifest.exists() for manifest in seen):
        assert time.monotonic() < deadline
        writer.maintain()

    newest = write(writer, 3)

    snapshot = TextReader.open(generation).snapshot()
    assert snapshot.retrieval(newest.retrieval_id) == newest
    assert len(snapshot.usage.feedback_on_chunks(["c"])) == 4
    assert snapshot.counts()["chunks"] == 8
    assert writer.positions() == {0: StoredPosition(3, 3)}
