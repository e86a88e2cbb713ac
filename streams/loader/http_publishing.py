"""Records through the query service instead of Kafka: for machines that reach only HTTP."""

import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import msgspec

from schemas.errors import Failure
from schemas.events import ENVELOPE_TYPE, DocumentUpsert, Envelope, decode_document_event
from schemas.ids import DocumentKey, parse_positions
from schemas.progress_bars import Bars
from schemas.receipts import NOTHING_DELETED, Outcome, Receipt, Token, merge_tokens, parse_token
from schemas.settings import LimitSettings
from streams.loader.folders import KnownDocument, Refused
from streams.loader.publishing import Followed, Published
from streams.loader.sources import Record

BATCH_DOCUMENTS = 100
BATCH_BYTES = 4 * 1024 * 1024
THREADS = 8
PAUSE_SECONDS = 0.25

JSONObject = dict[str, Any]


class Service(Protocol):
    """What is asked of the query service. Writes that it cannot take now are repeated as it says (429, 503).

    Raises Unreachable where nothing answers, WrongSetting for a wrong key, Failure for any other refusal.
    """

    def get(self, path: str) -> JSONObject: ...
    def publish(self, envelopes: list[bytes]) -> JSONObject: ...
    def withdraw(self, collection: str, document_id: str) -> JSONObject: ...
    def document_status(self, collection: str, document_id: str, token: str) -> JSONObject: ...
    def documents(self, collection: str, *, hand_made: bool = True) -> Iterable[JSONObject]: ...
    def collections_with(self, document_id: str) -> list[str]: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Written:
    """A record that is in the log, by its token."""

    key: DocumentKey
    token: Token
    deletes: bool

    def receipt(self, status: JSONObject) -> Receipt:
        """What became of it, as the worker would say it."""
        ((partition, offset), *_) = self.token.positions.items()
        nothing = self.deletes and status["status"] == "unknown"
        outcome: Outcome = status["status"] if status["status"] in get_args(Outcome) else "superseded"
        return Receipt(
            key=str(self.key),
            outcome="deleted" if nothing else outcome,
            partition=partition,
            offset=offset,
            generation="",
            reason="dead_lettered" if status["status"] == "dead_lettered" else None,
            message=NOTHING_DELETED if nothing else status["message"],
            notes=tuple(status["notes"]),
        )


@dataclass(frozen=True)
class ServicePublisher:
    """Sends batches to `POST /v1/documents`, and asks for the status of each document.

    An unchanged document counts as indexed: the service's status does not distinguish them.
    """

    service: Service
    limits: LimitSettings
    sleep: Callable[[float], None] = time.sleep

    def send(
        self, records: Iterable[Record], published: Published, bars: Bars, patience_seconds: float | None
    ) -> Followed:
        sent = bars("published")
        published.began_seconds = time.monotonic()
        written: list[Written] = []
        followed = Followed()
        for batch in _batches(records):
            take = self._withdraw if batch[0].value is None else self._publish
            for each in take(batch, followed):
                written.append(each)
                published.records += 1
                published.topic_id = each.token.log or ""
                for partition, offset in each.token.positions.items():
                    published.reached[partition] = max(published.reached.get(partition, -1), offset)
                sent.advance()
        sent.set(published.records, published.records)
        if patience_seconds is not None and written:
            self._await(written, bars("searchable", len(written)).set, patience_seconds)
            with ThreadPoolExecutor(THREADS) as pool:
                for receipt in pool.map(self._receipt, written):
                    followed.take(receipt)
        return followed

    def documents(self, collection: str) -> list[KnownDocument]:
        return [
            KnownDocument.of(each["id"], each["metadata"], each["stated_fields"])
            for each in self.service.documents(collection)
        ]

    def collections_with(self, document_id: str) -> list[str]:
        return self.service.collections_with(document_id)

    def _publish(self, batch: list[Record], followed: Followed) -> Iterator[Written]:
        waiting = batch
        while waiting:
            answer = self.service.publish([envelope_of(record, self.limits) for record in waiting])
            log = parse_token(answer["token"]).log if answer["token"] else None
            for each in answer["accepted"]:
                token = Token(parse_positions(each["position"]), log)
                yield Written(waiting[each["index"]].key, token, deletes=False)
            again = []
            for each in answer["refused"]:
                record = waiting[each["index"]]
                if each["status"] == 503:  # the log went away between two members
                    again.append(record)
                else:
                    followed.refused.append(Refused(record.origin, each["reason"], each["detail"]))
            waiting = again

    def _withdraw(self, batch: list[Record], _followed: Followed) -> Iterator[Written]:
        def withdraw(record: Record) -> Written:
            answer = self.service.withdraw(record.key.collection, record.key.document_id)
            return Written(record.key, parse_token(answer["token"]), deletes=True)

        with ThreadPoolExecutor(THREADS) as pool:
            yield from pool.map(withdraw, batch)

    def _await(self, written: list[Written], show: Callable[[int], None], patience_seconds: float) -> None:
        """Until the tables have reached everything. Raises Failure when nothing moves for `patience_seconds`."""
        wanted = merge_tokens(str(each.token) for each in written).positions
        last: dict[int, int] | None = None
        since = time.monotonic()
        while True:
            reached = merge_tokens([self.service.get("/v1/status")["positions"] or ""]).positions
            show(sum(each.token.is_reached(reached) for each in written))
            if Token(wanted).is_reached(reached):
                return
            if reached != last:
                last, since = reached, time.monotonic()
            elif time.monotonic() - since > patience_seconds:
                raise Failure(
                    f"Nothing was indexed for {patience_seconds:.0f} s. The records are safe in Kafka; is a worker "
                    "running? See 'thalweg status'."
                )
            self.sleep(PAUSE_SECONDS)

    def _receipt(self, written: Written) -> Receipt:
        """Waits for the moment between the tables and the receipt, in which a record may yet be a dead letter."""
        while True:
            status = self.service.document_status(written.key.collection, written.key.document_id, str(written.token))
            if status["status"] != "pending":
                return written.receipt(status)
            self.sleep(PAUSE_SECONDS)


def envelope_of(record: Record, limits: LimitSettings) -> bytes:
    """The record as a member of a batch over HTTP: what the worker would read of either is the same."""
    value = record.value or b""
    if dict(record.headers).get("content-type") == ENVELOPE_TYPE.encode():
        return value
    event = decode_document_event(str(record.key).encode(), value, record.headers, limits)
    if not isinstance(event, DocumentUpsert):
        raise TypeError(f"{record.origin} is not a document")
    return msgspec.json.encode(
        Envelope(
            id=event.key.document_id,
            collection=event.key.collection,
            content_base64=b64encode(event.content).decode(),
            content_type=event.content_type,
            uri=event.uri,
            metadata=event.metadata,
        )
    )


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """In order: upserts or deletes, of one document once: of two in a batch the service would refuse one."""
    batch: list[Record] = []
    keys: set[DocumentKey] = set()
    size = 0
    for record in records:
        length = len(record.value or b"")
        full = len(batch) >= BATCH_DOCUMENTS or size + length > BATCH_BYTES
        if batch and (full or record.key in keys or (record.value is None) != (batch[0].value is None)):
            yield batch
            batch, keys, size = [], set(), 0
        batch.append(record)
        keys.add(record.key)
        size += length
    if batch:
        yield batch
