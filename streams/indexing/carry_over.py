"""Nodes and edges that people made with earlier versions: records of the curation topic, sent again as documents."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from schemas.curation import encode_choice
from schemas.events import Envelope
from schemas.graph_documents import MEDIA_TYPES, made_key
from streams.indexing.settings_reader import CollectionSettings, EarlierEdit
from streams.kafka.producer import ConfirmedProducer
from streams.worker_log import log

POLL_SECONDS = 1.0
BATCH_RECORDS = 100


@dataclass(eq=False)
class CarryOver:
    """Sends each as a document, confirmed, then takes it back on the curation topic, confirmed. What is cut off between
    the two is sent again: its version is the offset of its record, so that this changes nothing."""

    edits: CollectionSettings
    producer: ConfirmedProducer
    partition_of: Callable[[bytes], int]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _done: dict[bytes, int] = field(default_factory=dict)  # that they were taken back is read later

    async def run(self) -> None:
        """Until cancelled: a service of an earlier version may still write some."""
        while True:
            await self.process()
            await self.sleep(POLL_SECONDS)

    async def process(self) -> None:
        """All that are known now."""
        waiting = iter(
            [(key, each) for key, each in self.edits.earlier_edits.items() if self._done.get(key, -1) < each.offset]
        )
        while batch := dict(islice(waiting, BATCH_RECORDS)):
            await self.producer.send_documents([self._record(each) for each in batch.values()])
            await self.producer.send_curation([(key, None) for key in batch])
            self._done |= {key: each.offset for key, each in batch.items()}
            log.info("nodes and edges were made documents", records=len(batch))

    def _record(self, made: EarlierEdit) -> tuple[bytes, bytes, int]:
        """The key, value and partition of its document."""
        document = made_key(made.collection, made.kind, made.id)
        key = document.encoded()
        envelope = Envelope(
            id=document.document_id,
            collection=document.collection,
            content=encode_choice(made.edit).decode(),
            content_type=MEDIA_TYPES[made.kind],
            version=made.offset,
        )
        return key, msgspec.json.encode(envelope), self.partition_of(key)
