"""What `thalweg up` says while it starts."""

import io
import re

import pytest
from rich.console import Console

from streams.supervisor.steps import StartSteps


def at_a_terminal() -> tuple[StartSteps, io.StringIO]:
    screen = io.StringIO()
    return StartSteps(Console(file=screen, force_terminal=True, width=80, highlight=False, markup=False)), screen


def test_without_a_terminal_each_step_is_a_line_when_it_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    steps = StartSteps()
    with steps.step("Looking at the topics", "The topics are there"):
        assert capsys.readouterr().err == ""
    steps.close()
    steps.close()
    said = capsys.readouterr()
    assert re.fullmatch(r"The topics are there \(\d+\.\d s\)\n", said.err)
    assert said.out == ""


def test_a_step_that_fails_says_no_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no"), StartSteps().step("Looking at the topics", "The topics are there"):
        raise ValueError("no")
    assert capsys.readouterr().err == ""


def test_at_a_terminal_what_is_done_now_is_shown_and_what_was_done_stays() -> None:
    steps, screen = at_a_terminal()
    steps.show("Starting Kafka")
    steps.say_done("Kafka has started", 3.21)
    assert "Starting Kafka …" in screen.getvalue()
    assert "Kafka has started (3.2 s)\n" in screen.getvalue()
    steps.close()
    assert "\x1b[?25h" in screen.getvalue(), "the cursor is back"


def test_jars_are_counted_in_place_of_the_spinner(capsys: pytest.CaptureFixture[str]) -> None:
    steps, screen = at_a_terminal()
    steps.show("Starting Kafka")
    steps.fetched(0, 40)
    assert "\x1b[?25h" in screen.getvalue(), "the spinner has ended"
    steps.fetched(40, 40)
    steps.close()
    assert capsys.readouterr().err.startswith("Fetching Apache Kafka (once, about 45 MB) …")
