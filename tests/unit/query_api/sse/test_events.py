"""A document followed through its stages: what is told, in which order, and when it ends."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from query_api.errors import ApiProblem
from query_api.sse.events import FOLLOW_SECONDS, UNKNOWN_SECONDS, document_status_frames, document_stream_id, last_stage
from schemas.api import DocumentStatus
from schemas.ids import DocumentKey

KEY = DocumentKey("default", "a")


def status(name: str, **state: Any) -> DocumentStatus:
    return DocumentStatus.model_validate({"id": "a", "collection": "default", "status": name, **state})


PENDING = status("pending")
SEARCHABLE = status("indexed", searchable=True)
IN_GRAPH = status("indexed", searchable=True, in_graph=True, final=True)
BURIED = status("dead_lettered", final=True, message="It is not UTF-8.")
DELETED = status("deleted", final=True)


class Script:
    """Looks that follow a script; every wait for a change takes a minute."""

    def __init__(self, *looks: DocumentStatus | Exception) -> None:
        self._looks = list(looks)
        self.changes = 0
        self.seconds = 0.0

    async def look(self) -> DocumentStatus:
        found = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if isinstance(found, Exception):
            raise found
        return found

    async def change(self, since: int, seconds: float) -> None:
        assert since == self.changes
        self.changes += 1
        self.seconds += min(60, seconds)


async def told(script: Script, after: int = -1) -> list[tuple[str, str, Any]]:
    frames = []
    async for frame in document_status_frames("d_1", script.look, script, after, lambda: script.seconds):
        fields = dict(line.split(": ", 1) for line in frame.decode().strip().split("\n"))
        frames.append((fields["event"], fields["id"], json.loads(fields["data"])))
    return frames


@pytest.mark.parametrize(
    ("looks", "frames"),
    [
        (
            [PENDING, PENDING, SEARCHABLE, SEARCHABLE, IN_GRAPH],
            [("status", "d_1.0"), ("status", "d_1.1"), ("done", "d_1.2")],
        ),
        ([IN_GRAPH], [("done", "d_1.2")]),
        ([PENDING, BURIED], [("status", "d_1.0"), ("done", "d_1.2")]),
        ([status("unknown"), DELETED], [("status", "d_1.0"), ("done", "d_1.2")]),
    ],
)
async def test_each_stage_is_told_once_and_the_final_one_ends_it(
    looks: Sequence[DocumentStatus], frames: list[tuple[str, str]]
) -> None:
    assert [(name, frame_id) for name, frame_id, _ in await told(Script(*looks))] == frames


async def test_who_comes_back_gets_the_stages_after_the_last_one() -> None:
    frames = await told(Script(PENDING, SEARCHABLE, IN_GRAPH), after=1)
    assert [(name, frame_id) for name, frame_id, _ in frames] == [("done", "d_1.2")]


async def test_following_ends_after_a_time_and_says_so() -> None:
    script = Script(PENDING)
    frames = await told(script)
    assert [name for name, _, _ in frames] == ["status", "error"]
    assert "ask again" in frames[-1][2]["detail"]
    assert script.seconds == FOLLOW_SECONDS
    assert frames[-1][1] == "d_1.0", "who comes back goes on from the stage told last"


async def test_a_document_of_which_there_is_no_record_is_followed_for_a_minute_only() -> None:
    script = Script(status("unknown"))
    (_, (name, _, body)) = await told(script)
    assert script.seconds == UNKNOWN_SECONDS
    assert name == "error"
    assert body["detail"] == "There was no record of it after 60 s; ask again to go on following it."


async def test_a_store_that_cannot_be_read_is_the_last_frame() -> None:
    frames = await told(Script(PENDING, ApiProblem(503, "Not ready", "The stores are being opened.")))
    assert (frames[-1][0], frames[-1][2]["detail"]) == ("error", "The stores are being opened.")


def test_the_id_of_a_stream_is_that_of_its_question() -> None:
    mine = document_stream_id(KEY, "0:7")
    assert mine == document_stream_id(KEY, "0:7") != document_stream_id(KEY, "0:8")
    assert last_stage(f"{mine}.1", mine) == 1
    assert (
        last_stage(f"{document_stream_id(KEY, None)}.1", mine) == last_stage(None, mine) == last_stage("x", mine) == -1
    )
