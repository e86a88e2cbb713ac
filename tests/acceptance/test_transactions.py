"""A producer with transactions: only what it committed is indexed, and its marks are no lag."""

import json
from collections.abc import Iterator
from uuid import uuid4

import httpx
import pytest
from confluent_kafka import Message, Producer

from schemas.topics import TopicNames
from tests.support.processes.installation import Installation, installation
from tests.support.waiting import wait_until

DOCUMENTS = TopicNames("thalweg.").documents
SECONDS = 30


@pytest.fixture(scope="module")
def thalweg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    data_dir = tmp_path_factory.mktemp("transactions") / "data"
    settings = {"THALWEG_EMBEDDING__PROVIDER": "hashing", "THALWEG_SERVICE__MAX_LAG_SECONDS": "4"}
    with installation(data_dir, **settings) as running:
        yield running


class TransactionalProducer:
    """librdkafka with one transaction after the other; `token` names the record sent last."""

    def __init__(self, thalweg: Installation) -> None:
        settings = {"bootstrap.servers": thalweg.kafka, "transactional.id": uuid4().hex, "log_level": 0}
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


def live(thalweg: Installation, token: str) -> set[str]:
    """The ids of the documents that are there once the token is covered."""
    thalweg.search(q="river", after=token, wait_seconds=30)
    answer = httpx.get(f"{thalweg.url}/v1/documents", params={"collection": "t"}, timeout=30).json()
    return {each["id"] for each in answer["documents"]}


def require_no_lag(thalweg: Installation) -> None:
    def lag() -> object:
        return httpx.get(f"{thalweg.url}/v1/status", timeout=30).json()["lag"]

    wait_until(lambda: all(each["records"] == 0 for each in lag()), lambda: f"no lag: {lag()}")


def test_what_was_committed_is_there_and_what_was_aborted_never_was(thalweg: Installation) -> None:
    producer = TransactionalProducer(thalweg)
    producer.begin()
    producer.send("kept", "The river Rhine.")
    producer.commit()
    assert live(thalweg, producer.token) == {"kept"}
    require_no_lag(thalweg)
    producer.begin()
    producer.send("ghost", "The river Styx.")
    producer.abort()
    assert live(thalweg, producer.token) == {"kept"}  # a token of an aborted record is covered too
    producer.begin()
    producer.send("kept", None)
    producer.abort()
    assert live(thalweg, producer.token) == {"kept"}
    require_no_lag(thalweg)
    assert httpx.get(f"{thalweg.url}/readyz", timeout=10).status_code == 200


def test_an_open_transaction_holds_back_what_follows_it_and_is_told(thalweg: Installation) -> None:
    producer = TransactionalProducer(thalweg)
    producer.begin()
    producer.send("kept", "The river Rhine, again.")
    producer.commit()
    committed = producer.token
    before = live(thalweg, committed)
    producer.begin()
    producer.send("late", "The river Danube.")

    def opened() -> list[dict[str, object]]:
        return list(httpx.get(f"{thalweg.url}/v1/status", timeout=30).json()["open_transactions"])

    def is_told() -> bool:  # and the one before, seen while it was open, no more
        return [f"{held['partition']}:{held['offset']}" for held in opened()] == [producer.token]

    wait_until(is_told, "the status tells of the open transaction")
    [held] = opened()
    assert (held["topic"], held["records"]) == (DOCUMENTS, 1)
    require_no_lag(thalweg)
    assert live(thalweg, committed) == before
    early = httpx.get(f"{thalweg.url}/v1/search", params={"q": "river", "after": producer.token, "wait_seconds": 1})
    assert early.status_code == 503
    wait_until(lambda: "transaction has been open" in thalweg.run("status").stdout, "a note says so", 40)
    assert httpx.get(f"{thalweg.url}/readyz", timeout=10).status_code == 200
    producer.commit()
    assert live(thalweg, producer.token) == before | {"late"}
    wait_until(lambda: not opened(), "none is open")
    require_no_lag(thalweg)
    assert thalweg.run_json("verify")["ok"]
