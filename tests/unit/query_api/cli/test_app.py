"""The commands: exit codes that mean something, one plain message for each foreseeable failure."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import app
from query_api.cli.server import bind, check_data_dir
from query_api.client import ServerSentEvent
from query_api.settings import ServiceBlock, ServiceSettings
from schemas.errors import Exit, InUse, WrongSetting
from schemas.settings import StorageSettings
from tests.support.fakes.engine import make_hit

HIT = json.loads(make_hit(1).model_dump_json(by_alias=True))
META = {"snapshot": {"positions": "0:7", "generation": "g0001"}}
DONE = {"retrieval_id": "r_1", "hits": 1, "timings": {"total": 0.02}, "failed_channels": {}}


class StubClient:
    """A client that answers from a list."""

    def __init__(self, events: list[ServerSentEvent]) -> None:
        self.asked: dict[str, Any] = {}
        self._events = events

    def events(self, path: str, params: dict[str, Any]) -> list[ServerSentEvent]:
        self.asked = params
        return self._events

    def get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return {"path": path, "params": params}

    def close(self) -> None:
        return


def run(
    monkeypatch: pytest.MonkeyPatch, *arguments: str, events: list[ServerSentEvent] | None = None
) -> tuple[Any, StubClient]:
    stub = StubClient(events or [])
    monkeypatch.setattr(app, "service_client", lambda url, data_dir: stub)
    return CliRunner().invoke(app.app, list(arguments)), stub


def test_a_question_is_taken_apart_when_asked_for_and_hits_tell_what_for(monkeypatch: pytest.MonkeyPatch) -> None:
    hit = HIT | {"parts": {"the Elbe": 1, "the Oder": 7}}
    events = [ServerSentEvent("meta", META), ServerSentEvent("hit", hit), ServerSentEvent("done", DONE)]
    result, stub = run(monkeypatch, "search", "compare the Elbe and the Oder", "--decompose", events=events)
    assert result.exit_code == Exit.OK
    assert stub.asked["decompose"] is True
    assert "for “the Elbe” at 1, “the Oder” at 7" in result.output


@pytest.mark.parametrize(
    ("options", "asked"), [([], None), (["--reranker"], True), (["--no-reranker"], False)], ids=str
)
def test_a_re_ranker_is_asked_for_or_not_or_as_the_service_has_it(
    monkeypatch: pytest.MonkeyPatch, options: list[str], asked: bool | None
) -> None:
    done = DONE | {"failed_channels": {"rerank": "It is away.", "graph": "It is late."}}
    events = [ServerSentEvent("meta", META), ServerSentEvent("done", done)]
    result, stub = run(monkeypatch, "search", "river", *options, events=events)
    assert stub.asked.get("reranker") is asked
    assert "Without the re-ranker: It is away." in result.output
    assert "Without the graph channel: It is late." in result.output


def test_search_prints_hits_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        ServerSentEvent("meta", META),
        ServerSentEvent("stage", {}),
        ServerSentEvent("hit", HIT),
        ServerSentEvent("done", DONE),
    ]
    result, stub = run(monkeypatch, "search", "the river", "-k", "3", "--after", "0:7", events=events)
    assert result.exit_code == Exit.OK
    assert "Note 1" in result.output
    assert "river ─mentions→ Note 1" in result.output
    assert stub.asked == {
        "q": "the river", "k": 3, "group": "passage", "after": "0:7", "wait_seconds": 10.0
    }  # fmt: skip


def test_a_stream_that_ends_in_an_error_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ServerSentEvent("error", {"title": "Search not answered", "detail": "The disk is gone."})
    result, _ = run(monkeypatch, "search", "river", events=[error])
    assert result.exit_code == Exit.FAILED
    assert "The disk is gone." in result.output


def test_json_is_the_answer_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(monkeypatch, "search", "river", "--json")
    assert json.loads(result.stdout)["path"] == "/v1/search"
    result, _ = run(monkeypatch, "status", "--json")
    assert json.loads(result.stdout) == {"path": "/v1/status", "params": None}


def test_no_service_is_exit_code_3_and_says_how_to_start_one(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    result = CliRunner().invoke(app.app, ["status", "--url", f"http://127.0.0.1:{port}", "--data-dir", str(tmp_path)])
    assert result.exit_code == Exit.UNREACHABLE
    assert "thalweg up" in result.output


@pytest.mark.parametrize("by_setting", [False, True])
def test_a_folder_that_is_no_data_directory_is_refused_and_no_other_service_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_setting: bool
) -> None:
    if by_setting:
        monkeypatch.setenv("THALWEG_STORAGE__DATA_DIR", str(tmp_path))
    given = [] if by_setting else ["--data-dir", str(tmp_path)]
    for command in (["search", "river"], ["status"]):
        result = CliRunner().invoke(app.app, [*command, *given])
        assert result.exit_code == Exit.UNREACHABLE
        assert f"{tmp_path} is no data directory" in result.output


def test_a_port_in_use_is_told() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(InUse, match="--port"):
            bind(ServiceBlock(port=other.getsockname()[1]))


def test_an_address_that_is_not_ours_is_told() -> None:
    key: Any = "a-key-of-sixteen-or-more"
    with pytest.raises(WrongSetting, match=r"192\.0\.2\.1"):
        bind(ServiceBlock(host="192.0.2.1", port=0, api_key=key))


def test_a_data_directory_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WrongSetting, match="is a file"):
        check_data_dir(ServiceSettings(storage=StorageSettings(data_dir=tmp_path / "file")))


def test_the_commands_import_no_store_no_model_and_no_web_framework() -> None:
    heavy = "{'torch', 'lancedb', 'kuzu', 'pyarrow', 'fastapi', 'aiokafka', 'numpy', 'ir_measures'}"
    commands = "query_api.cli.app, query_api.cli.analytics, query_api.cli.collections, query_api.cli.evaluate"
    modules = f"{commands}, query_api.client, query_api.cli.display"
    program = f"import sys, {modules}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_service_loads_neither_kuzu_nor_a_writer() -> None:
    program = (
        "import sys, query_api.app; print([name for name in sys.modules if name.startswith(('kuzu', 'indexer.write'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
