"""What is sent to a copy of the process, and what it tells, arrives as it was."""

import pytest

from query_api.process_pool.child_process import (
    Ask,
    Ended,
    Stop,
    decode_frame,
    decode_request,
    encode_ask,
    encode_failure,
    encode_frame,
    encode_stop,
)
from schemas.frames import Done, Meta, SearchFrame, Stage
from schemas.hits import SnapshotInfo
from schemas.search import SearchRequest
from tests.unit.query_api.scripted_engine import make_hit

SNAPSHOT = SnapshotInfo(generation="g1", graph_position=3, table_versions={"chunks": 2}, positions="0:4", as_of="now")
PARTS: list[SearchFrame] = [
    Meta(retrieval_id="r", query="a b\nc", mode="hybrid", collection=None, snapshot=SNAPSHOT, budget_seconds=1 / 3),
    Stage(name="vector", seconds=0.1, candidates=7, error="no answer within 2 s"),
    make_hit(2, "Two lines\nand a line separator \u2028 and 🐟."),
    Done(retrieval_id="r", hits=1, timings={"total": 0.1 + 0.2}, next_offset=None, notes=["nothing"]),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_every_part_of_an_answer_arrives_as_it_was_in_one_line(part: SearchFrame) -> None:
    line = encode_frame(12, part)

    assert line.count(b"\n") == 1
    assert decode_frame(line) == (12, part)


def test_a_request_arrives_with_all_its_parameters() -> None:
    request = SearchRequest.model_validate(
        {"q": "Who?\nAnd when?", "k": 3, "filter": ["status=Final|Active"], "channels": "vector,keyword", "explain": 1}
    )

    arrived = decode_request(encode_ask(Ask(7, "r_1", request)))

    assert arrived == Ask(7, "r_1", request)
    assert isinstance(arrived, Ask)
    assert arrived.request.conditions == request.conditions


def test_a_search_that_nobody_waits_for_is_named() -> None:
    assert decode_request(encode_stop(7)) == Stop(7)


def test_how_a_search_failed_is_told_in_one_line() -> None:
    line = encode_failure(3, Ended("no disk:\n  gone \udc80"))

    assert line.count(b"\n") == 1
    assert decode_frame(line) == (3, Ended("no disk: gone ?"))
