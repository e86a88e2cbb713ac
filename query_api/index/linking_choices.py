"""How collections chose to be linked, followed on the curation topic: a search may go by it without asking the log."""

from collections.abc import Callable, Mapping, Sequence

from kafka_client.unreadable_batches import Skip
from query_api.index.follower import LocateBroker, Span, TailedRecord, TopicTail
from schemas.curation import LinkingChoice, LinkingEvent, decode_curation
from schemas.errors import MalformedEvent

RECORD_BYTES = 1024 * 1024


class LinkingChoices:
    """`by_collection` is what the newest record of each says, as far as it was read: empty until the log is reached,
    kept while it is away. `changed` is called when it is another."""

    def __init__(self, topic: str, locate_broker: LocateBroker, changed: Callable[[], None], skip: Skip) -> None:
        self.by_collection: Mapping[str, LinkingChoice] = {}
        self._changed = changed
        self._tail = TopicTail(topic, locate_broker, _all, self._take, record_bytes=RECORD_BYTES, skip=skip)

    async def run(self) -> None:
        await self._tail.run()

    async def _take(self, records: Sequence[TailedRecord]) -> None:
        """What the worker refuses as malformed is passed over, as there."""
        choices = dict(self.by_collection)
        for record in records:
            try:
                event = decode_curation(record.key, record.value)
            except MalformedEvent:
                continue
            if isinstance(event, LinkingEvent):
                choices.pop(event.collection, None)
                if event.choice is not None:
                    choices[event.collection] = event.choice
        if choices != self.by_collection:
            self.by_collection = choices
            self._changed()


def _all(spans: Mapping[int, Span]) -> Mapping[int, int]:
    return {partition: span.beginning for partition, span in spans.items()}
