"""Every command with a data directory in which nothing runs, while another installation answers at the default port."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
import typer
from typer.testing import CliRunner

from query_api import client
from schemas.errors import Exit
from schemas.runtime import INSTALLATION_HEADER, Running, announce
from schemas.settings_file import DATA_DIR_VARIABLE
from tests.support.http_server import Request, Response, http_server
from thalweg import app

RUN_THE_FOLDER = {"up", "kafka", "serve"}
"""They are what others look for."""
WITHOUT_SERVICE_OR_KAFKA = {"backup", "cypher", "export", "restore", "verify", "config show"}
"""They read and write files."""
ARGUMENTS = {
    "kind": "cards",
    "paths": "note.md",
    "folders": "dataset",
    "position": "0:1",
    "source": "kafka",
    "out": "questions",
    "file": "-",
    "decision": "accept",
}
MORE = {
    "dead-letters redrive": ["--all"],
    "replay": ["--from", "0"],
}


def commands(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command that takes a data directory, by its name."""
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, *path, name)
    if not hasattr(command, "commands") and any(parameter.name == "data_dir" for parameter in command.params):
        yield " ".join(path), command


COMMANDS = dict(commands(typer.main.get_command(app)))
ASKING = sorted(COMMANDS.keys() - RUN_THE_FOLDER - WITHOUT_SERVICE_OR_KAFKA)


class OtherInstallation:
    """Answers every request as the service of another data directory does, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.url = ""

    def answer(self, request: Request) -> Response:
        self.asked.append(f"{request.method} {request.path}")
        body = b'{"title": "Another installation", "detail": "Nothing was done."}'
        return Response(body, 421, [(INSTALLATION_HEADER, "0" * 32)])


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[OtherInstallation]:
    """At the default address; the working directory has a file to load and a dataset, and no data directory."""
    installation = OtherInstallation()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.md").write_text("The river is high.")
    dataset = tmp_path / "dataset"
    (dataset / "qrels").mkdir(parents=True)
    (dataset / "corpus.jsonl").write_text('{"_id": "note.md", "text": "The river is high."}\n')
    (dataset / "queries.jsonl").write_text('{"_id": "q", "text": "river"}\n')
    (dataset / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tnote.md\t1\n")
    with http_server(installation.answer) as url:
        installation.url = url
        monkeypatch.setattr(client, "DEFAULT_URL", url)
        yield installation
    structlog.reset_defaults()  # `worker` configured it


def run(name: str, *options: str) -> Any:
    """The command with every argument that it needs."""
    needed = ["--yes"] if any(parameter.name == "yes" for parameter in COMMANDS[name].params) else []
    for parameter in COMMANDS[name].params:
        if parameter.required:
            flag = [each for each in parameter.opts if each.startswith("--")]
            needed += [*flag, ARGUMENTS.get(parameter.name, "x")]
    return CliRunner().invoke(app, [*name.split(), *needed, *MORE.get(name, []), *options])


@pytest.mark.parametrize("name", ASKING)
def test_command_on_a_folder_where_nothing_runs_is_refused(name: str, other: OtherInstallation) -> None:
    result = run(name, "--data-dir", "mine")
    assert result.exit_code == Exit.UNREACHABLE, result.output
    assert "mine" in result.output
    assert "thalweg up" in result.output
    assert other.asked == []


@pytest.mark.parametrize("source", ["variable", "file", "working directory"])
@pytest.mark.parametrize("name", ["collections delete", "delete", "rebuild", "search", "status"])
def test_folder_named_in_any_way_is_not_left_for_another(
    name: str, source: str, other: OtherInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == "variable":
        monkeypatch.setenv(DATA_DIR_VARIABLE, "mine")
    elif source == "file":
        Path("thalweg.toml").write_text('[storage]\ndata_dir = "mine"\n')
    else:
        Path("thalweg-data").mkdir()
    result = run(name)
    assert result.exit_code == Exit.UNREACHABLE, result.output
    assert "thalweg up" in result.output
    assert other.asked == []


@pytest.mark.parametrize("name", sorted(WITHOUT_SERVICE_OR_KAFKA))
def test_command_on_files_asks_no_other_installation(name: str, other: OtherInstallation) -> None:
    run(name, "--data-dir", "mine")
    assert other.asked == []


def test_machine_without_a_folder_asks_the_default_address(other: OtherInstallation) -> None:
    run("status")
    assert other.asked == ["GET /v1/status"]


def test_address_that_is_given_is_asked_whatever_the_folder(other: OtherInstallation) -> None:
    run("status", "--url", other.url, "--data-dir", "mine")
    assert other.asked == ["GET /v1/status"]


@pytest.mark.parametrize("name", sorted({*ASKING} - {"worker", "topics", "load", "delete"}))
def test_port_that_another_installation_took_refuses(name: str, other: OtherInstallation) -> None:
    """What is announced still runs, and its service's port has become that of another one."""
    announce(Path("mine"), Running(pid=os.getpid(), service_url=other.url))
    result = run(name, "--data-dir", "mine")
    assert result.exit_code == Exit.UNREACHABLE, result.output
    assert "another installation" in result.output
    assert len(other.asked) == 1, "each request names the installation, so that the first is refused"
