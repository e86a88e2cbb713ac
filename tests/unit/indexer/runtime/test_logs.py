"""The log: what it repeats, and what a traceback never shows."""

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
import structlog

from indexer.runtime.logs import RepeatFilter, configure_logging


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """The root logger and structlog are everybody's."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    hooks = threading.excepthook, sys.unraisablehook
    yield
    threading.excepthook, sys.unraisablehook = hooks
    logging.captureWarnings(False)
    root.handlers[:], root.level = handlers, level
    logging.getLogger("aiokafka").setLevel(logging.NOTSET)
    structlog.reset_defaults()


def record(name: str, message: str) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "", 0, message, None, None)


def test_a_library_says_the_same_once_in_a_while_and_thalweg_whenever_it_wants() -> None:
    now = 0.0
    repeats = RepeatFilter({"aiokafka"}, clock=lambda: now)

    assert repeats.filter(record("aiokafka.client", "no broker"))
    assert not repeats.filter(record("aiokafka.client", "no broker"))
    assert repeats.filter(record("aiokafka.client", "another matter"))
    assert all(repeats.filter(record("thalweg.worker", "no broker")) for _ in range(2))
    now = 31.0
    assert repeats.filter(record("aiokafka.client", "no broker"))


@pytest.mark.parametrize("terminal", [True, False])
def test_a_traceback_never_shows_the_values_of_locals(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    configure_logging(chatty={"aiokafka": logging.ERROR})
    try:
        body = "a private document".upper()
        raise ValueError(f"{len(body)} characters")
    except ValueError:
        structlog.get_logger("thalweg.worker").exception("it failed")
    logging.getLogger("aiokafka").warning("chatter")

    said = capsys.readouterr().err
    assert "it failed" in said
    assert "18 characters" in said
    assert "PRIVATE" not in said
    assert "chatter" not in said


EVERYTHING = """
import gc, logging, threading, warnings
import structlog
from indexer.runtime.logs import configure_logging

configure_logging(chatty={"aiokafka": logging.ERROR})
structlog.get_logger("ours").info("an event", number=float("nan"), odd={1, 2}, text="two\\nlines \\udcff")
logging.getLogger("aiokafka").error("of a library, %s", "formatted")
warnings.warn("a warning of a library")
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger("ours").exception("a failure")
failing = threading.Thread(target=lambda: 1 / 0, name="failing")
failing.start()
failing.join()

class Odd:
    def __del__(self):
        raise RuntimeError("in a destructor")

del_me = Odd()
del del_me
"""


def test_whatever_is_said_is_one_json_object_a_line_where_it_is_no_terminal() -> None:
    said = subprocess.run([sys.executable, "-c", EVERYTHING], capture_output=True, text=True, check=True).stderr
    events = [json.loads(line) for line in said.splitlines()]
    assert [event["event"].splitlines()[0].split("/")[0][:12] for event in events] == [
        "an event",
        "of a library",
        events[2]["event"].splitlines()[0].split("/")[0][:12],
        "a failure",
        "a thread end",
        "a failure wh",
    ]
    assert "a warning of a library" in events[2]["event"]
    assert "ZeroDivisionError" in events[3]["exception"]
    assert (events[4]["thread"], "ZeroDivisionError" in events[4]["exception"]) == ("failing", True)
    assert "in a destructor" in events[5]["exception"]
    assert all(event["level"] and event["timestamp"] for event in events)


A_COMMAND = """
import sys
import structlog
import thalweg

@thalweg.app.command()
def answer():
    structlog.get_logger("ours").info("all goes well")
    structlog.get_logger("ours").warning("a batch is skipped", partition=1)
    print("{}")

sys.argv[1:] = ["answer"]
thalweg.main()
"""


def test_a_command_logs_to_standard_error_and_only_its_answer_is_on_standard_output() -> None:
    done = subprocess.run([sys.executable, "-c", A_COMMAND], capture_output=True, text=True, check=True)
    assert done.stdout == "{}\n"
    [line] = done.stderr.splitlines()
    assert "a batch is skipped" in line
    assert "partition=1" in line
