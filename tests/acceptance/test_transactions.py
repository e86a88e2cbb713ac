"""A producer with transactions: only what it committed is indexed, and its marks are no lag."""

import json
from uuid import uuid4

import httpx
from confluent_kafka import Message, Producer

from schemas.topics import TopicNames
from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

DOCUMENTS = TopicNames("thalweg.").documents
SECONDS = 30


class TransactionalProducer:
    """librdkafka with one transaction after the other; `token` names the record sent last."""

    def __init__(self, hashing: Installation) -> None:
        settings = {"bootstrap.servers": hashing.kafka, "transactional.id": uuid4().hex, "log_level": 0}
        self.producer = Producer({**settings, "partitioner": "murmur2_random"})
        self.producer.init_transactions(SECONDS)
        self.token = ""

    def send(self, name: str, text: str | None) -> None:
        value = None if text is None else json.dumps({"id": name, "collection": "t", "content": text})
        self.producer.produce(DOCUMENTS, key=f"t/{name}", value=value, on_delivery=self._sent)
        self.producer.flush(SECONDS)

    def _sent(self, error: object, message: Message) -> None:
        assert error is None
        self.token = f"{message.partition()}:{message.offset()}"

    def begin(self) -> None:
        self.producer.begin_transaction()

    def commit(self) -> None:
        self.producer.commit_transaction(SECONDS)

    def abort(self) -> None:
        self.producer.abort_transaction(SECONDS)


def live(hashing: Installation, token: str) -> set[str]:
    """The ids of the documents that are there once the token is covered."""
    hashing.search(q="river", after=token, wait_seconds=30)
    answer = httpx.get(f"{hashing.url}/v1/documents", params={"collection": "t"}, timeout=30).json()
    return {each["id"] for each in answer["documents"]}


def require_no_lag(hashing: Installation) -> None:
    def lag() -> object:
        return httpx.get(f"{hashing.url}/v1/status", timeout=30).json()["lag"]

    wait_until(lambda: all(each["records"] == 0 for each in lag()), lambda: f"no lag: {lag()}")


def test_committed_transaction_is_indexed_and_aborted_one_is_not(hashing: Installation) -> None:
    producer = TransactionalProducer(hashing)
    producer.begin()
    producer.send("kept", "The river Rhine.")
    producer.commit()
    assert live(hashing, producer.token) == {"kept"}
    require_no_lag(hashing)
    producer.begin()
    producer.send("ghost", "The river Styx.")
    producer.abort()
    assert live(hashing, producer.token) == {"kept"}  # a token of an aborted record is covered too
    producer.begin()
    producer.send("kept", None)
    producer.abort()
    assert live(hashing, producer.token) == {"kept"}
    require_no_lag(hashing)
    assert httpx.get(f"{hashing.url}/readyz", timeout=10).status_code == 200


def test_open_transaction_holds_back_later_records_and_is_shown(hashing: Installation) -> None:
    producer = TransactionalProducer(hashing)
    producer.begin()
    producer.send("kept", "The river Rhine, again.")
    producer.commit()
    committed = producer.token
    before = live(hashing, committed)
    producer.begin()
    producer.send("late", "The river Danube.")

    def opened() -> list[dict[str, object]]:
        return list(httpx.get(f"{hashing.url}/v1/status", timeout=30).json()["open_transactions"])

    def is_told() -> bool:  # and the one before, seen while it was open, no more
        return [f"{held['partition']}:{held['offset']}" for held in opened()] == [producer.token]

    wait_until(is_told, "the status tells of the open transaction")
    [held] = opened()
    assert (held["topic"], held["records"]) == (DOCUMENTS, 1)
    require_no_lag(hashing)
    assert live(hashing, committed) == before
    early = httpx.get(f"{hashing.url}/v1/search", params={"q": "river", "after": producer.token, "wait_seconds": 1})
    assert early.status_code == 503
    wait_until(lambda: "transaction has been open" in hashing.run("status").stdout, "a note says so", 40)
    assert httpx.get(f"{hashing.url}/readyz", timeout=10).status_code == 200
    producer.commit()
    assert live(hashing, producer.token) == before | {"late"}
    wait_until(lambda: not opened(), "none is open")
    require_no_lag(hashing)
    assert hashing.verify()["ok"]
