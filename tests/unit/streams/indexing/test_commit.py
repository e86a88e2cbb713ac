"""The numbered commit, story by story, on stores in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from indexer.chunking.splitter import ChunkingParameters
from indexer.errors import DamagedStore
from indexer.write.lance_rows import IndexedRows
from schemas.graph_delta import decode_contribution
from schemas.ids import DocumentKey
from schemas.receipts import NOTHING_DELETED
from streams.errors import StoreFailure
from streams.indexing.batch import split
from streams.indexing.commit import Rewritten
from streams.kafka.records import SourceRecord
from tests.support.fakes.worker import (
    NAMES,
    Bench,
    PowerCut,
    delete,
    disk_full,
    failing_times,
    gap,
    upsert,
    versioned_delete,
)

A = DocumentKey("default", "a")


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


async def test_a_document_ends_up_in_both_stores_with_a_receipt(bench: Bench) -> None:
    await bench.indexer.index([upsert(3, title="Rivers", text="The Rhine is a river.")])
    row = bench.documents.rows[A]
    assert (row.title, row.partition, row.offset, row.chunks, row.live) == ("Rivers", 0, 3, 1, True)
    assert decode_contribution(bench.broker.graph()["default/a"]).title == "Rivers"
    [receipt] = bench.broker.receipts()
    assert (receipt.outcome, receipt.offset, receipt.embedded) == ("indexed", 3, 1)
    assert receipt.revision == row.revision
    assert receipt.entities > 0
    assert bench.documents.stored == {0: (3, 1, 1_003)}
    assert bench.metrics.registry.get_sample_value("thalweg_documents_total", {"outcome": "indexed"}) == 1


async def test_a_receipt_notes_what_could_not_be_read_as_it_was_meant(bench: Bench) -> None:
    await bench.indexer.index(
        [upsert(1, text="---\ntitle: a: b\n---\nThe Rhine."), upsert(2, "default/b", text="The Main.")]
    )
    by_key = {receipt.key: receipt for receipt in bench.broker.receipts()}
    assert by_key["default/a"].outcome == "indexed"
    assert "not plain YAML (line 2" in by_key["default/a"].notes[0]
    assert by_key["default/b"].notes == ()


async def test_misspelt_field_is_noted_in_each_receipt(bench: Bench) -> None:
    misspelt = upsert(1, text="The Rhine.", titel="Rivers", colour="blue")
    await bench.indexer.index([misspelt])
    await bench.indexer.index([replace(misspelt, offset=2)])
    await bench.indexer.index([upsert(3, "default/b", text="", contnet="The Main."), upsert(4, "default/c", text="x")])
    indexed, unchanged, refused, well = bench.broker.receipts()
    note = (
        "Left out, as no document has such a field: 'titel' (is 'title' meant?), 'colour'. What describes a document "
        "goes under 'metadata'."
    )
    assert [(one.outcome, one.notes) for one in (indexed, unchanged)] == [("indexed", (note,)), ("unchanged", (note,))]
    assert (refused.outcome, refused.reason) == ("dead_lettered", "empty_content")
    assert "'contnet' (is 'content' meant?)" in refused.message
    assert well.notes == ()
    assert bench.metrics.registry.get_sample_value("thalweg_unknown_fields_total") == 4


async def test_a_gap_moves_the_position_and_is_neither_indexed_nor_refused(bench: Bench) -> None:
    await bench.indexer.index([upsert(3), gap(5), upsert(0, "default/b", partition=1)])
    assert {partition: stored.offset for partition, stored in bench.documents.stored.items()} == {0: 5, 1: 0}
    await bench.indexer.index([gap(9)])
    assert {partition: stored.offset for partition, stored in bench.documents.stored.items()} == {0: 9, 1: 0}
    assert [receipt.offset for receipt in bench.broker.receipts()] == [3, 0]
    assert bench.broker.topics[NAMES.dead_letters] == []


async def test_an_update_replaces_and_a_tombstone_withdraws(bench: Bench) -> None:
    await bench.indexer.index([upsert(0, text="First words.")])
    first = bench.documents.chunks[A]
    await bench.indexer.index([upsert(1, text="Other words.")])
    assert bench.documents.chunks[A] != first
    await bench.indexer.index([delete(2)])
    assert A not in bench.documents.chunks
    assert not bench.documents.rows[A].live
    assert bench.broker.graph() == {}
    assert bench.broker.outcomes() == ["indexed", "indexed", "deleted"]


async def test_only_the_newest_of_a_batch_is_made_and_each_record_gets_its_receipt(bench: Bench) -> None:
    await bench.indexer.index([upsert(0, text="one"), upsert(1, "default/b", "two"), upsert(2, text="three")])
    assert bench.encoder.encoded == ["b. two", "a. three"]
    receipts = bench.broker.receipts()
    assert [(one.offset, one.outcome, one.superseded_by) for one in receipts] == [
        (0, "superseded", "0:2"),
        (1, "indexed", None),
        (2, "indexed", None),
    ]


async def test_the_delete_of_an_unknown_document_guards_against_a_late_upsert(bench: Bench) -> None:
    await bench.indexer.index([versioned_delete(0, version=7), upsert(1, version=7)])
    await bench.indexer.index([upsert(2, version=6)])
    assert bench.broker.outcomes() == ["deleted", "superseded", "superseded"]
    assert bench.documents.rows[A].version == 7
    assert not bench.documents.rows[A].live


async def test_a_delete_that_meets_no_document_says_so_in_its_receipt(bench: Bench) -> None:
    for record in (delete(0), upsert(1), delete(2), delete(3)):
        await bench.indexer.index([record])
    await bench.indexer.index([upsert(4), delete(5)])
    said = {receipt.offset: receipt.message for receipt in bench.broker.receipts() if receipt.outcome == "deleted"}
    assert said == {0: NOTHING_DELETED, 2: None, 3: NOTHING_DELETED, 5: None}


async def test_delete_without_a_document_leaves_the_graph_alone(bench: Bench) -> None:
    await bench.indexer.index([upsert(0)])
    await bench.indexer.index([delete(1)])
    for record in (delete(2), delete(3, "default/never"), delete(4, "thalweg.canary/0"), versioned_delete(5, 7)):
        await bench.indexer.index([record])
    commits = bench.broker.commits()
    assert [len(commit.in_graph) for commit in commits] == [1, 1, 0, 0, 0, 0]
    assert commits[-1].reached == {0: (5, 1_005)}
    assert bench.documents.stored == {0: (5, 3, 1_005)}, "a graph at 3 has the content of the text"


@pytest.mark.parametrize("call", ["replace", "after replace", "store_positions"])
async def test_delete_after_one_cut_off_by_a_crash_withdraws(call: str) -> None:
    """Compaction has taken the record that was cut off."""
    bench = Bench()
    await bench.indexer.index([upsert(0)])
    bench.documents.failing = failing_times(1, call, PowerCut())
    with pytest.raises(PowerCut):
        await bench.indexer.index([delete(1)])
    bench = bench.restarted()
    await bench.indexer.index([delete(2)])
    assert (bench.documents.rows[A].live, bench.broker.graph()) == (False, {})
    assert bench.documents.stored[0].mark == bench.broker.commits()[-1].offset
    bench.close()


async def test_commit_is_contributed_before_it_is_stored(bench: Bench) -> None:
    bench.documents.failing = failing_times(1, "replace", PowerCut())
    with pytest.raises(PowerCut):
        await bench.indexer.index([upsert(0, text="The Rhine is a river."), upsert(1, "default/b")])
    assert bench.documents.rows == {}
    [commit] = bench.broker.commits()
    assert (sorted(map(str, commit.changes)), commit.reached) == (["default/a", "default/b"], {0: (1, 1_001)})
    change = commit.changes[A]
    assert change.passages is not None
    assert change.passages["text"].to_pylist() == ["The Rhine is a river."]


async def test_what_the_store_refuses_is_taken_back(bench: Bench) -> None:
    """Its rows could be made, so it was contributed."""

    def refuse(documents: Sequence[IndexedRows]) -> None:
        if any(each.row.key == A for each in documents):
            raise ValueError("a bug of the store, met by this document only")

    bench.documents.refusing = refuse
    await bench.indexer.index([upsert(0), upsert(1, "default/b")])
    assert bench.broker.outcomes() == ["dead_lettered", "indexed"]
    assert set(bench.broker.graph()) == {"default/b"}
    assert [commit.void for commit in bench.broker.commits() if commit.void] == [{A}]


async def test_canaries_are_not_counted_as_documents(bench: Bench) -> None:
    await bench.indexer.index([delete(0, "thalweg.canary/0"), delete(1)])
    assert bench.metrics.registry.get_sample_value("thalweg_documents_total", {"outcome": "deleted"}) == 1


async def test_equal_content_only_moves_the_row(bench: Bench) -> None:
    await bench.indexer.index([upsert(0, version=1)])
    await bench.indexer.index([upsert(1, version=2)])
    assert bench.broker.outcomes() == ["indexed", "unchanged"]
    assert (bench.documents.rows[A].offset, bench.documents.rows[A].version) == (1, 2)
    assert len(bench.encoder.encoded) == 1
    [_, commit] = bench.broker.commits()
    assert (commit.in_graph, commit.changes[A].row is not None, commit.changes[A].passages) == ([], True, None)
    assert bench.documents.stored == {0: (1, 1, 1_001)}


async def test_a_text_is_embedded_once_whichever_documents_hold_it(bench: Bench) -> None:
    same = {"title": "T", "text": "The same words."}
    await bench.indexer.index([upsert(0, "default/a", **same), upsert(1, "default/b", **same)])
    await bench.indexer.index([upsert(2, "default/c", **same)])
    assert len(bench.encoder.encoded) == 1
    assert [receipt.embedded for receipt in bench.broker.receipts()] == [1, 0, 0]


async def test_poison_among_good_ones_is_buried_with_its_bytes_and_the_others_are_indexed(bench: Bench) -> None:
    cut_json = SourceRecord(2, 5, 1_005, b"default/x", b'{"id": "x", ', (("origin", b"crawler"),))
    await bench.indexer.index([upsert(0), cut_json, upsert(1, "default/b", "unparsable"), upsert(2, "default/c")])
    assert sorted(key.document_id for key in bench.documents.rows) == ["a", "c"]
    assert bench.broker.topics[NAMES.dead_letters][0][:3] == (b"default/x", b'{"id": "x", ', 2)
    headers = bench.broker.letters()
    assert headers[0]["origin"] == "crawler"
    assert headers[0]["__connect.errors.topic"] == NAMES.documents
    assert headers[0]["__connect.errors.offset"] == "5"
    assert [one["thalweg.reason"] for one in headers] == ["not_json", "unparsable"]
    refused = [one for one in bench.broker.receipts() if one.outcome == "dead_lettered"]
    assert [(one.partition, one.offset, one.reason) for one in refused] == [(0, 1, "unparsable"), (2, 5, "not_json")]
    assert bench.documents.stored == {0: (2, 2, 1_002), 2: (5, 2, 1_005)}


async def test_a_dead_lettered_update_leaves_the_document_as_it_was_also_within_a_batch(bench: Bench) -> None:
    await bench.indexer.index([upsert(0, text="good"), upsert(1, text="unparsable")])
    assert bench.broker.outcomes() == ["indexed", "dead_lettered"]
    assert bench.documents.rows[A].offset == 0
    await bench.indexer.index([upsert(2, text="unparsable too")])
    assert bench.documents.rows[A].offset == 0
    assert bench.documents.rows[A].live


async def test_a_bug_met_by_one_document_does_not_hold_up_the_others_and_tells_nothing_of_it(bench: Bench) -> None:
    await bench.indexer.index([upsert(n, f"default/{n}", "bug secret" if n == 3 else "fine") for n in range(6)])
    assert sorted(key.document_id for key in bench.documents.rows) == ["0", "1", "2", "4", "5"]
    [letter] = bench.broker.letters()
    assert letter["thalweg.reason"] == "failed"
    assert "secret" not in str({name: value for name, value in letter.items() if name != "value"})


async def test_a_text_the_model_cannot_take_buries_its_document_only(bench: Bench) -> None:
    await bench.indexer.index([upsert(n, f"default/{n}", "poison" if n == 1 else "fine") for n in range(4)])
    assert [one.reason for one in bench.broker.receipts()] == [None, "embedding_failed", None, None]


async def test_a_full_disk_is_waited_out(bench: Bench) -> None:
    bench.documents.failing = failing_times(3, "replace", disk_full())
    await bench.indexer.index([upsert(0)])
    assert bench.broker.outcomes() == ["indexed"]
    assert bench.metrics.registry.get_sample_value("thalweg_retries_total", {"target": "lance"}) == 3
    assert not bench.progress.waiting_for


async def test_a_broken_store_stops_the_worker_and_buries_nothing(bench: Bench) -> None:
    bench.documents.failing = failing_times(1, "replace", RuntimeError("the table is corrupt"))
    with pytest.raises(StoreFailure):
        await bench.indexer.index([upsert(0), upsert(1, "default/b")])
    assert bench.broker.letters() == []
    assert bench.broker.receipts() == []


@pytest.mark.parametrize("crash_point", ["replace", "after replace", "store_positions", "after store_positions"])
async def test_a_crash_at_any_point_is_repaired_by_reading_again(crash_point: str) -> None:
    undisturbed = Bench()
    records = [upsert(0), upsert(1, "default/b"), delete(2, "default/b"), upsert(3, text="newer")]
    for record in records:
        await undisturbed.indexer.index([record])
    bench = Bench()
    await bench.indexer.index(records[:2])
    bench.documents.failing = failing_times(1, crash_point, PowerCut())
    with pytest.raises(PowerCut):
        await bench.indexer.index(records[2:])
    bench = bench.restarted()
    await bench.indexer.index(records[2:])
    assert bench.state() == undisturbed.state()
    assert bench.broker.receipts()[-2:] != []
    assert {one.offset for one in bench.broker.receipts()} == {0, 1, 2, 3}
    bench.close()
    undisturbed.close()


async def test_a_record_read_again_after_it_was_done_gets_its_receipt_again(bench: Bench) -> None:
    records = [upsert(0), delete(1, "default/b")]
    await bench.indexer.index(records)
    await bench.indexer.index(records)
    assert bench.broker.outcomes() == ["indexed", "deleted"] * 2
    assert bench.documents.writes == ["replace"]


async def test_a_log_read_again_from_its_start_writes_no_dead_letter_twice(bench: Bench) -> None:
    cut_json = SourceRecord(0, 1, 1_005, b"default/x", b'{"id": "x", ', ())
    records = [upsert(0), cut_json, upsert(2, "default/b", "unparsable")]
    await bench.indexer.index(records)
    await bench.indexer.index(records)
    assert [one["thalweg.reason"] for one in bench.broker.letters()] == ["not_json", "unparsable"]
    assert bench.broker.outcomes()[:3] == ["indexed", "dead_lettered", "dead_lettered"]
    assert bench.broker.outcomes()[3:] == ["indexed", "dead_lettered", "dead_lettered"], "each gets its receipt again"


TEXTS = ("one", "two", "unparsable", None)
events = st.tuples(st.sampled_from("ab"), st.sampled_from(TEXTS), st.none() | st.integers(0, 3))


@settings(deadline=None, max_examples=60)
@given(st.lists(events, min_size=1, max_size=8), st.lists(st.integers(1, 4), max_size=8))
async def test_any_cut_into_batches_leaves_the_same_stores(
    history: list[tuple[str, str | None, int | None]], sizes: list[int]
) -> None:
    records = [
        _record(offset, f"default/{document}", text, version)
        for offset, (document, text, version) in enumerate(history)
    ]
    whole = Bench()
    await whole.indexer.index(records)
    cut = Bench()
    start = 0
    for size in [*sizes, len(records)]:
        if records[start : start + size]:
            await cut.indexer.index(records[start : start + size])
        start += size
    assert cut.state() == whole.state()
    again = cut.restarted()
    await again.indexer.index(records)
    assert again.state() == whole.state()
    again.close()
    whole.close()


def _record(offset: int, key: str, text: str | None, version: int | None) -> SourceRecord:
    if text is not None:
        return upsert(offset, key, text, version=version)
    return delete(offset, key) if version is None else versioned_delete(offset, version, key)


def test_slices_keep_both_bounds_and_a_large_record_is_self_contained() -> None:
    records = [SourceRecord(0, offset, 0, b"", b"x" * size) for offset, size in enumerate([4, 4, 40, 4, 4, 4, 4])]
    cut = [[record.offset for record in part] for part in split(records, max_records=3, max_bytes=12)]
    assert cut == [[0, 1], [2], [3, 4, 5], [6]]


async def test_a_trace_goes_into_the_receipt_of_its_record_and_into_the_log_line(bench: Bench) -> None:
    taken = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    refused = "00-11111111111111111111111111111111-00f067aa0ba902b7-00"
    good, bad = upsert(0), upsert(1, "default/b", content=7)
    records = [
        replace(good, headers=(("traceparent", taken.encode()),)),
        replace(bad, headers=(("traceparent", refused.encode()),)),
        upsert(2, "default/c"),
    ]
    with capture_logs() as logs:
        await bench.indexer.index(records)
    receipts = bench.broker.receipts()
    assert [receipt.traceparent for receipt in receipts] == [taken, refused, None]
    assert [receipt.outcome for receipt in receipts] == ["indexed", "dead_lettered", "indexed"]
    (line,) = [line for line in logs if line["event"] == "indexed"]
    assert line["traces"] == ["1" * 32, "4bf92f3577b34da6a3ce929d0e0e4736"]
    assert bench.broker.letters()[0]["traceparent"] == refused


async def test_ids_that_differ_by_case_or_unicode_form_are_documents_of_their_own(bench: Bench) -> None:
    keys = [
        "default/Guide",
        "default/guide",
        "default/caf\u00e9",
        "default/cafe\u0301",
        "default/a'b\"c",
        "default/a//b",
    ]
    await bench.indexer.index([upsert(offset, key) for offset, key in enumerate(keys)])
    assert bench.broker.outcomes() == ["indexed"] * len(keys)
    assert {str(key) for key in bench.documents.rows} == set(keys)


async def test_of_one_id_from_two_producers_the_last_record_wins_unless_both_give_versions(bench: Bench) -> None:
    await bench.indexer.index([upsert(0, text="From one."), upsert(1, text="From the other.")])
    assert bench.broker.outcomes() == ["superseded", "indexed"]
    await bench.indexer.index([upsert(2, text="From one.", version=9), upsert(3, text="From the other.", version=8)])
    assert bench.broker.outcomes()[2:] == ["indexed", "superseded"]
    assert (bench.documents.rows[A].offset, bench.documents.rows[A].version) == (2, 9)


async def test_clocks_that_are_years_off_decide_nothing_within_a_partition(bench: Bench) -> None:
    ahead, behind = 4_000_000_000_000_000, -1
    await bench.indexer.index([replace(upsert(0, text="Ahead."), timestamp_ms=ahead)])
    await bench.indexer.index([replace(upsert(1, text="Behind."), timestamp_ms=behind)])
    assert bench.broker.outcomes() == ["indexed", "indexed"]
    assert (bench.documents.rows[A].offset, bench.documents.rows[A].timestamp_ms) == (1, behind)


async def test_equal_content_is_made_again_once_its_collection_has_chosen_another_chunking(bench: Bench) -> None:
    text = " ".join(f"Sentence {number} says that a river flows to the sea in its bed." for number in range(12))
    await bench.indexer.index([upsert(0, text=text), upsert(1, "other/a", text=text)])
    before = bench.documents.rows[A]
    bench.choices.chunking = {"default": ChunkingParameters(chunk_characters=120)}
    await bench.indexer.index([upsert(2, text=text), upsert(3, "other/a", text=text)])
    after = bench.documents.rows[A]
    assert bench.broker.outcomes() == ["indexed", "indexed", "indexed", "unchanged"]
    assert after.chunks > before.chunks
    assert after.revision != before.revision
    await bench.indexer.index([upsert(4, text=text)])
    bench.choices.chunking = {}
    await bench.indexer.index([upsert(5, text=text)])
    assert bench.broker.outcomes()[4:] == ["unchanged", "indexed"]
    assert bench.documents.rows[A].revision == before.revision


async def test_what_was_prepared_by_an_older_choice_is_prepared_again(bench: Bench) -> None:
    records = [upsert(0, text="Some words.")]
    prepared = await bench.indexer.prefetch(records)
    bench.choices.chunking = {"default": ChunkingParameters(chunk_characters=120)}
    await bench.indexer.index(records, prepared)
    [receipt] = bench.broker.receipts()
    assert receipt.revision == bench.documents.rows[A].revision
    assert decode_contribution(bench.broker.graph()["default/a"]).revision == receipt.revision
    assert bench.preparer.prepared == ["default/a", "default/a"]


async def test_a_record_in_another_partition_than_its_key_belongs_to_is_noted_and_remembered() -> None:
    bench = Bench(partition_of=lambda _key: 2)
    await bench.indexer.index([upsert(0), upsert(1, "default/b", partition=2)])
    by_key = {receipt.key: receipt for receipt in bench.broker.receipts()}
    assert "came in partition 0" in by_key["default/a"].notes[0]
    assert "partition 2" in by_key["default/a"].notes[0]
    assert by_key["default/b"].notes == ()
    assert bench.documents.rows[A].other_partitions == (2,)
    assert bench.documents.rows[DocumentKey("default", "b")].other_partitions == ()
    assert bench.metrics.registry.get_sample_value("thalweg_misplaced_records_total") == 1
    bench.close()


async def test_gap_is_not_counted_as_misplaced() -> None:
    bench = Bench(partition_of=lambda _key: 2)
    await bench.indexer.index([upsert(0, partition=2), gap(1)])
    assert bench.metrics.registry.get_sample_value("thalweg_misplaced_records_total") == 0
    bench.close()


async def test_all_partitions_with_records_of_a_document_are_remembered_also_of_those_that_lost() -> None:
    bench = Bench(partition_of=lambda _key: 1)
    await bench.indexer.index([upsert(9, partition=1)])
    await bench.indexer.index([upsert(3, partition=0)])  # older, by its time
    assert (bench.documents.rows[A].partition, bench.documents.rows[A].other_partitions) == (1, (0,))
    await bench.indexer.index([delete(4, partition=3)])
    await bench.indexer.index([upsert(10, partition=1)])
    assert bench.documents.rows[A].other_partitions == (0, 3)
    bench.close()


async def test_documents_are_written_again_as_all_their_records_have_them(bench: Bench) -> None:
    log = [upsert(0, text="The first."), upsert(1, text="The second."), upsert(2, "default/b"), delete(3, "default/b")]
    await bench.indexer.index(log)
    expected = bench.state()
    b = DocumentKey("default", "b")
    bench.documents.rows[b] = bench.documents.rows.pop(A)
    bench.documents.chunks[A] = ()
    rewritten = await bench.indexer.rewrite({A: log[:2], b: log[2:]})
    assert rewritten == Rewritten(2, 0)
    assert bench.state() == expected
    assert bench.broker.outcomes() == ["superseded", "indexed", "superseded", "deleted"]


async def test_a_document_is_deleted_without_records_and_kept_where_only_its_own_is_gone(bench: Bench) -> None:
    await bench.indexer.index([upsert(0, version=5), upsert(1, version=3), upsert(2, "default/b")])
    b = DocumentKey("default", "b")
    assert await bench.indexer.rewrite({A: [upsert(1, version=3)], b: []}) == Rewritten(1, 1)
    rows = bench.documents.rows
    assert (rows[A].live, rows[A].version, rows[b].live) == (True, 5, False)
    assert set(bench.broker.graph()) == {"default/a"}
    assert bench.documents.stored[0].mark == bench.broker.commits()[-1].offset


async def test_a_damaged_store_makes_no_dead_letter(bench: Bench) -> None:
    bench.documents.failing = failing_times(10, "replace", DamagedStore("a file is cut"))
    with pytest.raises(DamagedStore):
        await bench.indexer.index([upsert(0), upsert(1, "default/b")])
    assert bench.broker.letters() == []
