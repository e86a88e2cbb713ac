"""Commands that are gone are refused, and what is named in their place exists."""

import re
import shlex
from functools import cache
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from query_api.app import create_app
from query_api.settings import ServiceSettings
from schemas.errors import Exit
from schemas.former_settings import FORMER
from thalweg import GONE, app


@cache
def paths() -> dict[str, Any]:
    return dict(create_app(ServiceSettings()).openapi()["paths"])


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.runtime.logs.log_to_stderr", lambda: None)  # which is for the whole process


@pytest.mark.parametrize("gone", GONE)
def test_gone_command_is_refused_with_what_took_its_place(gone: str) -> None:
    for more in ([], ["--json", "x"], ["--help"]):
        refused = CliRunner().invoke(app, [*gone.split(), *more])
        assert (refused.exit_code, refused.stdout) == (Exit.USAGE, "")
        assert refused.stderr == f"thalweg: There is no 'thalweg {gone}' any more. Use: {GONE[gone]}\n"


@pytest.mark.parametrize("instead", sorted(set(GONE.values())))
def test_what_took_its_place_is_a_command_or_a_route(instead: str) -> None:
    words = shlex.split(instead)[1:]
    command = get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    options = {flag for parameter in command.params for flag in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= options
    if instead.startswith("thalweg api"):
        found = [path for path in paths() if re.fullmatch(re.sub(r"\{\w+\}", "[A-Z]+", path), words[1])]
        assert any(words[0].lower() in paths()[path] for path in found)


def test_gone_commands_are_not_completed() -> None:
    environment = {"_THALWEG_COMPLETE": "complete_bash", "COMP_WORDS": "thalweg relink n", "COMP_CWORD": "2"}
    assert CliRunner().invoke(app, [], env=environment).output.strip() == ""


def test_former_settings_name_no_gone_command() -> None:
    sentences = " ".join(FORMER.values())
    assert [gone for gone in GONE if f"thalweg {gone} " in f"{sentences} "] == []
