"""Keeps the checksums of the stored files up to date, in a thread of its own: a file is recorded about a second after
it was written."""

import asyncio
from typing import Protocol

from streams.runtime.store_thread import StoreThread

EVERY_SECONDS = 1.0


class RecordedWriter(Protocol):
    """May run beside the writer's other calls."""

    def record_checksums(self) -> int:
        """Records what is new, and says how many files these were."""
        ...


async def keep_recorded(writer: RecordedWriter, thread: StoreThread) -> None:
    """For ever."""
    while True:
        await thread.run(writer.record_checksums)
        await asyncio.sleep(EVERY_SECONDS)
