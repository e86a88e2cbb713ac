"""Retrievals leave the tables with their topic's retention."""

from indexer.write.lance_maintenance import MaintenanceReport
from streams.runtime.maintenance import RETENTION_CHECK_SECONDS, Retention
from tests.support.fakes.worker import Bench

DAY_MS = 86_400_000


class RememberingWriter:
    """Notes before when it was to forget."""

    def __init__(self) -> None:
        self.before_ms: list[int] = []

    def maintain(self) -> MaintenanceReport:
        raise AssertionError("nobody asked for maintenance")

    def forget(self, before_ms: int) -> int:
        self.before_ms.append(before_ms)
        return 1


async def test_what_is_older_than_the_retention_goes_at_once_and_then_every_hour() -> None:
    bench = Bench()
    clock = [100 * 86_400.0]
    writer = RememberingWriter()
    retention = Retention(writer, bench.thread, 90, now=lambda: clock[0])
    for _ in range(3):
        await retention.apply()
    assert writer.before_ms == [10 * DAY_MS]
    clock[0] += RETENTION_CHECK_SECONDS
    await retention.apply()
    assert writer.before_ms == [10 * DAY_MS, 10 * DAY_MS + 3_600_000]
    bench.close()
