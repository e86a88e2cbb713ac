"""What holds for every command: help with an example, lists with limits, quiet ends."""

import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from rich.text import Text
from typer.main import get_command
from typer.testing import CliRunner

from query_api.cli import app as base_commands
from query_api.cli.entities import app as entity_commands
from schemas.ids import DEFAULT_COLLECTION
from thalweg import app

DEADLINE_SECONDS = 60.0


def commands(known: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    known = known or get_command(app)
    if not hasattr(known, "commands"):
        yield " ".join(words), known
        return
    for name, command in known.commands.items():
        yield from commands(command, (*words, name))


COMMANDS = dict(commands())


def options_of(command: Any) -> set[str]:
    return {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_ends_its_help_with_an_example_that_is_one(name: str) -> None:
    command = COMMANDS[name]
    assert (command.epilog or "").startswith(f"Example: thalweg {name}")
    words = shlex.split(command.epilog.removeprefix(f"Example: thalweg {name}"))
    assert {word for word in words if re.match("-+[a-z]", word)} <= options_of(command)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_no_help_loses_words_to_markup(name: str) -> None:
    command = COMMANDS[name]
    texts = [command.help or "", command.epilog or "", *(getattr(each, "help", None) or "" for each in command.params)]
    assert [text for text in texts if Text.from_markup(text).plain != text] == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_is_explained(name: str) -> None:
    assert [each.name for each in COMMANDS[name].params if not getattr(each, "help", None)] == []


@pytest.mark.parametrize("name", sorted(name for name in COMMANDS if name.endswith(" list")))
def test_every_list_has_json_and_a_limit(name: str) -> None:
    assert {"--json", "--limit"} <= options_of(COMMANDS[name])


def test_no_command_but_load_has_a_default_collection() -> None:
    optional = {
        name: parameter.default
        for name, command in COMMANDS.items()
        for parameter in command.params
        if parameter.name == "collection" and not parameter.required
    }
    assert len(optional) > 7
    assert {name: value for name, value in optional.items() if value is not None} == {"load": DEFAULT_COLLECTION}


@pytest.mark.parametrize("width", [60, 100, 200])
@pytest.mark.parametrize("name", ["", "search", "graph show", "collections settings"])
def test_help_fits_the_terminal(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("indexer.runtime.logs.log_to_stderr", lambda: None)  # which is for the whole process
    shown = CliRunner().invoke(app, [*name.split(), "--help"]).output
    assert max(map(len, shown.splitlines())) <= width
    assert ("Exit codes" if not name else "Example") in shown


class Pages:
    """A client of a service that has 25 entities, ten a page."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def get(self, path: str, params: dict[str, Any]) -> dict[str, Any]:
        assert path == "/v1/entities"
        self.asked.append(params)
        first = int(params.get("cursor", 0))
        last = min(25, first + min(10, params["limit"]))
        entity = {"collection": "c", "label": "E", "type": "thing", "mentions": 1}
        found = [{"id": f"<{number}>", **entity} for number in range(first, last)]
        return {"entities": found, "next_cursor": str(last) if last < 25 else None}

    def close(self) -> None:
        return


@pytest.mark.parametrize(
    ("limit", "limits", "cursor"),
    [(7, [7], "7"), (12, [12, 2], "12"), (25, [25, 15, 5], None), (90, [90, 80, 70], None)],
)
def test_a_list_follows_its_cursors_up_to_the_limit(
    monkeypatch: pytest.MonkeyPatch, limit: int, limits: list[int], cursor: str | None
) -> None:
    client = Pages()
    monkeypatch.setattr(base_commands, "service_client", lambda url, data_dir: client)
    shown = CliRunner().invoke(entity_commands, ["entities", "list", "--limit", str(limit)]).stdout
    assert re.findall(r"<(\d+)>", shown) == [str(number) for number in range(min(limit, 25))]
    assert [each["limit"] for each in client.asked] == limits
    assert (f"--cursor {cursor}" in shown) if cursor else ("--cursor" not in shown)


@pytest.fixture
def silent_service() -> Iterator[tuple[str, socket.socket]]:
    """The address of a service that takes requests and answers none."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(DEADLINE_SECONDS)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", listening


def test_ctrl_c_ends_a_command_without_a_traceback(silent_service: tuple[str, socket.socket]) -> None:
    url, listening = silent_service
    arguments = [sys.executable, "-m", "thalweg", "search", "river", "--url", url]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            connection, _ = listening.accept()
            with connection:
                assert connection.recv(1)
                process.send_signal(signal.SIGINT)
                output, errors = process.communicate(timeout=DEADLINE_SECONDS)
        finally:
            process.kill()
    assert (process.returncode, output, errors) == (130, b"", b"")


def test_a_closed_pipe_is_quiet() -> None:
    arguments = [sys.executable, "-m", "thalweg", "search", "--help"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(DEADLINE_SECONDS)
    assert errors == b""
