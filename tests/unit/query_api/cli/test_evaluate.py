"""The command: what ends it with which exit code, and that nothing is asked before the input is known to be good."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import evaluate
from query_api.evaluation.approaches import APPROACHES
from schemas.errors import Exit
from tests.unit.query_api.evaluation.folders import write_folder
from tests.unit.query_api.evaluation.labelled import DOCUMENT, SENTENCE, write_lines
from tests.unit.query_api.evaluation.pretend_service import PretendService


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "birds")


def run(*arguments: object) -> Any:
    return CliRunner().invoke(evaluate.app, ["evaluate", *(str(argument) for argument in arguments)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--approach", "magic"], "'magic' is not one of hybrid, vector"),
        (["--group", "book"], "'book' is not one of passage, chunk, document"),
        (["--split", "train"], "choose one with --split"),
        (["--k", "0"], ""),
    ],
)
def test_a_wrong_option_is_exit_code_2(folder: Path, arguments: list[str], message: str) -> None:
    result = run(folder, *arguments)
    assert result.exit_code == Exit.USAGE
    assert message in " ".join(result.output.replace("│", " ").split())


def test_the_help_names_every_approach() -> None:
    shown = " ".join(run("--help").output.replace("│", " ").split())
    assert f"One of {', '.join(APPROACHES)};" in shown


@pytest.mark.parametrize("what", ["graph", "answers"])
def test_what_is_evaluated_beside_searches_is_called_by_its_name(what: str) -> None:
    assert f"evaluate {what} [OPTIONS]" in run(what, "--help").output


def test_a_broken_folder_and_a_place_that_is_none_are_exit_code_2(folder: Path, tmp_path: Path) -> None:
    assert run(tmp_path / "nowhere").exit_code == Exit.USAGE
    (tmp_path / "file").touch()
    result = run(folder, "--out", tmp_path / "file" / "out")
    assert result.exit_code == Exit.USAGE
    assert "Name another with --out" in result.output
    (folder / "corpus.jsonl").unlink()
    result = run(folder)
    assert result.exit_code == Exit.USAGE
    assert "put one there" in result.output


def test_figures_go_to_the_terminal_or_as_json_and_into_files(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path
) -> None:
    service = PretendService()
    monkeypatch.setattr(evaluate, "service_client", lambda url, data_dir: service.client)
    monkeypatch.setattr(service.client, "close", lambda: None)
    shown = run(folder, "--approach", "keyword", "--out", tmp_path / "new" / "out")
    assert shown.exit_code == Exit.OK, shown.output
    assert "keyword" in shown.output
    assert "Calibration is not measured" in shown.output
    assert {file.name for file in (tmp_path / "new" / "out").iterdir()} == {"report.json", "report.md", "report.html"}
    as_json = run(folder, "--json", "--lower-case", "--questions", 1, "--pool", "p", "--group", "chunk", "-k", 3)
    answer = json.loads(as_json.stdout)
    assert (answer["pool"], answer["group"], answer["k"], answer["lower_case"]) == ("p", "chunk", 3, True)
    assert answer["collections"][0]["asked"] == 1
    loaded = json.loads((tmp_path / "new" / "out" / "report.json").read_text())["collections"][0]["loaded"]
    assert f"`thalweg collections delete {loaded['collection']}`" in shown.output
    assert "collections delete" not in run(folder, "--within", loaded["collection"]).output


def test_a_graph_is_measured_without_a_service(tmp_path: Path) -> None:
    labelled = write_lines(tmp_path / "lives" / "dev.jsonl", DOCUMENT, DOCUMENT | {"_id": "d2"})
    result = run("graph", labelled, "--json", "--limit", 1)
    assert result.exit_code == Exit.OK, result.output
    figures = json.loads(result.stdout)
    assert {"mention_typed_f1", "mention_span_f1", "entity_b3_f1", "relation_recall"} <= figures.keys()
    assert figures["documents"] == 1
    assert "B-cubed" in run("graph", labelled).output
    assert run("graph", labelled, "--split", "test").exit_code == Exit.USAGE


def test_a_graph_is_measured_or_drawn_from_a_service(tmp_path: Path) -> None:
    labelled = write_lines(tmp_path / "redocred" / "dev.jsonl", DOCUMENT)
    for arguments in (("graph",), ("graph", labelled, "--sample", 5)):
        refused = run(*arguments)
        assert refused.exit_code == Exit.USAGE
        assert "--sample" in refused.output
    assert run("graph", "--sample", 5, "--url", "http://127.0.0.1:9").exit_code == Exit.UNREACHABLE


def test_several_graphs_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "first" / "dev.jsonl", DOCUMENT)
    second = write_lines(tmp_path / "second" / "birds.dev.jsonl", SENTENCE)
    figures = json.loads(run("graph", first, second, "--json").stdout)
    assert list(figures) == ["first", "second"]
    assert "birds" in figures["second"]["by_domain"]
