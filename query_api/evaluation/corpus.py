"""A labelled collection in the service: its documents published to a collection named by a hash of them, and awaited.

A collection of that name can only hold documents of this corpus as it is now, so which of them are there is all there
is to know about an earlier load, finished or not. Documents go through `POST /v1/documents`, which answers when Kafka
has confirmed them; that is also the backpressure.
"""

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from query_api.client import ServiceClient, ServiceUnavailable, document_positions
from query_api.evaluation.datasets import LabelledCollection, LabelledDocument
from query_api.evaluation.results import Loaded
from schemas.errors import Failure, MalformedEvent, WrongSetting
from schemas.ids import MAX_COLLECTION_CHARACTERS, DocumentKey
from schemas.receipts import Token, merge_tokens

CONTENT_TYPE = "text/plain"
HASH_DIGITS = 12
BATCH_DOCUMENTS = 200
BATCH_BYTES = 4 * 1024 * 1024
TIMEOUT_SECONDS = 120.0  # without progress
WAIT_SECONDS = 1.0
PAUSE_SECONDS = 1.0
SHOWN = 3

_NOT_IN_A_NAME = re.compile(r"[/\s\x00-\x1f\x7f]+")

Advance = Callable[[int], None]


class Corpus(msgspec.Struct, frozen=True):
    """`envelopes` is {document id in the service: envelope as JSON}; `unfilled` counts documents without text and
    title, which no search can find and which are not published."""

    collection: str
    envelopes: Mapping[str, bytes]
    unfilled: int


def corpus_of(collections: Sequence[LabelledCollection], pool: str | None = None) -> Corpus:
    """The corpus of one collection, or of several pooled under a name.

    Raises WrongSetting where an id or a name cannot be a document's key, or two pooled folders have the same name.
    """
    if pool is not None and len({each.name for each in collections}) < len(collections):
        raise WrongSetting("Two of the folders have the same name; rename one, so that their documents stay apart.")
    published = {
        served_id(each, document.id, pool): document
        for each in collections
        for document in each.documents
        if not document.is_empty
    }
    state = hashlib.sha256(CONTENT_TYPE.encode())
    for document_id, document in sorted(published.items()):
        state.update(msgspec.json.encode([document_id, *_fields(document).values()], order="deterministic"))
    name = _NOT_IN_A_NAME.sub("-", pool or collections[0].name)[: MAX_COLLECTION_CHARACTERS - HASH_DIGITS - 1]
    collection = f"{name}-{state.hexdigest()[:HASH_DIGITS]}"
    envelopes = {}
    for document_id, document in published.items():
        try:
            DocumentKey.checked(collection, document_id)
        except MalformedEvent as error:
            raise WrongSetting(f"The document {document.id!r} cannot be published: {error}") from error
        envelopes[document_id] = msgspec.json.encode(
            {"id": document_id, "collection": collection, "content_type": CONTENT_TYPE, **_fields(document)}
        )
    unfilled = sum(document.is_empty for each in collections for document in each.documents)
    return Corpus(collection, envelopes, unfilled)


def served_id(collection: LabelledCollection, document_id: str, pool: str | None) -> str:
    """A document's id in the service: its own; in a pool, where two folders may both have a `1`, after its folder's."""
    return document_id if pool is None else f"{collection.name}/{document_id}"


def _fields(document: LabelledDocument) -> dict[str, Any]:
    return {"title": document.title or None, "content": document.text or "", "metadata": document.metadata or {}}


def load(
    client: ServiceClient, corpus: Corpus, advance: Advance = lambda _: None, timeout_seconds: float = TIMEOUT_SECONDS
) -> Loaded:
    """Make the corpus searchable, text and graph; `advance` is called with the number of further documents that are.

    Safe to interrupt and to repeat: it sends what is not listed in the collection, and documents still on their way
    from an earlier load may be sent twice, which changes nothing. Raises WrongSetting when the collection holds what
    is not of this corpus or a document is refused, Failure when nothing is indexed for `timeout_seconds`.
    """
    began = time.monotonic()
    present = document_positions(client, corpus.collection)
    foreign = sorted(present.keys() - corpus.envelopes.keys())
    if foreign:
        raise WrongSetting(
            f"The collection {corpus.collection!r} holds {len(foreign)} documents that the folder does not, such as "
            f"{', '.join(foreign[:SHOWN])}: somebody else wrote to it. Delete them with 'thalweg delete', "
            f"or all with 'thalweg collections delete'."
        )
    missing = {document_id: body for document_id, body in corpus.envelopes.items() if document_id not in present}
    advance(len(present))
    token = merge_tokens(present.values())
    for batch in batches(missing):
        token = merge_tokens([str(token), _publish(client, batch, timeout_seconds)])
    if token.positions:
        _wait(client, corpus.collection, token, len(missing), advance, timeout_seconds)
    if missing:
        present = document_positions(client, corpus.collection)
    return Loaded(
        collection=corpus.collection,
        documents=len(present),
        sent=len(missing),
        missing=tuple(sorted(corpus.envelopes.keys() - present.keys())),
        token=str(token),
        seconds=round(time.monotonic() - began, 3),
    )


def already_loaded(client: ServiceClient, collection: str, labelled: LabelledCollection) -> Loaded:
    """A collection of the service as it is. Raises WrongSetting when it lacks a document that is judged."""
    began = time.monotonic()
    present = document_positions(client, collection)
    if not present:
        raise WrongSetting(f"The collection {collection!r} is empty, or there is none. Name another with --within.")
    judged = {document for grades in labelled.judgements.values() for document in grades}
    absent = sorted(judged - present.keys())
    if absent:
        raise WrongSetting(
            f"{len(absent)} judged documents are not in the collection {collection!r}, such as "
            f"{', '.join(absent[:SHOWN])}. Name the collection the questions are about, or leave --within out."
        )
    seconds = round(time.monotonic() - began, 3)
    return Loaded(collection=collection, documents=len(present), sent=0, missing=(), token="", seconds=seconds)


def batches(envelopes: Mapping[str, bytes]) -> Iterator[list[bytes]]:
    """The envelopes in their order, at most BATCH_DOCUMENTS and, but for a larger one alone, BATCH_BYTES at a time."""
    batch: list[bytes] = []
    size = 0
    for body in envelopes.values():
        if batch and (len(batch) == BATCH_DOCUMENTS or size + len(body) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(body)
        size += len(body)
    if batch:
        yield batch


def _publish(client: ServiceClient, batch: list[bytes], timeout_seconds: float) -> str:
    """The token of the batch once the log has all of it; retried while the log is unavailable."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            answer = client.post("/v1/documents", b"[" + b",".join(batch) + b"]")
        except ServiceUnavailable:
            if time.monotonic() > deadline:
                raise
        else:
            refused = [each for each in answer["refused"] if each["status"] != 503]
            if refused:
                raise WrongSetting(
                    f"{len(refused)} documents are refused, such as {refused[0]['id']!r}: {refused[0]['detail']} "
                    "Mend or remove them in the corpus."
                )
            if not answer["refused"]:
                return str(answer["token"])
            if time.monotonic() > deadline:
                raise Failure(str(answer["refused"][0]["detail"]))
        time.sleep(PAUSE_SECONDS)


def _wait(
    client: ServiceClient, collection: str, wanted: Token, sent: int, advance: Advance, timeout_seconds: float
) -> None:
    """Until a search by the graph, which comes last, shows the positions `wanted`.

    The search is a retrieval like any other: one record on the provenance topic, once there is an answer. Progress is
    estimated from the offsets that are still to come.
    """
    search = {"q": "river", "mode": "graph", "k": 1, "collection": collection, "wait_seconds": WAIT_SECONDS}
    advanced, fewest = 0, None
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            client.get("/v1/search", {**search, "after": str(wanted)})
        except ServiceUnavailable as problem:
            left = _lag(wanted.positions, client.get("/v1/status")["positions"])
            if fewest is None or left < fewest:
                fewest, deadline = left, time.monotonic() + timeout_seconds
            advance(max(0, sent - left - advanced))
            advanced = max(advanced, sent - left)
            if time.monotonic() > deadline:
                raise Failure(
                    f"Nothing was indexed for {timeout_seconds:.0f} s, {left:,} records are waiting in Kafka, where "
                    f"they are safe. Is a worker running? 'thalweg status' tells; the same command goes on from here. "
                    f"({problem})"
                ) from problem
        else:
            advance(sent - advanced)
            return


def _lag(wanted: Mapping[int, int], reached_token: str | None) -> int:
    """Offsets between what is reached and what is wanted, other writers' records among them."""
    reached = merge_tokens([reached_token or ""]).positions
    return sum(max(0, offset - reached.get(partition, -1)) for partition, offset in wanted.items())
