"""Commands that take something away ask at a terminal; without one, some go on and the others are refused."""

from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import collection_settings, collections, dead_letters, generations
from schemas import consent
from schemas.errors import Exit
from streams.loader.loader import Loaded, Loader
from tests.unit.query_api.cli.test_consistency import COMMANDS, options_of
from thalweg import app

MODULES: tuple[ModuleType, ...] = (collection_settings, collections, dead_letters, generations)
GENERATIONS = [
    {"name": "g0001", "state": "live", "bytes": 40 * 2**20, "problem": None},
    {"name": "g0002", "state": "kept", "bytes": 12 * 2**20, "problem": None},
]
READ: dict[str, dict[str, Any]] = {
    "/v1/generations": {"generations": GENERATIONS},
    "/v1/generations/g0002": GENERATIONS[1],
    "/v1/collections": {"collections": [{"name": "notes", "documents": 1_200}]},
    "/v1/dead-letters": {"open": 17},
    "/v1/collections/notes/chunking": {"chosen": {"child_characters": 200, "method": None}},
    "/v1/collections/notes/linking": {"chosen": {"max_related": 4}},
    "/v1/collections/notes/extraction": {"chosen": {"extractor": "spacy"}},
    "/v1/collections/notes/graph": {"chosen": {"node_types": ["team"]}},
}


class Written(Exception):
    """The command went on."""


class ReadingClient:
    """A service that answers what is asked, and raises Written for the first write."""

    def get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        assert None not in (params or {}).values()
        if path == "/v1/documents":
            return {"documents": [{"id": "a.md", "position": "0:1"}], "next_cursor": None}
        return READ[path]

    def post(self, path: str, body: bytes) -> dict[str, Any]:
        raise Written(path)

    def put(self, path: str, body: bytes) -> dict[str, Any]:
        raise Written(path)

    def delete(self, path: str) -> dict[str, Any]:
        raise Written(path)

    def withdraw(self, collection: str, document_id: str) -> dict[str, Any]:
        raise Written(document_id)

    def close(self) -> None:
        return


ASKED = {
    ("rebuild",): "all 1,200 documents again into new stores, about as large as the live ones (40 MiB)",
    ("generations", "switch", "g0002"): "Switch from g0001 to g0002? The one before is kept",
    ("generations", "drop", "g0002"): "delete its stores, 12 MiB, for good",
    ("collections", "delete", "notes"): "Delete all 1 documents of the collection 'notes'",
    ("collections", "settings", "notes", "chunking", "--reset"): "where child_characters 200 was chosen",
    ("collections", "settings", "notes", "linking", "--reset"): "where max_related 4 was chosen",
    ("collections", "settings", "notes", "extraction", "--reset"): "where extractor spacy was chosen",
    ("collections", "settings", "notes", "graph", "--reset"): "where node_types ['team'] was chosen",
    ("dead-letters", "redrive", "--all"): "Send 17 records that are not indexed again?",
    ("dead-letters", "redrive", "--reason", "too_large", "--reason", "not_json"): "Send 34 records",
    ("dead-letters", "skip", "documents", "3:17"): "lost to the index; this cannot be undone",
    ("delete", "a.md", "b.md", "--collection", "notes"): "2 documents of 'notes' will be gone: a.md, b.md.",
}
REFUSED_UNATTENDED = ("collections delete",)


@pytest.fixture(autouse=True)
def double(monkeypatch: pytest.MonkeyPatch) -> None:
    def deletes(_loader: Loader, collection: str, ids: list[str]) -> Loaded:
        raise Written(collection)

    for module in MODULES:
        monkeypatch.setattr(module, "service_client", lambda url, data_dir: ReadingClient())
    monkeypatch.setattr("query_api.cli.collection_deletion.document_positions", lambda *_: {"a.md": "0:1"})
    monkeypatch.setattr("query_api.cli.collection_deletion.THREADS", 1)
    monkeypatch.setattr(Loader, "connect", lambda *_, **__: Loader.__new__(Loader))
    monkeypatch.setattr(Loader, "delete", deletes)
    monkeypatch.setattr("indexer.runtime.logs.log_to_stderr", lambda: None)  # which is for the whole process


def run(command: tuple[str, ...], answer: str | None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`answer` is what a person types; None where there is nobody."""
    monkeypatch.setattr(consent, "is_interactive", lambda: answer is not None)
    return CliRunner().invoke(app, list(command), input=answer)


@pytest.mark.parametrize("command", ASKED, ids=" ".join)
def test_command_asks_at_a_terminal_and_does_nothing_for_no(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer in ("n\n", "\n"):
        declined = run(command, answer, monkeypatch)
        assert ASKED[command] in " ".join(declined.stderr.split())
        assert "Nothing was done." in declined.stderr
        assert declined.exit_code == Exit.FAILED
    assert isinstance(run(command, "y\n", monkeypatch).exception, Written)


@pytest.mark.parametrize("command", ASKED, ids=" ".join)
def test_command_with_yes_asks_nobody(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in (None, ""):
        assert isinstance(run((*command, "--yes"), answer, monkeypatch).exception, Written)


@pytest.mark.parametrize("command", ASKED, ids=" ".join)
def test_command_without_a_terminal_is_refused_or_goes_on(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(command, None, monkeypatch)
    if " ".join(command).startswith(REFUSED_UNATTENDED):
        assert done.exit_code == Exit.USAGE
        assert "Nobody is there to be asked, so nothing was done: to do it, add --yes." in done.stderr
    else:
        assert isinstance(done.exception, Written)


def test_redrive_of_named_letters_and_dry_runs_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (("3:17",), ("--all", "--dry-run")):
        done = run(("dead-letters", "redrive", *command), "n\n", monkeypatch)
        assert isinstance(done.exception, Written)


def test_every_command_that_can_ask_is_told_of_here() -> None:
    can_ask = {name for name, command in COMMANDS.items() if "--yes" in options_of(command)}
    assert can_ask == {name for name in COMMANDS if any(" ".join(each).startswith(name) for each in ASKED)} | {"load"}
