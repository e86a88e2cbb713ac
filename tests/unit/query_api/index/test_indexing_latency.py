"""How long documents take to become searchable, by a clock that is set by hand."""

from query_api.index.indexing_latency import MOST_WAITING, REMEMBERED_SNAPSHOTS, IndexFreshness
from schemas.receipts import Outcome, Receipt


class Scene:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.seconds: list[float] = []
        self.freshness = IndexFreshness(self.seconds.append, lambda: self.now)

    def shows(self, at: float, **offsets: int) -> None:
        self.now = at
        self.freshness.shows({int(name[1:]): offset for name, offset in offsets.items()})

    def told(self, offset: int, produced: float, outcome: Outcome = "indexed", partition: int = 0) -> None:
        self.freshness.told(
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
    scene = Scene()
    scene.shows(1_000, p0=4)
    scene.told(5, produced=1_001)
    assert scene.seconds == []
    scene.shows(1_003, p0=5)
    assert scene.seconds == [2]
    scene.shows(1_010, p0=6)
    scene.shows(1_020, p0=7)
    scene.told(6, produced=1_006)
    assert scene.seconds == [2, 4]


def test_what_was_there_when_the_service_began_is_not_measured() -> None:
    scene = Scene()
    scene.told(3, produced=10)
    scene.shows(1_000, p0=4, p1=0)
    scene.told(4, produced=20)
    scene.told(1, produced=990, partition=1)
    scene.shows(1_001, p0=4, p1=1)
    assert scene.seconds == [11]


def test_each_record_is_measured_once_and_only_what_searches_show() -> None:
    scene = Scene()
    scene.shows(1_000, p0=4)
    scene.shows(1_001, p0=9)
    for _ in range(2):
        scene.told(5, produced=1_000)
        scene.told(6, produced=1_000, outcome="dead_lettered")
        scene.told(7, produced=1_000, outcome="superseded")
        scene.told(8, produced=999, outcome="deleted")
    assert scene.seconds == [1, 2]


def test_another_generation_begins_anew_and_memory_stays_bounded() -> None:
    scene = Scene()
    for offset in range(REMEMBERED_SNAPSHOTS + 10):
        scene.shows(2_000 + offset, p0=offset)
    assert len(scene.freshness._shown) == REMEMBERED_SNAPSHOTS
    scene.freshness.begin_anew()
    scene.shows(3_000, p0=1)
    for offset in range(2, MOST_WAITING + 100):
        scene.told(offset, produced=3_000)
    assert len(scene.freshness._waiting) == MOST_WAITING
    scene.shows(3_001, p0=1_000_000)
    assert scene.seconds == [1] * MOST_WAITING
