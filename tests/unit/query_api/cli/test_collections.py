"""`thalweg collections settings`, `list` and `delete`, at a service that is a double."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from query_api.cli import app as base_commands
from query_api.cli import collection_deletion, collection_settings, collections
from query_api.cli.app import app as query_commands
from query_api.cli.collection_deletion import (
    CollectionDeleted,
    documents_of,
    follow_tombstones,
    publish_tombstones,
    summary_of,
    token_of,
)
from schemas import consent
from schemas.curation import ChunkingChoice, ExtractionChoice, LinkingChoice
from schemas.errors import Exit, Failure, WrongSetting
from schemas.graph_edits import GraphChoice
from schemas.receipts import Token
from tests.unit.query_api.cli.holding_service import HoldingService

LISTED = [
    {"name": "notes", "documents": 1_200, "passages": 1_300, "chunks": 5_000, "chunking": None, "linking": None},
    {
        "name": "peps",
        "documents": 0,
        "passages": 0,
        "chunks": 0,
        "chunking": {"method": "semantic", "language": None},
        "linking": {"max_related": 2, "similar": None},
    },
]


class SettingsClient:
    """Takes every choice, and notes it."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    def get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        if path == "/v1/collections":
            return {"collections": LISTED, "notes": ["Kafka is away."]}
        return {"path": path, "params": params}

    def put(self, path: str, body: bytes) -> dict[str, Any]:
        self.asked = {"path": path, "body": json.loads(body)}
        return {"position": "0:3", "documents": 0 if "nots" in path else 7}

    def delete(self, path: str) -> dict[str, Any]:
        self.asked = {"path": path}
        return {"position": "0:4"}

    def close(self) -> None:
        return


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[Any, SettingsClient]:
    made, app = SettingsClient(), typer.Typer()
    for commands in (base_commands, collections, collection_settings):
        monkeypatch.setattr(commands, "service_client", lambda url, data_dir: made)
    app.add_typer(query_commands)
    app.add_typer(collections.app)
    return CliRunner().invoke(app, list(arguments)), made


def test_chunking_is_shown_chosen_and_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("collections", "settings", "my notes", "chunking")
    path = "/v1/collections/my%20notes/chunking"
    result, _ = run(monkeypatch, *command, "--json")
    assert json.loads(result.output) == {"path": path, "params": None}
    result, stub = run(monkeypatch, *command, "child-characters=200", "method=semantic", "language=no")
    assert stub.asked == {"path": path, "body": {"child_characters": 200, "method": "semantic", "language": "no"}}
    assert "0:3" in result.output
    result, stub = run(monkeypatch, *command, "--reset")
    assert (stub.asked, result.exit_code) == ({"path": path}, 0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["chunking", "--reset", "language=de"], "give no value with it"),
        (["chunking", "language"], "'language' is not name=value"),
        (["chunking", "language="], "is not name=value"),
        (["chunkin", "language=de"], "Did you mean 'chunking'?"),
        (["--reset"], "Say which setting: chunking, linking, extraction, graph."),
        (["chunking", "--relink"], "linking --relink"),
        (["graph", "node_types=[]", "--file", "x"], "not both"),
    ],
)
def test_setting_that_is_not_clear_is_refused(monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str) -> None:
    result, stub = run(monkeypatch, "collections", "settings", "notes", *arguments)
    assert (result.exit_code, stub.asked) == (Exit.USAGE, {})
    assert told in " ".join(result.output.split())


def test_settings_have_the_values_that_the_log_takes() -> None:
    models = {
        "chunking": ChunkingChoice,
        "linking": LinkingChoice,
        "extraction": ExtractionChoice,
        "graph": GraphChoice,
    }
    assert {name: set(setting.names) for name, setting in collection_settings.SETTINGS.items()} == {
        name: set(model.model_fields) for name, model in models.items()
    }


def test_graph_setting_is_taken_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command, file = ("collections", "settings", "notes", "graph"), tmp_path / "graph.json"
    file.write_text('{"node_types": ["team"], "predicates": null}')
    result, stub = run(monkeypatch, *command, "--file", str(file))
    assert stub.asked == {"path": "/v1/collections/notes/graph", "body": {"node_types": ["team"]}}
    assert "0:3" in result.output
    result, stub = run(monkeypatch, *command, 'node_types=["team"]')
    assert stub.asked["body"] == {"node_types": ["team"]}
    result, stub = run(monkeypatch, *command, "--reset")
    assert stub.asked == {"path": "/v1/collections/notes/graph"}
    assert "Any edit of notes is taken" in result.output
    for text in ("[]", "{}", "{", '{"node_types": null}'):
        file.write_text(text)
        result, stub = run(monkeypatch, *command, "--file", str(file))
        assert (stub.asked, result.exit_code) == ({}, Exit.USAGE), text
    result, stub = run(monkeypatch, *command, "--file", str(tmp_path / "none"))
    assert (stub.asked, result.exit_code) == ({}, Exit.USAGE)


def test_statements_against_the_schema_are_shown_with_it() -> None:
    fact = {
        "subject": {"label": "Petrel"},
        "predicate": "owns",
        "object": {"label": "Kestrel"},
        "further": [],
        "strength": 0.8,
        "by_people": [],
        "evidence": [{"sentence": "Petrel owns Kestrel.", "title": "", "collection": "notes", "document_id": "a.md"}],
    }
    violation = {"what": "source", "predicate": "owns", "type": "team", "statements": 1_200, "examples": [fact]}
    answer = {"chosen": {"predicates": {"owns": {"source": ["person"]}}}, "position": "0:3", "violations": [violation]}
    shown = "\n".join(collection_settings._lines("graph", answer))
    assert "does not fit: 1,200 of owns (source is of the type team)" in shown
    assert "Petrel owns Kestrel. [notes/a.md]" in shown


def test_collections_are_listed_with_what_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(monkeypatch, "collections", "list")
    rows = [line.split() for line in result.output.splitlines()]
    assert rows[1] == ["notes", "1,200", "5,000"]
    assert rows[2] == ["peps", "0", "0", "chunking:", "method=semantic;", "linking:", "max_related=2"]
    assert "Kafka is away." in result.output
    result, _ = run(monkeypatch, "collections", "list", "--json")
    assert json.loads(result.output)["collections"] == LISTED


def test_a_setting_ahead_of_its_documents_is_said_to_be_that(monkeypatch: pytest.MonkeyPatch) -> None:
    command, chosen = ("collections", "settings"), ("chunking", "language=de")
    result, stub = run(monkeypatch, *command, "nots", *chosen)
    assert (result.exit_code, stub.asked["body"]) == (Exit.OK, {"language": "de"})
    assert "No document is in the collection 'nots' yet" in result.output
    result, _ = run(monkeypatch, *command, "notes", *chosen)
    assert "No document" not in result.output
    result, _ = run(monkeypatch, *command, "nots", *chosen, "--json")
    assert json.loads(result.output) == {"position": "0:3", "documents": 0}


def delete(
    monkeypatch: pytest.MonkeyPatch, *arguments: str, answer: str | None = None, service: HoldingService | None = None
) -> tuple[Any, HoldingService]:
    """`answer` is what a person types; None where there is nobody."""
    held = service or HoldingService("a", "b", "c")
    monkeypatch.setattr(collections, "service_client", lambda url, data_dir: held.client)
    monkeypatch.setattr(consent, "is_interactive", lambda: answer is not None)
    monkeypatch.setattr(collection_deletion, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(collection_deletion, "THREADS", 1)
    return CliRunner().invoke(collections.app, ["collections", "delete", *arguments], input=answer), held


def test_a_collection_is_deleted_once_a_person_has_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    result, service = delete(monkeypatch, "made", answer="n\n")
    assert (result.exit_code, service.published) == (Exit.FAILED, [])
    assert "Delete all 3 documents of the collection 'made'?" in result.output
    assert "Nothing was done." in result.output
    result, service = delete(monkeypatch, "made", answer="y\n")
    assert result.exit_code == Exit.OK, result.output
    assert {document_id for _, document_id in service.published} == {"a", "b", "c"}
    assert "3 documents of made deleted.\ntoken 0:101,1:100" in result.output


def test_where_nobody_can_be_asked_a_collection_goes_only_with_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    result, service = delete(monkeypatch, "made")
    assert (result.exit_code, service.published) == (Exit.USAGE, [])
    assert "add --yes" in result.output
    result, service = delete(monkeypatch, "made", "--yes", "--json")
    told = {"collection": "made", "documents": 3, "left": 0, "token": "0:101,1:100"}
    assert json.loads(result.stdout) == told
    assert service.held == {}
    result, _ = delete(monkeypatch, "made", "--yes", "--no-wait")
    assert "3 tombstones of made are in the log" in result.output


def test_a_misspelt_collection_is_no_order_to_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    result, service = delete(monkeypatch, "mde", "--yes")
    assert (result.exit_code, service.published) == (Exit.USAGE, [])
    assert "There are documents in made, notes." in result.output
    assert delete(monkeypatch, "a/b", "--yes")[0].exit_code == Exit.USAGE


AWKWARD = ["a/b.md", "..", "c?d=é#", "reports/status", "100%"]


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection_deletion, "THREADS", 1)


def no_pause(seconds: float) -> None:
    """Time goes on by looks at the state."""


def test_every_document_gets_a_tombstone_whatever_its_id() -> None:
    service, done = HoldingService(*AWKWARD), []
    positions = publish_tombstones(service.client, "made", AWKWARD, lambda: done.append(1))
    assert service.published == [("made", document_id) for document_id in AWKWARD]
    assert positions["c?d=é#"] == Token({0: 101})
    assert len(done) == 5
    assert token_of(positions) == "0:102,1:101"


def test_it_is_followed_until_the_newest_tombstone_of_each_partition_counts() -> None:
    service, done = HoldingService(*AWKWARD), []
    positions = publish_tombstones(service.client, "made", AWKWARD)
    follow_tombstones(service.client, "made", positions, lambda: done.append(1), timeout_seconds=1, sleep=no_pause)
    assert service.reached == {0: 102, 1: 102}
    assert service.held == {}
    assert len(done) == 5


def test_where_nothing_moves_it_says_that_nothing_is_lost() -> None:
    service = HoldingService("a", "b")
    positions = publish_tombstones(service.client, "made", ["a", "b"])
    service.stuck = True
    clock = iter(range(0, 1_000, 50))
    with pytest.raises(Failure, match=r"for 120 s, 0 of 2 documents are\. The tombstones are safe in Kafka"):
        follow_tombstones(
            service.client,
            "made",
            positions,
            timeout_seconds=120,
            sleep=no_pause,
            now_seconds=lambda: next(clock),
        )


def test_a_collection_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(WrongSetting, match=r"collection 'mde', .* There are documents in made, notes\."):
        documents_of(HoldingService("a").client, "mde")


def test_what_was_sent_again_and_what_stays_chosen_is_told() -> None:
    told = summary_of(CollectionDeleted("made", 1_200, 1, "0:1"), {"chunking": {"method": "semantic"}, "linking": None})
    assert told == [
        "1,199 documents of made deleted.",
        "1 were sent again meanwhile, and are there.",
        "Its chunking stays chosen; 'thalweg collections settings made chunking --reset' takes it back.",
    ]
