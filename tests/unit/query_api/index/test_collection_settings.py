"""What collections chose, as records of the curation topic tell it one after the other."""

from kafka_client.unreadable_batches import skip_none
from query_api.index.collection_settings import LinkingChoices
from query_api.index.follower import FollowedRecord
from schemas.curation import LinkingChoice


async def test_the_newest_record_of_a_collection_counts_and_a_changed_choice_is_told_of_once() -> None:
    changes: list[dict[str, LinkingChoice]] = []
    choices = LinkingChoices("curation", lambda: None, lambda: changes.append(dict(choices.by_collection)), skip_none)

    async def comes(key: bytes, value: bytes | None) -> None:
        await choices._take([FollowedRecord(0, 0, key, value)])

    await comes(b"a/settings/linking", b'{"max_across":2}')
    await comes(b"a/settings/linking", b'{"max_across":2}')
    await comes(b"a/settings/linking", b'{"max_across":"many"}')
    await comes(b"a/settings/chunking", b'{"child_characters":300}')
    await comes(b"a/relink/1", b"{}")
    await comes(b"a/settings/linking", None)
    assert changes == [{"a": LinkingChoice(max_across=2)}, {}]
