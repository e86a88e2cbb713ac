"""The log: what it repeats, and what a traceback never shows."""

import logging
import sys
from collections.abc import Iterator

import pytest
import structlog

from indexer.observe import RepeatFilter, configure_logging


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """The root logger and structlog are everybody's."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
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
