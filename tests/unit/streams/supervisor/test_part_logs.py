"""The parts' logs: kept small while they are written, and shown line by line."""

import asyncio
from pathlib import Path

import pytest

from streams.child_processes import file_tail
from streams.supervisor import part_logs
from streams.supervisor.part_logs import follow, readable, trim


def test_a_large_log_is_kept_aside_and_emptied_under_its_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_logs, "LARGEST_LOG_BYTES", 10)
    log = tmp_path / "worker.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"more than ten bytes\n")
        trim(log)
        writer.write(b"new\n")
        trim(log)

    assert log.read_bytes() == b"new\n"
    assert (tmp_path / "worker.log.1").read_bytes() == b"more than ten bytes\n"


def test_a_missing_log_is_nothing_to_trim(tmp_path: Path) -> None:
    trim(tmp_path / "none.log")

    assert list(tmp_path.iterdir()) == []


async def test_new_lines_are_shown_with_their_part_also_after_a_trim(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("before\n")
    shown: asyncio.Queue[str] = asyncio.Queue()
    following = asyncio.create_task(follow(log, "worker", shown.put_nowait))
    await asyncio.sleep(0)

    with log.open("a") as writer:
        writer.write("one\ntwo, in")
    first = await asyncio.wait_for(shown.get(), 5)
    with log.open("a") as writer:
        writer.write(" parts\n")
    second = await asyncio.wait_for(shown.get(), 5)
    log.write_text("after\n")
    third = await asyncio.wait_for(shown.get(), 5)
    following.cancel()

    assert [first, second, third] == ["worker | one", "worker | two, in parts", "worker | after"]


def test_the_tail_is_of_this_run_unless_the_log_was_emptied(tmp_path: Path) -> None:
    log = tmp_path / "kafka.log"
    log.write_text("old\nnew one\nnew two\n")

    assert file_tail(log, 5, start=4) == "new one\nnew two"
    assert file_tail(log, 1) == "new two"
    assert file_tail(log, 5, start=1000) == "old\nnew one\nnew two"
    assert file_tail(tmp_path / "none", 5) == ""


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain words", "plain words"),
        (
            '{"event": "Another worker is using it.\\nStop it.", "level": "error"}',
            "Another worker is using it.\nStop it.",
        ),
        ('{"event": "worker failed", "error": "torn", "exception": "Traceback"}', "worker failed: torn\nTraceback"),
        ("[1]", "[1]"),
    ],
)
def test_of_a_line_in_json_a_person_reads_the_event(line: str, shown: str) -> None:
    assert readable(line) == shown
