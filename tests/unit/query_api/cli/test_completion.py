"""Shell completion: scripts that parse, commands, options and values, and what only the service knows."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from query_api.cli import app as base_commands
from query_api.cli import completion
from query_api.client import ServiceClient
from schemas.errors import Exit, Unreachable
from thalweg import app

ANSWERS = {
    "/v1/collections": {"collections": [{"name": "notes"}, {"name": "news"}, {"name": "wiki"}]},
    "/openapi.json": {"paths": {"/v1/search": {}, "/v1/statements": {}, "/v1/status": {}}},
    "/v1/generations": {"generations": [{"name": "g0001-2726f3"}, {"name": "g0002-5f3a9c"}]},
    "/v1/entities": {"entities": [{"label": "Beacon"}, {"label": "Beagle Channel"}, {"label": "The Beacon"}]},
    "/v1/statements": {"statements": [{"predicate": "is_a"}, {"predicate": "requires"}, {"predicate": "is_a"}]},
}


class Service:
    """Answers from ANSWERS, or not at all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.given: list[tuple[Any, Any, Any]] = []
        self.is_away = False
        self.status = 200
        monkeypatch.setattr(base_commands, "service_client", self._client)

    def _client(self, url: str | None, data_dir: Path | None, *, patience_seconds: float) -> ServiceClient:
        self.given.append((url, data_dir, patience_seconds))
        if self.is_away:
            raise Unreachable("Nothing runs there.")
        return ServiceClient("http://127.0.0.1:1", None, httpx.MockTransport(self._answer), busy_seconds=0)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.url.path, dict(request.url.params)))
        return httpx.Response(self.status, json=ANSWERS[request.url.path])


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    return Service(monkeypatch)


def offered(words: str) -> list[str]:
    """What bash is offered for the last of the words, which may be empty."""
    environment = {
        "_THALWEG_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    result = CliRunner().invoke(app, [], env=environment)
    assert result.exit_code == Exit.OK, result.output
    return result.stdout.split("\n")[:-1] if result.stdout.strip() else []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_parses(shell: str, tmp_path: Path) -> None:
    script = CliRunner().invoke(app, [], env={"_THALWEG_COMPLETE": f"source_{shell}"}).stdout
    assert f"complete_{shell}" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed, so its script is not parsed")
    (tmp_path / "script").write_text(script)
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_offered_the_same_with_help(shell: str) -> None:
    environment = {
        "_THALWEG_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "thalweg dead-letters re",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    shown = CliRunner().invoke(app, [], env=environment).stdout
    assert "redrive" in shown
    assert "Send the records of dead letters again" in shown


def test_commands_and_options() -> None:
    assert offered("thalweg dead-l") == ["dead-letters"]
    assert offered("thalweg collections se") == ["settings"]
    assert offered("thalweg search river --max-per-") == ["--max-per-document", "--max-per-value"]
    assert "graph" in offered("thalweg ")


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("thalweg search river --mode g", ["graph", "graph_rerank", "global"]),
        ("thalweg search river --channels vector,k", ["vector,keyword"]),
        ("thalweg search river --fusion ", ["adaptive", "rrf", "weighted"]),
        ("thalweg reviews list --state de", ["decided"]),
        ("thalweg dead-letters list --reason too_l", ["too_large"]),
        ("thalweg entities list --type per", ["person"]),
        ("thalweg collections settings notes ex", ["extraction"]),
        ("thalweg collections settings notes extraction extractor=s", ["extractor=spacy"]),
        ("thalweg collections settings notes chunking child_o", ["child_overlap="]),
        ("thalweg reviews decide 5f0c r", ["reject"]),
        ("thalweg api P", ["POST", "PUT", "PATCH"]),
    ],
)
def test_values_that_are_known_here_are_not_asked_for(service: Service, words: str, values: list[str]) -> None:
    assert offered(words) == values
    assert service.given == []


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("thalweg search river --collection n", ["notes", "news"]),
        ("thalweg collections settings w", ["wiki"]),
        ("thalweg collections delete ", ["notes", "news", "wiki"]),
        ("thalweg api GET /v1/st", ["/v1/statements", "/v1/status"]),
        ("thalweg generations show g0002", ["g0002-5f3a9c"]),
        ("thalweg entities show Bea", ["Beacon", r"Beagle\ Channel"]),
        (
            "thalweg search river --edges link,re",
            ["link,relation", "link,residual", "link,related_to", "link,requires"],
        ),
    ],
)
def test_what_only_the_service_knows_is_asked_of_it(service: Service, words: str, values: list[str]) -> None:
    assert offered(words) == values
    assert [patience for _, _, patience in service.given] == [completion.PATIENCE_SECONDS]


def test_it_is_asked_where_the_command_line_says_and_about_what(service: Service, tmp_path: Path) -> None:
    offered(f"thalweg entities show --collection wiki --url http://x --data-dir {tmp_path} Bea")
    assert service.given == [("http://x", tmp_path, completion.PATIENCE_SECONDS)]
    assert service.asked == [("/v1/entities", {"prefix": "Bea", "limit": "50", "collection": "wiki"})]


@pytest.mark.parametrize("status", [200, 401, 422, 500, 503])
def test_a_service_that_is_away_or_refuses_offers_nothing_and_says_nothing(service: Service, status: int) -> None:
    service.is_away, service.status = status == 200, status
    result = CliRunner().invoke(
        app,
        [],
        env={"_THALWEG_COMPLETE": "complete_bash", "COMP_WORDS": "thalweg collections delete n", "COMP_CWORD": "3"},
    )
    assert (result.exit_code, result.output.strip()) == (Exit.OK, "")


def test_completing_imports_nothing_that_takes_long() -> None:
    heavy = {"pydantic", "httpx", "numpy", "structlog", "asyncio", "rich.console", "msgspec._core", "aiokafka", "torch"}
    program = f"import sys, thalweg; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("[]", "['msgspec._core']")
