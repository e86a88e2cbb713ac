"""A topic of one partition in memory, for whatever reads a log: from an offset or a time on, or what is new since."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

from streams.kafka.records import SourceRecord


@dataclass
class InMemoryLog:
    """`first` is the oldest offset that is kept. `between` is called once, before the first record is read; before that
    so many `failures` are raised. `read` is how far it was given away; `checked` outlives a restart, as the offset of a
    group does."""

    found: list[SourceRecord] = field(default_factory=list)
    first: int = 0
    between: Callable[[], Awaitable[None]] | None = None
    failures: int = 0
    read: int = 0
    checked: int = 0

    def append(self, key: str | bytes, value: bytes | None) -> None:
        self.found.append(SourceRecord(0, len(self.found), 1_000, key.encode() if isinstance(key, str) else key, value))

    async def records(self, start: int = 0, since_ms: int = 0) -> AsyncGenerator[SourceRecord, None]:
        if self.between is not None:
            between, self.between = self.between, None
            await between()
        later = next((each.offset for each in self.found if each.timestamp_ms >= since_ms), len(self.found))
        for record in list(self.found):
            if record.offset >= max(start, later, self.first):
                yield record

    async def beginning(self) -> int:
        return self.first

    async def end(self) -> int:
        return self.found[-1].offset + 1 if self.found else 0

    async def new_records(self) -> list[SourceRecord]:
        if self.failures:
            self.failures -= 1
            raise OSError("the broker is away")
        fresh, self.read = self.found[self.read :], len(self.found)
        return fresh

    async def checked_offset(self) -> int:
        return self.checked

    async def store_checked_offset(self, offset: int) -> None:
        self.checked = offset

    async def close(self) -> None:
        """Nothing is open."""
