"""Which records a replay is about."""

import json

import pytest
from pydantic import ValidationError

from schemas.curation import decode_curation, encode_choice
from schemas.errors import MalformedEvent
from schemas.ids import Position
from schemas.orders import REPLAY, OrderEvent, Replay, ReplayRange, ReplayRequest, order_key


@pytest.mark.parametrize(
    ("order", "included"),
    [
        ({}, ["0:0", "0:5", "1:0", "1:5"]),
        ({"first": "0:1"}, ["0:5"]),
        ({"last": "1:4"}, ["1:0"]),
        ({"first": "0:5", "last": "0:5"}, ["0:5"]),
        ({"first": "0:5", "last": "1:0"}, ["0:5", "1:0"]),
        ({"first": "0:5", "last": "0:4"}, []),
        ({"since_ms": 5}, ["0:5", "1:5"]),
        ({"since_ms": 5, "partition": 1}, ["1:5"]),
        ({"first": "0:0", "partition": 1}, []),
    ],
)
def test_the_range_has_its_ends_and_what_no_position_names_is_left_out(
    order: dict[str, object], included: list[str]
) -> None:
    wanted = ReplayRange(Replay(generation="g0001", **order))
    records = [Position(partition, offset) for partition in (0, 1) for offset in (0, 5)]
    assert [str(each) for each in records if wanted.includes(each, each.offset)] == included


def test_an_order_crosses_the_log() -> None:
    replay = Replay(generation="g0001", first="0:17,3:4", since_ms=9, state="running", changed=2)
    assert decode_curation(order_key(REPLAY, "5f3a9c5f3a9c"), encode_choice(replay)) == OrderEvent(
        REPLAY, "5f3a9c5f3a9c", replay
    )
    assert decode_curation(order_key(REPLAY, "5f3a9c5f3a9c"), None) == OrderEvent(REPLAY, "5f3a9c5f3a9c", None)
    with pytest.raises(MalformedEvent, match="not an id of a replay"):
        decode_curation(order_key(REPLAY, "x"), None)
    with pytest.raises(MalformedEvent, match="first"):
        decode_curation(order_key(REPLAY, "5f3a9c5f3a9c"), b'{"generation": "g0001", "first": "zero"}')


def test_a_request_names_a_range() -> None:
    assert ReplayRequest.model_validate({"from": "0:17"}).first == "0:17"
    with pytest.raises(ValidationError, match="Say which records"):
        ReplayRequest.model_validate({})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"seas/relink/a1", b'{"state":"running","documents":3,"of":7,"changed":1,"skipped":0}'),
        (
            b"*/repair/5f3a9c5f3a9c",
            b'{"generation":"g0001","documents":["seas/a"],"graph":false,"state":"done","repaired":1,"kept":0,"failed":0}',
        ),
        (
            b"*/replay/5f3a9c5f3a9c",
            b'{"generation":"g0001","first":"0:17","dry_run":true,"state":"done","records":2,"failed":1}',
        ),
    ],
)
def test_record_in_the_log_is_read_and_written_with_these_names(key: bytes, value: bytes) -> None:
    event = decode_curation(key, value)
    assert isinstance(event, OrderEvent)
    assert event.order is not None
    assert order_key(event.kind, event.id, event.collection) == key
    assert json.loads(encode_choice(event.order)).items() >= json.loads(value).items()
