"""The snapshot that searches read: opened when there is one, kept up, switched without a gap, and waited for."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from indexer.changes import Reached
from indexer.errors import TransientStoreError
from indexer.generation_folders import LogIdentity, record_log
from kafka_client.topic_offsets import LogUnavailable, Span
from query_api.index.follower import FollowedRecord
from query_api.index.manager import NotYetIndexed, ServiceStopping, SnapshotManager, reached_token
from query_api.index.store_opening import GraphFile
from query_api.service_metrics import ServiceMetrics
from query_api.settings import ServiceSettings
from schemas.graph_delta import Contribution, MentionEdge
from schemas.ids import DocumentKey
from schemas.receipts import Receipt, encode_receipt
from schemas.settings import StorageSettings
from tests.support.contributions import committed
from tests.support.fakes.engine import Reader, ScriptedEngine, Tables, make_generation
from tests.support.fakes.text_stores import Page
from tests.support.waiting import eventually

ONE = Page("one", "One", [["It is here."]], collection="wiki")


def logged(records: Sequence[tuple[bytes | None, bytes | None]], first: int = 0) -> list[FollowedRecord]:
    return [FollowedRecord(0, offset, key, value) for offset, (key, value) in enumerate(records, first)]


async def take(keeper: SnapshotManager, changes: Mapping[str, Contribution | None], reached: Reached) -> None:
    """As if a commit stood at the beginning of the topic."""
    assert keeper.served
    await keeper.served._take(logged(committed(changes, reached)))


@asynccontextmanager
async def keeping(
    data_dir: Path, engine: ScriptedEngine, refresh_seconds: float = 0.01
) -> AsyncIterator[SnapshotManager]:
    settings = ServiceSettings(storage=StorageSettings(data_dir=data_dir))
    double: Any = engine
    keeper = SnapshotManager(settings, double, lambda: None, ServiceMetrics(), refresh_seconds=refresh_seconds)
    task = asyncio.create_task(keeper.run())
    try:
        yield keeper
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_it_waits_for_the_worker_to_make_the_first_index(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedEngine()) as keeper:
        await eventually(lambda: "start the worker" in (keeper.problem or ""))
        assert keeper.current is None
        make_generation(tmp_path)
        await eventually(lambda: keeper.current)
        await eventually(lambda: keeper.problem is None)


async def test_a_change_of_the_tables_is_seen_without_any_receipt(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine()
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: keeper.current)
        engine.reader.put(ONE, p0=(4, -1))
        await eventually(lambda: reached_token(keeper.current) == "0:4")


async def test_receipt_measures_freshness_of_what_is_shown(tmp_path: Path) -> None:
    make_generation(tmp_path)
    async with keeping(tmp_path, ScriptedEngine()) as keeper:
        await eventually(lambda: keeper.served)
        await take(keeper, {"wiki/one": ONE.contribution()}, reached={0: (4, 1_000)})
        receipt = Receipt(
            key="wiki/one", outcome="indexed", partition=0, offset=4, generation="g0001", produced_at_ms=1
        )
        await keeper._take_receipts([FollowedRecord(0, 0, b"wiki/one", encode_receipt(receipt))])
        assert keeper.receipts.newest("wiki/one") == receipt
        observed = keeper.metrics.registry.get_sample_value("thalweg_index_freshness_seconds_count")
        assert observed == 1


async def test_commit_shows_in_text_and_graph_at_once(tmp_path: Path) -> None:
    make_generation(tmp_path)
    async with keeping(tmp_path, ScriptedEngine(), refresh_seconds=60) as keeper:
        await eventually(lambda: keeper.current)
        waiting = asyncio.create_task(keeper.wait_for({0: 4}, seconds=5))
        await take(keeper, {"wiki/one": ONE.contribution()}, reached={0: (4, 1_000)})
        shown = await waiting
        assert shown.text.positions[0] == (4, 1, 1_000)
        assert (shown.graph.position, shown.graph.document(ONE.key) is not None) == (1, True)


async def test_part_of_a_commit_shows_nothing(tmp_path: Path) -> None:
    make_generation(tmp_path)
    async with keeping(tmp_path, ScriptedEngine(), refresh_seconds=60) as keeper:
        await eventually(lambda: keeper.current)
        assert keeper.served
        *changes, mark = logged(committed({"wiki/one": ONE.contribution()}, {0: (4, 1_000)}))
        before = keeper.current
        await keeper.served._take(changes)
        assert keeper.current is before
        await keeper.served._take([mark])
        assert reached_token(keeper.current) == "0:4"


async def test_commit_that_the_text_cannot_take_is_read_again(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine()
    async with keeping(tmp_path, engine, refresh_seconds=60) as keeper:
        await eventually(lambda: keeper.served)
        engine.reader.failing = TransientStoreError("the disk is gone")
        with pytest.raises(LogUnavailable, match="the disk is gone"):
            await take(keeper, {"wiki/one": ONE.contribution()}, reached={0: (4, 1_000)})
        assert keeper.current
        assert keeper.current.graph.position == -1
        engine.reader.failing = None
        await take(keeper, {"wiki/one": ONE.contribution()}, reached={0: (4, 1_000)})
        assert (reached_token(keeper.current), keeper.current.graph.position) == ("0:4", 1)


async def test_graph_behind_the_tables_after_a_start_is_waited_for(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine()
    engine.reader.put(ONE, p0=(4, 1))
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: keeper.current)
        waiting = asyncio.create_task(keeper.wait_for({0: 4}, seconds=5))
        await eventually(lambda: keeper._waiters)
        assert not waiting.done()
        await take(keeper, {"wiki/one": ONE.contribution()}, reached={0: (4, 1_000)})
        assert (await waiting).graph.document(ONE.key) is not None


async def test_newer_tables_of_the_same_content_are_shown_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else searches would go on with versions that maintenance removes."""
    monkeypatch.setattr("query_api.index.generation.LONGEST_PIN_SECONDS", 1.0)
    monkeypatch.setattr(Tables, "index", "the same")
    make_generation(tmp_path)
    engine = ScriptedEngine()
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: keeper.current)
        assert keeper.current
        before = keeper.current.text
        engine.reader.put()
        await eventually(lambda: keeper.current and keeper.current.text is not before)


async def test_waiting_in_vain_tells_how_far_it_has_come(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine()
    engine.reader.put(p0=(3, -1), p1=(8, -1))
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: keeper.current)
        with pytest.raises(NotYetIndexed, match="0:9") as caught:
            await keeper.wait_for({0: 9}, seconds=0.02)
        assert caught.value.reached == "0:3,1:8"
        with pytest.raises(NotYetIndexed):
            await keeper.wait_for({7: 0}, seconds=0)


async def test_a_store_that_cannot_be_read_leaves_the_old_snapshot_and_is_told(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine()
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: keeper.current)
        engine.reader.failing = OSError("the disk is gone")
        await eventually(lambda: "the disk is gone" in (keeper.problem or ""))
        assert keeper.current
        engine.reader.failing = None
        await eventually(lambda: keeper.problem is None)


async def test_a_new_graph_snapshot_becomes_the_base(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine()
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: keeper.current)
        engine.graphs["s1"] = [ONE.contribution()]
        engine.graph_file = GraphFile("s1", 6)
        await eventually(lambda: keeper.current and keeper.current.graph.position == 6)
        assert keeper.current
        assert keeper.current.graph.document(ONE.key) is not None


async def test_a_graph_snapshot_that_cannot_be_built_is_told_and_tried_again(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine()
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: keeper.current)
        engine.graphs["s1"] = None  # type: ignore[assignment]
        engine.graph_file = GraphFile("s1", 6)
        await eventually(lambda: keeper.problem is not None)
        engine.graphs["s1"] = []
        await eventually(lambda: keeper.current and keeper.current.graph.position == 6)


async def test_the_switch_to_another_generation_leaves_no_moment_without_a_snapshot(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine(readers={"g0001": Reader(), "g0002": Reader()})
    engine.readers["g0002"].put(ONE, p0=(9, -1))
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: keeper.current)
        make_generation(tmp_path, "g0002")

        def switched() -> bool:
            assert keeper.current
            return keeper.current.generation == "g0002"

        await eventually(switched)
        assert reached_token(keeper.current) == "0:9"


async def test_generation_that_shows_less_is_not_served_before_it_catches_up(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine(readers={"g0001": Reader(), "g0002": Reader()})
    engine.readers["g0001"].put(ONE, p0=(9, -1), p1=(4, -1))
    engine.readers["g0002"].put(ONE, p0=(7, -1))
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: reached_token(keeper.current) == "0:9,1:4")
        make_generation(tmp_path, "g0002")
        await eventually(lambda: "g0002 is live and catches up" in (keeper.catching_up or ""))
        engine.reader.put(ONE, p1=(6, -1))
        await eventually(lambda: reached_token(keeper.current) == "0:9,1:6")  # the last commit before is still shown
        engine.readers["g0002"].put(ONE, p0=(9, 2), p1=(6, -1))
        looks = engine.readers["g0002"].refreshes
        await eventually(lambda: engine.readers["g0002"].refreshes >= looks + 2)
        assert keeper.catching_up, "its graph has yet to come"
        engine.readers["g0002"].put(ONE, p0=(9, -1), p1=(6, -1))
        await eventually(lambda: keeper.current and keeper.current.generation == "g0002")
        assert (reached_token(keeper.current), keeper.catching_up) == ("0:9,1:6", None)


async def test_switch_back_before_the_other_caught_up_goes_on_as_before(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine(readers={"g0001": Reader(), "g0002": Reader()})
    engine.reader.put(ONE, p0=(9, -1))
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: reached_token(keeper.current) == "0:9")
        make_generation(tmp_path, "g0002")
        await eventually(lambda: keeper.catching_up)
        make_generation(tmp_path)
        await eventually(lambda: keeper.catching_up is None)
        engine.reader.put(ONE, p0=(10, -1))
        await eventually(lambda: reached_token(keeper.current) == "0:10")


async def test_generation_of_another_log_is_served_at_once(tmp_path: Path) -> None:
    first = make_generation(tmp_path)
    record_log(first, LogIdentity("a" * 32, ""))
    engine = ScriptedEngine(readers={"g0001": Reader(), "g0002": Reader()})
    engine.reader.put(ONE, p0=(9, -1))
    engine.readers["g0002"].put(ONE, p0=(1, -1))
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: reached_token(keeper.current) == "0:9")
        (tmp_path / "CURRENT").unlink()
        other = make_generation(tmp_path / "other", "g0002")
        record_log(other, LogIdentity("b" * 32, ""))
        other.root.rename(tmp_path / "generations" / "g0002")
        (tmp_path / "CURRENT").write_text("g0002")
        await eventually(lambda: reached_token(keeper.current) == "0:1")


async def test_records_that_cannot_be_read_are_counted_and_passed_over(tmp_path: Path) -> None:
    make_generation(tmp_path)
    async with keeping(tmp_path, ScriptedEngine()) as keeper:
        await eventually(lambda: keeper.current)
        assert keeper.served
        broken = [(b"wiki/one", b"nonsense"), (None, b"{}"), (b"\xff/x", None)]
        await keeper.served._take(logged([*broken, *committed({"wiki/one": ONE.contribution()})]))
        assert keeper.current
        assert keeper.current.graph.position == 4
        assert keeper.current.graph.document(DocumentKey("wiki", "one")) is not None
        counter = keeper.metrics.broken_records.labels(topic="thalweg.contributions.g0001.v1")
        assert counter._value.get() == 3


async def test_contributions_of_which_no_graph_can_be_built_are_passed_over_alone(tmp_path: Path) -> None:
    make_generation(tmp_path)
    good = ONE.contribution()
    nowhere = msgspec.structs.replace(good, mentions=[MentionEdge(99, "bed", "bed", "x", 1, [0])])
    below_zero = msgspec.structs.replace(good, mentions=[MentionEdge(0, "bed", "bed", "x", -1, [0], "concept", 0.5)])
    three = msgspec.structs.replace(nowhere, document_id="three")
    two = Page("two", "Two", [["It is there."]], collection="wiki").contribution()
    async with keeping(tmp_path, ScriptedEngine()) as keeper:
        await eventually(lambda: keeper.current)
        assert keeper.served
        commits = [{"wiki/one": good}, {"wiki/three": three, "wiki/one": nowhere}, {"wiki/two": two}]
        records = [record for changes in [*commits, {"wiki/one": below_zero}] for record in committed(changes)]
        await keeper.served._take(logged(records))
        assert keeper.current
        assert keeper.current.graph.position == len(records) - 1
        held = [keeper.current.graph.document(DocumentKey("wiki", name)) for name in ("one", "two", "three")]
        assert [number is not None for number in held] == [True, True, False]
        counter = keeper.metrics.broken_records.labels(topic="thalweg.contributions.g0001.v1")
        assert counter._value.get() == 3


async def test_topic_that_ends_before_what_was_applied_is_not_followed(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine(graph_file=GraphFile("s1", 6))
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: keeper.served)
        assert keeper.served
        assert keeper.served._first_commit({0: Span(0, 9)}) == {0: 0}, "the tables are behind the graph"
        engine.reader.put(ONE, p0=(4, 8))
        await keeper.served.refresh()
        assert keeper.served._first_commit({0: Span(0, 7)}) == {0: 7}
        with pytest.raises(LogUnavailable, match="another cluster"):
            keeper.served._first_commit({0: Span(0, 6)})
        with pytest.raises(LogUnavailable, match="must have one"):
            keeper.served._first_commit({0: Span(0, 9), 1: Span(0, 9)})


async def test_stores_are_opened_again_where_log_has_left_them_behind(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine(graph_file=GraphFile("s1", 6))
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: keeper.served)
        behind = keeper.served
        assert behind
        with pytest.raises(LogUnavailable, match="opened again"):
            behind._first_commit({0: Span(9, 12)})
        await eventually(lambda: keeper.served is not behind)
        assert keeper.served
        assert keeper.served._first_commit({0: Span(9, 12)}) == {0: 9}, "what is gone is nowhere else"
        with pytest.raises(LogUnavailable, match="opened again"):
            keeper.served._first_commit({0: Span(11, 12)})


async def test_whoever_waits_is_told_when_the_service_is_stopped(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine()
    engine.reader.put(ONE, p0=(4, -1))
    async with keeping(tmp_path, engine) as keeper:
        await eventually(lambda: keeper.current)
        waiting = asyncio.create_task(keeper.wait_for({0: 99}, seconds=60))
        await eventually(lambda: keeper._waiters)
        keeper.stop_waiting()
        with pytest.raises(ServiceStopping, match="being stopped"):
            await waiting
        assert await keeper.wait_for({0: 4}, seconds=60) is keeper.current
