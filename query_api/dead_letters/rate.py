"""How many records became dead letters of late: counted by offsets, without reading one."""

import asyncio
import time

from aiokafka.errors import KafkaError

from query_api.dead_letters.topic_reader import DeadLetterReader
from query_api.index.follower import LogUnavailable

DAY_MS = 24 * 60 * 60 * 1000
COUNT_SECONDS = 15.0


class RecentDeadLetters:
    """Counts again every quarter of a minute; `count` is that of the last day, None while nobody knows it."""

    def __init__(self, reader: DeadLetterReader) -> None:
        self.count: int | None = None
        self._reader = reader

    async def run(self) -> None:
        while True:
            try:
                self.count = await self._reader.count_since(time.time_ns() // 1_000_000 - DAY_MS)
            except (KafkaError, OSError, TimeoutError, LogUnavailable):
                self.count = None
            await asyncio.sleep(COUNT_SECONDS)

    def notes(self) -> list[str]:
        if not self.count:
            return []
        records = "1 record" if self.count == 1 else f"{self.count:,} records"
        return [f"{records} became dead letters within a day: 'thalweg dead-letters list' says which, and why."]
