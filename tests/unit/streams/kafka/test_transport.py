"""What the agents are told of offsets at which the log holds nothing that counts."""

from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from kafka_client.security import aiokafka_options
from kafka_client.unreadable_batches import skip_none
from schemas.settings import KafkaConnection
from streams.faust_app import build_app
from streams.kafka.records import GAP_HEADERS
from streams.kafka.transport import _Consumer, _ConsumerThread, credentials
from streams.settings import WorkerSettings

PLACE = TopicPartition("t", 0)


class At:
    """A record, as far as its offset."""

    headers = ()

    def __init__(self, offset: int) -> None:
        self.offset = offset


def thread() -> Any:
    made = _ConsumerThread.__new__(_ConsumerThread)
    made._delivered = {}
    return made


def offsets(made: Any, before: int, after: int, *records: int) -> list[tuple[int, bool]]:
    """(offset, whether it is a gap) of what comes of one fetch."""
    found = {PLACE: [At(offset) for offset in records]} if records else {}
    whole = made._with_gaps({PLACE: before}, {PLACE: after}, found)
    return [(each.offset, each.headers is GAP_HEADERS) for each in whole.get(PLACE, ())]


def test_records_without_a_gap_come_as_they_are() -> None:
    assert offsets(thread(), 0, 3, 0, 1, 2) == [(0, False), (1, False), (2, False)]


def test_marks_behind_the_last_record_are_a_gap() -> None:
    assert offsets(thread(), 0, 5, 0, 2) == [(0, False), (2, False), (4, True)]


def test_a_fetch_of_nothing_but_aborted_records_is_a_gap_once() -> None:
    made = thread()
    assert offsets(made, 7, 9) == [(8, True)]
    assert offsets(made, 9, 9) == []


def test_a_move_between_two_fetches_is_seen_at_the_next() -> None:
    made = thread()
    assert offsets(made, 0, 1, 0) == [(0, False)]
    assert offsets(made, 4, 4) == [(3, True)]


def test_a_partition_that_is_set_back_begins_there() -> None:
    made = thread()
    offsets(made, 0, 9, *range(9))
    assert offsets(made, 2, 3, 2) == [(2, False)]
    assert offsets(made, 3, 5) == [(4, True)]


def test_a_partition_that_was_taken_away_is_forgotten() -> None:
    made = thread()
    offsets(made, 0, 1, 0)
    made._with_gaps({}, {}, {})
    assert offsets(made, 6, 6) == []


async def test_last_acknowledged_offset_is_committed_whatever_is_missing(tmp_path: Path) -> None:
    settings = WorkerSettings.model_validate(
        {"storage": {"data_dir": tmp_path}, "kafka": {"bootstrap_servers": "broker:9092"}}
    )
    app = build_app(settings, settings.kafka, "group", skip_none, partitions=1)
    consumer = app.transport.create_consumer(print, on_partitions_revoked=print, on_partitions_assigned=print)
    consumer._acked[PLACE] += [0, 2, 5]
    consumer._acked_index[PLACE] |= {0, 2, 5}
    assert consumer._new_offset(PLACE) == 6
    assert (consumer._acked[PLACE], consumer._acked_index[PLACE]) == ([], set())
    assert consumer._new_offset(PLACE) is None
    consumer._thread.thread_loop.close()


@pytest.mark.parametrize("own", [_Consumer, _ConsumerThread])
def test_faust_calls_the_methods_that_are_overridden(own: type) -> None:
    of_faust = own.__mro__[1]
    for name in vars(own).keys() - {"_with_gaps", "_stop_at", "_retry"}:
        assert hasattr(of_faust, name), f"Faust has no {name} any more"


PASSWORD = {"sasl_username": "alice", "sasl_password": "opensesame"}
CLIENT = {
    "sasl_oauthbearer_token_endpoint_url": "https://tokens.example.org/token",
    "sasl_oauthbearer_client_id": "thalweg",
    "sasl_oauthbearer_client_secret": "opensesame",
}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"security_protocol": "SSL"},
        {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", **PASSWORD},
        {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", **PASSWORD},
        {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", **CLIENT},
        {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER", **CLIENT},
    ],
)
def test_faust_makes_its_clients_as_ours_are_made(settings: dict[str, str]) -> None:
    connection = KafkaConnection.model_validate({"bootstrap_servers": "broker:9092"} | settings)
    by_faust = credentials_to_aiokafka_auth(credentials(connection))
    ours = aiokafka_options(connection)
    assert by_faust.keys() - {"ssl_context"} == ours.keys() - {"ssl_context", "bootstrap_servers"}
    compared = by_faust.keys() - {"ssl_context", "sasl_oauth_token_provider"}
    assert {name: by_faust[name] for name in compared} == {name: ours[name] for name in compared}
    assert type(by_faust.get("ssl_context")) is type(ours["ssl_context"])
