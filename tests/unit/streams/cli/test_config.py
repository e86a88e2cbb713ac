"""`thalweg init` and `thalweg config show`."""

import json
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.settings import ServiceSettings
from schemas.errors import Exit
from streams.cli.config import TEMPLATE
from streams.settings import WorkerSettings
from thalweg import app

KEY = "0123456789abcdefgh"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("THALWEG_CONFIG_FILE", "THALWEG_STORAGE__DATA_DIR", "THALWEG_EMBEDDING__PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    for module in ("schemas.settings_file", "streams.cli.config"):
        monkeypatch.setattr(f"{module}.user_config_dir", lambda: tmp_path / "config")
    monkeypatch.setattr("indexer.runtime.logs.log_to_stderr", lambda: None)  # other tests capture logs
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def test_a_file_is_written_once_and_is_for_its_owner_alone(place: Path) -> None:
    done = run("init")
    path = place / "thalweg.toml"
    assert done.exit_code == Exit.OK
    assert str(path) in done.stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("[kafka]\npartitions = 3\n")
    done = run("init")
    assert (done.exit_code, "replace it with --force" in done.stderr) == (Exit.FAILED, True)
    assert path.read_text() == "[kafka]\npartitions = 3\n"
    assert run("init", "--force").exit_code == Exit.OK
    assert path.read_text() == TEMPLATE
    assert run("init", "--user").exit_code == Exit.OK
    assert (place / "config" / "thalweg.toml").is_file()


def test_what_is_written_changes_nothing_and_what_it_names_are_settings(place: Path) -> None:
    run("init")
    assert (WorkerSettings.load(), ServiceSettings.load()) == (WorkerSettings(), ServiceSettings())
    named = re.sub(r"^# (?=[a-z_]+ = )", "", TEMPLATE, flags=re.MULTILINE)
    assert len(named.splitlines()) == len(TEMPLATE.splitlines())
    (place / "thalweg.toml").write_text(named)
    values = tomllib.loads(named)
    settings = {
        "kafka": WorkerSettings,
        "storage": WorkerSettings,
        "embedding": WorkerSettings,
        "service": ServiceSettings,
    }
    assert set(values) == set(settings)
    for block, kind in settings.items():
        for name in values[block]:
            assert name in kind.model_fields[block].annotation.model_fields  # type: ignore[union-attr]
    assert ServiceSettings.load().service.api_key is not None


def test_each_value_says_where_it_comes_from_and_secrets_are_masked(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "thalweg.toml").write_text(f'[service]\nport = 8555\napi_key = "{KEY}"\n[worker]\nparsers = 3\n')
    monkeypatch.setenv("THALWEG_SERVICE__PORT", "8556")
    monkeypatch.setenv("THALWEG_EMBEDDING__PROVIDER", "hashing")
    done = run("config", "show", "--json", "--data-dir", "elsewhere")
    told = json.loads(done.stdout)
    assert told["file"] == str(place / "thalweg.toml")
    assert str(place / "config" / "thalweg.toml") in told["looked_in"]
    expected = {
        "service.port": (8556, "environment"),
        "service.api_key": ("********", "file"),
        "embedding.provider": ("hashing", "environment"),
        "embedding.api_key": (None, "default"),
        "storage.data_dir": ("elsewhere", "command line"),
        "worker.parsers": (3, "file"),
        "worker.kept_snapshots": (3, "default"),
    }
    for name, (value, source) in expected.items():
        assert (told["settings"][name]["value"], told["settings"][name]["source"]) == (value, source), name
    assert told["settings"]["service.port"]["variable"] == "THALWEG_SERVICE__PORT"
    shown = run("config", "show", "--changed").stdout
    assert '[service]\nport = 8556    # environment\napi_key = "********"    # file\n' in shown
    assert "kept_snapshots" not in shown
    assert KEY not in done.stdout + shown


def test_without_a_file_it_says_where_it_looked() -> None:
    shown = run("config", "show").stdout
    assert shown.startswith("No settings file. Looked for: thalweg.toml, thalweg-data/thalweg.toml")
    assert '\n[service]\nhost = "127.0.0.1"\n' in shown


def test_a_wrong_file_is_told_by_any_command(place: Path) -> None:
    (place / "thalweg.toml").write_text("[service]\nprot = 1\n")
    done = run("config", "show")
    assert done.exit_code == Exit.USAGE
    assert "It is in thalweg.toml, [service]. Did you mean 'port'?" in done.stderr


def test_what_is_shown_could_be_a_settings_file(place: Path) -> None:
    shown = run("config", "show").stdout
    assert "# bootstrap_servers is not set" in shown
    assert tomllib.loads(shown.partition("\n\n")[2])["kafka"]["partitions"] == 4
