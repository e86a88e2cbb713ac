"""What collections chose, as records of the curation topic tell it one after the other."""

from kafka_client.unreadable_batches import skip_none
from query_api.index.collection_settings import CurationFollower
from query_api.index.follower import FollowedRecord, Span
from schemas.curation import LinkingChoice, encode_choice
from schemas.repairs import Repair, repair_key


async def test_the_newest_record_of_a_collection_counts_and_a_changed_choice_is_told_of_once() -> None:
    changes: list[dict[str, LinkingChoice]] = []
    choices = CurationFollower(
        "curation", lambda: None, lambda: changes.append(dict(choices.by_collection)), never, skip_none
    )

    async def comes(key: bytes, value: bytes | None) -> None:
        await choices._take([FollowedRecord(0, 0, key, value)])

    await comes(b"a/settings/linking", b'{"max_across":2}')
    await comes(b"a/settings/linking", b'{"max_across":2}')
    await comes(b"a/settings/linking", b'{"max_across":"many"}')
    await comes(b"a/settings/chunking", b'{"child_characters":300}')
    await comes(b"a/relink/1", b"{}")
    await comes(b"a/settings/linking", None)
    assert changes == [{"a": LinkingChoice(max_across=2)}, {}]


async def test_a_repair_is_told_when_it_is_done_and_not_those_of_before() -> None:
    repaired: list[str] = []
    follower = CurationFollower("curation", lambda: None, lambda: None, repaired.append, skip_none)
    assert follower._begin({0: Span(0, 2)}) == {0: 0}
    states = ["done", "ordered", "running", "done"]
    values = [encode_choice(Repair(generation="g0001", state=state)) for state in states]
    await follower._take(
        [FollowedRecord(0, 1 + at, repair_key("0123456789ab"), each) for at, each in enumerate(values)]
    )
    assert repaired == ["g0001"]


def never(generation: str) -> None:
    raise AssertionError(generation)
