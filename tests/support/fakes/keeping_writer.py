"""A log that takes everything."""

from query_api.ingest.producer import OutgoingRecord
from schemas.ids import Position


class KeepingWriter:
    """Keeps the values of what it is given. `first` is the position of the first record."""

    def __init__(self, first: Position = Position(0, 0)) -> None:  # noqa: B008 -- immutable
        self.values: list[bytes | None] = []
        self._first = first

    async def publish(self, topic: str, records: list[OutgoingRecord]) -> list[Position]:
        del topic
        begin = self._first.offset + len(self.values)
        self.values += [record.value for record in records]
        return [Position(self._first.partition, begin + at) for at in range(len(records))]
