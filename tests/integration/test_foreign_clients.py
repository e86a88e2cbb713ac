"""Documents by the clients that people use, with each codec of Kafka and with headers as they come: all are indexed."""

import json

import pytest

from tests.support.processes.producers import CLIENTS, CODECS, Sent
from tests.support.processes.worker import WorkerProcess, client

TEXT = "The Rhine flows past Basel. Basel lies in Switzerland."


def documents(collection: str) -> list[Sent]:
    """One for each oddity of headers, and a plain large one, which makes the batch worth compressing."""

    def envelope(name: str, text: str = TEXT) -> tuple[bytes, bytes]:
        value = {"id": name, "collection": collection, "content": f"{text} This is {name}."}
        return f"{collection}/{name}".encode(), json.dumps(value).encode()

    event = {
        "ce_specversion": "1.0", "ce_id": "1", "ce_source": "/test", "ce_type": "document.created",
        "ce_subject": "event", "content-type": "text/markdown",
    }  # fmt: skip
    return [
        Sent(*envelope("bare")),
        Sent(*envelope("large", TEXT * 400)),
        Sent(*envelope("repeated"), [("team", b"a"), ("team", b"b"), ("team", b"a")]),
        Sent(*envelope("null"), [("nothing", None), ("empty", b"")]),
        Sent(*envelope("binary"), [("trace", bytes(range(256))), ("größe", b"\xff\xfe")]),
        Sent(
            f"{collection}/raw.txt".encode(), TEXT.encode(), [("content-type", b"text/plain"), ("thalweg-x", b"\xff")]
        ),
        Sent(f"{collection}/event".encode(), TEXT.encode(), [(name, text.encode()) for name, text in event.items()]),
    ]


@pytest.mark.parametrize("name", CLIENTS)
def test_records_of_each_client_and_codec_are_indexed(worker: WorkerProcess, name: str) -> None:
    with client(worker.kafka, worker.prefix) as user:
        sent = {codec: documents(f"{name}-{codec}") for codec in CODECS}
        CLIENTS[name](worker.kafka, user.names.documents, sent)
        wanted = {record.key.decode() for records in sent.values() for record in records}
        outcomes = {
            receipt.key: receipt.outcome
            for receipt in user.receipts_where(lambda each: each.key in wanted, len(wanted))
        }
    assert outcomes == dict.fromkeys(wanted, "indexed")
