"""What callers save, as records of its topic tell it, and as several processes write there at once."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from kafka_client.topic_offsets import Span
from query_api.errors import ApiProblem
from query_api.index.follower import FollowedRecord
from query_api.ingest.producer import BrokerUnavailable, OutgoingRecord
from query_api.saved import items
from query_api.saved.items import ItemGone, SavedItem, SavedItems
from schemas.errors import MalformedEvent
from schemas.ids import Position
from schemas.saved import SavedKey


class Topic:
    """One partition, which some services follow and write to. `before` is awaited before the next records land."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes | None, bytes | None]] = []
        self.followers: list[SavedItems] = []
        self.before: Any = None
        self.away = False

    def service(self) -> SavedItems:
        made = SavedItems("saved", lambda: None, self, self.end_now)  # type: ignore[arg-type]
        self.followers.append(made)
        return made

    async def started(self) -> SavedItems:
        """A service that has read the topic to its end."""
        made = self.service()
        made._begin({0: Span(0, len(self.records))})
        await self.show(made)
        return made

    async def show(self, follower: SavedItems, first: int = 0) -> None:
        kept = [(at, *record) for at, record in enumerate(self.records) if at >= first and record != (None, None)]
        if kept:
            await follower._take([FollowedRecord(0, at, key, value, at) for at, key, value in kept])
        follower._pass({0: len(self.records)})

    def compact(self) -> None:
        """Only the newest record of each key stays, and no tombstone."""
        newest = {key: at for at, (key, _) in enumerate(self.records)}
        self.records = [
            (key, value) if newest[key] == at and value is not None else (None, None)
            for at, (key, value) in enumerate(self.records)
        ]

    async def end_now(self, topic: str) -> int:
        assert topic == "saved"
        return len(self.records)

    async def publish(self, topic: str, records: Sequence[OutgoingRecord]) -> list[Position]:
        assert topic == "saved"
        if self.away:
            raise BrokerUnavailable("Kafka did not confirm the write")
        if self.before is not None:
            before, self.before = self.before, None
            await before()
        first = len(self.records)
        self.records.extend((record.key, record.value) for record in records)
        for follower in self.followers:
            if follower.was_reached:
                await self.show(follower, first)
        return [Position(0, first + at) for at in range(len(records))]


def told(item: SavedItem | None) -> tuple[Any, list[Any]] | None:
    if item is None or item.head is None:
        return None
    return item.head.value, [part.value for part in item.parts.values()]


async def test_what_one_service_saves_another_reads_and_a_third_that_starts_later() -> None:
    topic = Topic()
    one, two = await topic.started(), await topic.started()
    await one.put("full", "conversation", "c1", {"title": "Rivers"})
    await two.put_all("full", "conversation", "c1", {"m1": {"q": "deep?"}, "m2": {"a": "very"}})
    await one.put("full", "conversation", "c1", {"q": "long?"}, "m3")
    await two.put("full", "conversation", "c1", {"a": "quite"}, "m2")  # written again, so it is the last
    expected = ({"title": "Rivers"}, [{"q": "deep?"}, {"q": "long?"}, {"a": "quite"}])
    topic.compact()
    for service in (one, two, await topic.started()):
        assert told(service.get("full", "conversation", "c1")) == expected
        assert service.get("read", "conversation", "c1") is None
        assert service.get("full", "quiz", "c1") is None


async def test_items_are_listed_by_their_last_change_in_pages() -> None:
    topic = Topic()
    service = await topic.started()
    for name in "abcde":
        await service.put("full", "quiz", name, {})
    await service.put("full", "quiz", "b", {}, "p")
    await service.delete("full", "quiz", "d")
    first, cursor = service.list("full", "quiz", 2)
    second, last = service.list("full", "quiz", 2, cursor)
    assert ([each.id for each in first], [each.id for each in second], last) == (["b", "e"], ["c", "a"], None)
    assert service.list("read", "quiz", 2) == ([], None)


async def test_of_what_is_deleted_nothing_is_left() -> None:
    topic = Topic()
    service = await topic.started()
    await service.put("full", "conversation", "c", {"title": "x"})
    await service.put_all("full", "conversation", "c", {f"m{at}": {} for at in range(5)})
    await service.delete("full", "conversation", "c")
    assert (service.get("full", "conversation", "c"), service.kept_bytes["full"]) == (None, 0)
    written = len(topic.records)
    await (await topic.started())._sweep()
    assert len(topic.records) == written  # tombstones are not written again with each start
    topic.compact()
    assert set(topic.records) == {(None, None)}
    with pytest.raises(ItemGone):
        await service.delete("full", "conversation", "c")


@pytest.mark.parametrize("part", [None, "m1"])
async def test_what_is_written_to_an_item_that_another_deletes_meanwhile_is_gone_too(part: str | None) -> None:
    topic = Topic()
    one, two = await topic.started(), await topic.started()
    await one.put("full", "conversation", "c", {"title": "x"})
    topic.before = lambda: two.delete("full", "conversation", "c")
    with pytest.raises(ItemGone):
        await one.put("full", "conversation", "c", {"title": "y"}, part)
    topic.compact()
    later = await topic.started()
    assert [each.get("full", "conversation", "c") for each in (one, two, later)] == [None] * 3
    assert set(topic.records) == {(None, None)}


async def test_a_part_that_was_left_without_its_item_is_deleted_by_the_next_service() -> None:
    topic = Topic()
    await (await topic.started()).put("full", "conversation", "kept", {})
    topic.records.append((SavedKey("full", "conversation", "gone", "m1").encode(), b'{"q":1}'))
    service = await topic.started()
    assert [each.id for each in service.list("full", "conversation", 9)[0]] == ["kept"]
    await service._sweep()
    topic.compact()
    assert [record[0] for record in topic.records if record[0]] == [b"full/conversation/kept"]


async def test_two_write_to_one_item_at_once_and_both_land_in_the_order_of_the_log() -> None:
    topic = Topic()
    one, two = await topic.started(), await topic.started()
    await one.put("full", "conversation", "c", {})
    await asyncio.gather(
        *(each.put_all("full", "conversation", "c", {f"{name}{at}": {"of": name}})
          for at in range(20) for each, name in ((one, "a"), (two, "b")))
    )  # fmt: skip
    shown = [list(each.get("full", "conversation", "c").parts) for each in (one, two)]  # type: ignore[union-attr]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 40


async def test_a_topic_that_was_not_read_yet_is_told_from_one_without_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("query_api.index.follower.CATCH_UP_SECONDS", 0.01)
    service = Topic().service()
    for asked in (service.find("full", "quiz", "a"), service.put("full", "quiz", "a", {})):
        with pytest.raises(ApiProblem) as refused:
            await asked
        assert (refused.value.status, "not been read yet" in refused.value.detail) == (503, True)


async def test_without_kafka_reads_go_on_and_writes_say_so() -> None:
    topic = Topic()
    service = await topic.started()
    await service.put("full", "quiz", "a", {"cards": 3})
    topic.away = True
    with pytest.raises(ApiProblem) as refused:
        await service.put("full", "quiz", "a", {}, "p")
    assert (refused.value.status, refused.value.title) == (503, "Kafka unavailable")
    assert told(service.get("full", "quiz", "a")) == ({"cards": 3}, [])


async def test_a_caller_keeps_no_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items, "MOST_BYTES", 3 * items.RECORD_BYTES + 300)
    topic = Topic()
    service = await topic.started()
    for name in "ab":
        await service.put("full", "quiz", name, {"text": "x" * 60})
    with pytest.raises(ApiProblem) as refused:
        await service.put("full", "quiz", "c", {"text": "x" * 600})
    assert (refused.value.status, len(topic.records)) == (507, 2)
    await service.put("read", "quiz", "c", {"text": "x" * 600})  # another caller's
    await service.delete("full", "quiz", "a")
    await service.put("full", "quiz", "c", {"text": "x" * 600})


async def test_what_others_write_to_the_topic_is_passed_over() -> None:
    topic = Topic()
    service = await topic.started()
    await service.put("full", "quiz", "a", {"x": 1})
    topic.records += [(b"full/study/a", b"{no json"), (b"full/study/a", b"[1]"), (b"full/other/a", b"{}")]
    topic.records += [(b"\xff/study/a", b"{}"), (None, b"{}"), (b"a/b", None), (b"full/study/a/b/c", b"{}")]
    await topic.show(service, 1)
    assert told(service.get("full", "quiz", "a")) == ({"x": 1}, [])
    assert told((await topic.started()).get("full", "quiz", "a")) == ({"x": 1}, [])


async def test_whatever_is_written_the_bytes_that_are_kept_are_counted() -> None:
    topic = Topic()
    service = await topic.started()
    chance = random.Random(7)
    for _ in range(400):
        name, part = chance.choice("abc"), chance.choice([None, "p", "q"])
        value = None if chance.random() < 0.3 else b'{"x":"' + b"y" * chance.randrange(50) + b'"}'
        topic.records.append((SavedKey("full", "quiz", name, part).encode(), value))
        await topic.show(service, len(topic.records) - 1)
        shelf = service._shelves.get(("full", "quiz"), {})
        assert service.kept_bytes["full"] == sum(item.bytes for item in shelf.values())
    fresh = await topic.started()
    assert {n: told(service.get("full", "quiz", n)) for n in "abc"} == {
        n: told(fresh.get("full", "quiz", n)) for n in "abc"
    }


async def test_a_topic_that_was_made_again_begins_anew() -> None:
    topic = Topic()
    service = await topic.started()
    await service.put("full", "quiz", "a", {})
    topic.records.clear()
    service._begin({0: Span(0, 0)})
    assert (service.list("full", "quiz", 5), service.kept_bytes["full"]) == (([], None), 0)


@pytest.mark.parametrize(
    "names",
    [
        ("full", "quiz", "a/b"),
        ("full", "quiz", ""),
        ("", "quiz", "a"),
        ("full", "letters", "a"),
        ("full", "quiz", "x" * 65),
        ("full", "quiz", "ä"),
    ],
)
def test_a_name_that_cannot_be_in_a_key_is_refused(names: tuple[str, str, str]) -> None:
    with pytest.raises(MalformedEvent):
        SavedKey(*names).encode()
