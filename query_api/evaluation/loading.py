"""A corpus brought into the service and followed until it is searchable; what is there already is not sent again.

It goes through the service's own `POST /v1/documents`, which puts every document into Kafka and answers when Kafka has
confirmed it; that is also the backpressure. `streams/loader`, which talks to Kafka itself, belongs to the other
process, which this one may not import; and this way the address of the service is all an evaluation has to know.
"""

import time
from collections.abc import Callable, Iterator, Mapping

from query_api.client import NotNow, ServiceClient, listed
from query_api.evaluation.corpus import Corpus
from query_api.evaluation.datasets import LabelledCollection
from query_api.evaluation.findings import Loaded
from schemas.errors import Failure, WrongSetting
from schemas.tokens import Token, merge_tokens

BATCH_DOCUMENTS = 200
BATCH_BYTES = 4 * 1024 * 1024
PATIENCE_SECONDS = 120.0
WAIT_SECONDS = 1.0
PAUSE_SECONDS = 1.0
SHOWN = 3

Advance = Callable[[int], None]


def load(
    client: ServiceClient, corpus: Corpus, advance: Advance = lambda _: None, patience_seconds: float = PATIENCE_SECONDS
) -> Loaded:
    """Make the corpus searchable, text and graph; `advance` is told how many more documents are.

    Safe to break off and to repeat: it sends what is not listed in the collection, and documents still on their way
    from an earlier load may be sent twice, which changes nothing. Raises WrongSetting when the collection holds what
    is not of this corpus or a document is refused, Failure when nothing is indexed for `patience_seconds`.
    """
    began = time.monotonic()
    held = listed(client, corpus.collection)
    strange = sorted(held.keys() - corpus.envelopes.keys())
    if strange:
        raise WrongSetting(
            f"The collection {corpus.collection!r} holds {len(strange)} documents that the folder does not, such as "
            f"{', '.join(strange[:SHOWN])}: somebody else wrote to it. Delete them with 'thalweg delete', "
            f"or all with 'thalweg collections delete'."
        )
    wanting = {document_id: body for document_id, body in corpus.envelopes.items() if document_id not in held}
    advance(len(held))
    reached = merge_tokens(held.values())
    for batch in batches(wanting):
        reached = merge_tokens([str(reached), _publish(client, batch, patience_seconds)])
    if reached.positions:
        _wait(client, corpus.collection, reached, len(wanting), advance, patience_seconds)
    if wanting:
        held = listed(client, corpus.collection)
    return Loaded(
        collection=corpus.collection,
        documents=len(held),
        sent=len(wanting),
        missing=tuple(sorted(corpus.envelopes.keys() - held.keys())),
        token=str(reached),
        seconds=round(time.monotonic() - began, 3),
    )


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


def _publish(client: ServiceClient, batch: list[bytes], patience_seconds: float) -> str:
    """The token of the batch once the log has all of it. A log that is out of reach is waited for."""
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            answer = client.post("/v1/documents", b"[" + b",".join(batch) + b"]")
        except NotNow:
            if time.monotonic() > deadline:
                raise
        else:
            lasting = [each for each in answer["refused"] if each["status"] != 503]
            if lasting:
                raise WrongSetting(
                    f"{len(lasting)} documents are refused, such as {lasting[0]['id']!r}: {lasting[0]['detail']} "
                    "Mend or remove them in the corpus."
                )
            if not answer["refused"]:
                return str(answer["token"])
            if time.monotonic() > deadline:
                raise Failure(str(answer["refused"][0]["detail"]))
        time.sleep(PAUSE_SECONDS)


def _wait(
    client: ServiceClient,
    collection: str,
    wanted: Token,
    sent: int,
    advance: Advance,
    patience_seconds: float,
) -> None:
    """Until a search by the graph, which comes last, shows the positions `wanted`.

    The search is a retrieval like any other: one record on the provenance topic, once there is an answer.
    How many documents `advance` is told of is reckoned from the offsets that are still to come.
    """
    asked = {"q": "river", "mode": "graph", "k": 1, "collection": collection, "wait_seconds": WAIT_SECONDS}
    told, fewest = 0, None
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            client.get("/v1/search", {**asked, "after": str(wanted)})
        except NotNow as problem:
            left = _left(wanted.positions, client.get("/v1/status")["positions"])
            if fewest is None or left < fewest:
                fewest, deadline = left, time.monotonic() + patience_seconds
            advance(max(0, sent - left - told))
            told = max(told, sent - left)
            if time.monotonic() > deadline:
                raise Failure(
                    f"Nothing was indexed for {patience_seconds:.0f} s, {left:,} records are waiting in Kafka, where "
                    f"they are safe. Is a worker running? 'thalweg status' tells; the same command goes on from here. "
                    f"({problem})"
                ) from problem
        else:
            advance(sent - told)
            return


def _left(wanted: Mapping[int, int], reached_token: str | None) -> int:
    """Offsets between what is reached and what is wanted, other writers' records among them."""
    reached = merge_tokens([reached_token or ""]).positions
    return sum(max(0, offset - reached.get(partition, -1)) for partition, offset in wanted.items())


def there_already(client: ServiceClient, collection: str, labelled: LabelledCollection) -> Loaded:
    """A collection taken as it is. Raises WrongSetting when it lacks a document that is judged."""
    began = time.monotonic()
    held = listed(client, collection)
    if not held:
        raise WrongSetting(f"The collection {collection!r} is empty, or there is none. Name another with --within.")
    judged = {document for grades in labelled.judgements.values() for document in grades}
    strange = sorted(judged - held.keys())
    if strange:
        raise WrongSetting(
            f"{len(strange)} judged documents are not in the collection {collection!r}, such as "
            f"{', '.join(strange[:SHOWN])}. Name the collection the questions are about, or leave --within out."
        )
    return Loaded(
        collection=collection,
        documents=len(held),
        sent=0,
        missing=(),
        token="",
        seconds=round(time.monotonic() - began, 3),
    )
