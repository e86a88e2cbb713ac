"""A collection is deleted document by document, and called deleted when both stores show it."""

import pytest

from query_api.cli import collection_deletion
from query_api.cli.collection_deletion import (
    CollectionDeleted,
    documents_of,
    follow_tombstones,
    publish_tombstones,
    token_of,
)
from schemas.errors import Failure, WrongSetting
from schemas.receipts import Token
from tests.unit.query_api.cli.holding_service import HoldingService

AWKWARD = ["a/b.md", "..", "c?d=é#", "reports/status", "100%"]


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection_deletion, "THREADS", 1)


def no_pause(seconds: float) -> None:
    """Time goes on by looks at the state."""


def test_every_document_gets_a_tombstone_whatever_its_id() -> None:
    service, done = HoldingService(*AWKWARD), []
    positions = publish_tombstones(service.client, "made", AWKWARD, lambda: done.append(1))
    assert service.published == [("made", document_id) for document_id in AWKWARD]
    assert positions["c?d=é#"] == Token({0: 101})
    assert len(done) == 5
    assert token_of(positions) == "0:102,1:101"


def test_it_is_followed_until_the_newest_tombstone_of_each_partition_counts() -> None:
    service, done = HoldingService(*AWKWARD), []
    positions = publish_tombstones(service.client, "made", AWKWARD)
    follow_tombstones(service.client, "made", positions, lambda: done.append(1), timeout_seconds=1, sleep=no_pause)
    assert service.reached == {0: 102, 1: 102}
    assert service.held == {}
    assert len(done) == 5


def test_where_nothing_moves_it_says_that_nothing_is_lost() -> None:
    service = HoldingService("a", "b")
    positions = publish_tombstones(service.client, "made", ["a", "b"])
    service.stuck = True
    clock = iter(range(0, 1_000, 50))
    with pytest.raises(Failure, match=r"for 120 s, 0 of 2 documents are\. The tombstones are safe in Kafka"):
        follow_tombstones(
            service.client,
            "made",
            positions,
            timeout_seconds=120,
            sleep=no_pause,
            now_seconds=lambda: next(clock),
        )


def test_a_collection_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(WrongSetting, match=r"collection 'mde', .* There are documents in made, notes\."):
        documents_of(HoldingService("a").client, "mde")


def test_what_was_sent_again_and_what_stays_chosen_is_told() -> None:
    told = collection_deletion.summary_of(
        CollectionDeleted("made", 1_200, 1, "0:1"), {"chunking": {"method": "semantic"}, "linking": None}
    )
    assert told == [
        "1,199 documents of made deleted.",
        "1 were sent again meanwhile, and are there.",
        "Its chunking stays chosen; 'thalweg collections chunking made --reset' takes it back.",
    ]
