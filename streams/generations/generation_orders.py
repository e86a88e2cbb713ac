"""What is wanted of each generation: the orders on the curation topic, reduced to the newest of each."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from schemas.curation import decode_curation
from schemas.errors import MalformedEvent
from schemas.generations import GenerationEvent, GenerationOrder
from streams.kafka.records import SourceRecord


class PlacedOrder(NamedTuple):
    """An order, and the offset it has on the curation topic; `order` is None where the generation is to be dropped."""

    offset: int
    order: GenerationOrder | None


class GenerationOrders:
    """The newest order about each generation."""

    def __init__(self) -> None:
        self._newest: dict[str, PlacedOrder] = {}

    def take(self, records: Iterable[SourceRecord]) -> None:
        """Records of the curation topic in their order. What is malformed becomes a dead letter elsewhere, and changes
        nothing."""
        for record in records:
            try:
                event = decode_curation(record.key, record.value)
            except MalformedEvent:
                continue
            if isinstance(event, GenerationEvent):
                self._newest[event.name] = PlacedOrder(record.offset, event.order)

    def of(self, name: str) -> PlacedOrder | None:
        return self._newest.get(name)

    def dropped(self) -> list[str]:
        return [name for name, placed in self._newest.items() if placed.order is None]

    def wanted(self, existing: Collection[str]) -> dict[str, PlacedOrder]:
        """Those to be built or switched to, the latest order last: about generations that exist here, or whose base
        does."""
        found = {
            name: placed
            for name, placed in self._newest.items()
            if placed.order is not None and (name in existing or placed.order.base in existing)
        }
        return dict(sorted(found.items(), key=lambda item: item[1].offset))

    def target(self, existing: Collection[str]) -> str | None:
        """The generation that is to be live; None where nothing was ordered."""
        wanted = reversed(list(self.wanted(existing).items()))
        return next((name for name, placed in wanted if placed.order and placed.order.wanted == "live"), None)
