"""Retrievals and feedback in their tables: kept once, the later word counts, counted in batches; also of old tables."""

import lancedb
import pyarrow as pa
import pytest

from indexer.errors import IncompatibleGeneration
from indexer.generation_folders import Generation
from indexer.read import usage as usage_module
from indexer.read.usage import UsageTables
from indexer.schema import RETRIEVALS
from indexer.write.lance_writer import LanceWriter
from query_api.index.text.text_snapshot import TextReader
from schemas.provenance import Retrieval
from tests.support.fakes.usage import made_feedback, made_retrieval
from tests.support.fixtures.text_rows import DIMENSION


def keep(writer: LanceWriter, *retrievals: Retrieval) -> None:
    writer.add_retrievals([(each.retrieval_id, each) for each in retrievals])


def usage_of(generation: Generation) -> UsageTables:
    return TextReader.open(generation).snapshot().usage


def test_newest_feedback_on_a_hit_counts_in_any_order(generation: Generation, writer: LanceWriter) -> None:
    held = made_retrieval(chunk_ids=["a", "b"])
    writer.put_feedback([(made_feedback(held, "a", 1, "ada"), 4), (made_feedback(held, "a", -1, "ada"), 7)])
    writer.put_feedback([(made_feedback(held, "a", 0.5, "ada"), 5), (made_feedback(held, "a", 1, "bob", 9), 6)])
    writer.put_feedback([(made_feedback(held, "b", 1), 8)])
    writer.put_feedback([])
    usage = usage_of(generation)
    assert [(said.caller, said.rating) for said in usage.feedback_on_chunks(["a"])] == [("ada", -1), ("bob", 1)]
    assert len(usage.feedback_on_retrieval(held.retrieval_id)) == 3
    assert usage.feedback_on_retrieval("x' OR '1'='1") == []


def test_retrievals_are_listed_newest_first_and_counted(
    generation: Generation, writer: LanceWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_module, "BATCH_ROWS", 3)
    kept = [
        made_retrieval(f"q{at}", ["a", "b"] if at % 2 else ["b"], at, collection="c" if at % 3 else None)
        for at in range(10)
    ]
    keep(writer, *kept)
    usage = usage_of(generation)
    assert [each.at_ms for each in usage.newest(None, None, None, 3)] == [9, 8, 7]
    assert [each.at_ms for each in usage.newest("c", 2, (7, kept[7].retrieval_id), 9)] == [5, 4, 2]
    shown: dict[str, list[int]] = {}
    for batch in usage.shown_chunks(None):
        for each in batch:
            before = shown.get(each.chunk_id, [0, 0, 0])
            shown[each.chunk_id] = [before[0] + each.count, before[1] + each.rank_sum, max(before[2], each.last_ms)]
    assert shown == {"a": [5, 5, 9], "b": [10, 15, 9]}
    assert sum(each.count for batch in usage.shown_chunks(None, "a") for each in batch) == 5
    assert list(usage.shown_chunks(None, "a' OR '1'='1")) == []
    searches = [each for batch in usage.searches("c", 5) for each in batch]
    assert [(each.query, each.hits, each.seconds, each.offset) for each in searches] == [
        ("q5", 2, 0.02, 0),
        ("q7", 2, 0.02, 0),
        ("q8", 1, 0.02, 0),
    ]


def test_uncounted_retrieval_is_kept_but_not_in_analytics(generation: Generation, writer: LanceWriter) -> None:
    evaluated = made_retrieval("evaluated", ["a"], 1, counted=False)
    keep(writer, evaluated, made_retrieval("asked", ["a"], 2))
    usage = usage_of(generation)
    assert [each.query for found in usage.searches(None, None) for each in found] == ["asked"]
    assert sum(each.count for found in usage.shown_chunks(None) for each in found) == 1
    assert sum(each.count for found in usage.shown_chunks(None, "a") for each in found) == 1
    assert [each.query for each in usage.newest(None, None, None, 9)] == ["asked", "evaluated"]
    assert [each.query for each in usage.newest(None, None, None, 9, only_counted=True)] == ["asked"]
    assert TextReader.open(generation).snapshot().retrieval(evaluated.retrieval_id) == evaluated


def test_a_table_with_other_columns_is_refused(generation: Generation) -> None:
    generation.lance_dir.mkdir(parents=True, exist_ok=True)
    lancedb.connect(generation.lance_dir).create_table(RETRIEVALS, schema=pa.schema([pa.field("id", pa.string())]))
    with pytest.raises(IncompatibleGeneration, match="retrievals"):
        LanceWriter.open(generation, DIMENSION)


def test_usage_older_than_the_retention_is_removed(generation: Generation, writer: LanceWriter) -> None:
    old, kept = made_retrieval("old", ["a"], 999), made_retrieval("kept", ["a"], 1_000)
    keep(writer, old, kept)
    writer.put_feedback([(made_feedback(old, "a", 1, at_ms=999), 1), (made_feedback(old, "a", 1, "bob", 1_000), 2)])
    assert writer.forget(1_000) == 2
    assert writer.forget(1_000) == 0
    usage = usage_of(generation)
    assert [each.query for each in usage.newest(None, None, None, 9)] == ["kept"]
    assert [said.caller for said in usage.feedback_on_chunks(["a"])] == ["bob"]
    keep(writer, made_retrieval("new", ["a"], 2_000))
    assert [each.query for each in usage_of(generation).newest(None, None, None, 9)] == ["new", "kept"]
