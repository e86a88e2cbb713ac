"""Recent receipts: what became of records, and how long they took to become searchable."""

from query_api.index.document_status import MAX_SNAPSHOTS, MAX_WAITING_RECEIPTS, IndexFreshness, RecentReceipts
from schemas.receipts import Outcome, Receipt


def receipt(offset: int, outcome: Outcome, name: str = "ada") -> Receipt:
    return Receipt(
        key=f"c/{name}", outcome=outcome, partition=0, offset=offset, generation="g0001", produced_at_ms=1_000
    )


def test_what_a_record_came_to_when_it_was_read_again_counts() -> None:
    """Unless it was only passed over then."""
    receipts = RecentReceipts()
    for outcome, lost in (("dead_lettered", True), ("superseded", True), ("indexed", False), ("superseded", True)):
        receipts.add(receipt(5, outcome))
        assert (receipts.without_effect("c/ada", {0: 5}) is not None) is lost
    assert receipts.without_effect("c/bob", {0: 5}) is None, "of another document"


def test_few_are_remembered() -> None:
    receipts = RecentReceipts(capacity=3)
    for offset in range(10):
        receipts.add(receipt(offset, "dead_lettered", f"d{offset}"))
    assert [offset for offset in range(10) if receipts.without_effect(f"c/d{offset}", {0: offset})] == [7, 8, 9]
    assert [offset for offset in range(10) if receipts.newest(f"c/d{offset}")] == [7, 8, 9]
    assert receipts.reached == {0: 9}


class Freshness:
    """IndexFreshness with a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.seconds: list[float] = []
        self.freshness = IndexFreshness(self.seconds.append, lambda: self.now)

    def shows(self, at: float, **offsets: int) -> None:
        self.now = at
        self.freshness.add_snapshot({int(name[1:]): offset for name, offset in offsets.items()})

    def told(self, offset: int, produced: float, outcome: Outcome = "indexed", partition: int = 0) -> None:
        self.freshness.add_receipt(
            Receipt(
                key="c/a",
                outcome=outcome,
                partition=partition,
                offset=offset,
                generation="g0001",
                produced_at_ms=int(produced * 1000),
            )
        )


def test_the_receipt_may_come_before_or_after_the_snapshot() -> None:
    scene = Freshness()
    scene.shows(1_000, p0=4)
    scene.told(5, produced=1_001)
    assert (scene.seconds, scene.freshness.newest) == ([], None)
    scene.shows(1_003, p0=5)
    assert scene.seconds == [2]
    scene.shows(1_010, p0=6)
    scene.shows(1_020, p0=7)
    scene.told(6, produced=1_006)
    assert scene.seconds == [2, 4]


def test_what_was_there_when_the_service_began_is_not_measured() -> None:
    scene = Freshness()
    scene.told(3, produced=10)
    scene.shows(1_000, p0=4, p1=0)
    scene.told(4, produced=20)
    scene.told(1, produced=990, partition=1)
    scene.shows(1_001, p0=4, p1=1)
    assert scene.seconds == [11]


def test_each_record_is_measured_once_and_only_what_searches_show() -> None:
    scene = Freshness()
    scene.shows(1_000, p0=4)
    scene.shows(1_001, p0=9)
    for _ in range(2):
        scene.told(5, produced=1_000)
        scene.told(6, produced=1_000, outcome="dead_lettered")
        scene.told(7, produced=1_000, outcome="superseded")
        scene.told(8, produced=999, outcome="deleted")
    assert scene.seconds == [1, 2]


def test_another_generation_resets_and_memory_stays_bounded() -> None:
    scene = Freshness()
    for offset in range(MAX_SNAPSHOTS + 10):
        scene.shows(2_000 + offset, p0=offset)
    assert len(scene.freshness._snapshots) == MAX_SNAPSHOTS
    scene.freshness.reset()
    scene.shows(3_000, p0=1)
    for offset in range(2, MAX_WAITING_RECEIPTS + 100):
        scene.told(offset, produced=3_000)
    assert len(scene.freshness._waiting) == MAX_WAITING_RECEIPTS
    scene.shows(3_001, p0=1_000_000)
    assert scene.seconds == [1] * MAX_WAITING_RECEIPTS
