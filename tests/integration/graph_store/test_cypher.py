"""`thalweg cypher` on a published graph; and what it says where there is none, or the query is wrong."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from indexer.generation_folders import Generation, make_generation, switch_to
from indexer.read import cypher
from indexer.read.cypher import ask as query_graph
from indexer.read.published_graph import FILE, newest_folder
from indexer.write.kuzu_publication import publish_graph
from schemas.errors import Exit, Failure
from tests.support.fixtures.graph import document, hand_made_edge, hand_made_node
from tests.support.fixtures.graph_snapshots import write_snapshot
from tests.support.fixtures.manifest import MANIFEST
from tests.support.waiting import wait_until
from thalweg import app

SECONDS = 120
MADE_AT_MS = 1_764_172_800_000
BUFFER_BYTES = 128 * 1024**2
ENDLESS = " ".join(f"UNWIND range(1, 3000) AS {name}" for name in "abcd") + " RETURN sum(a * b * c * d)"


@pytest.fixture
def empty(tmp_path: Path) -> Generation:
    generation = make_generation(tmp_path / "data", MANIFEST)
    switch_to(generation)
    return generation


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    """Three documents; tests that read share it."""
    generation = make_generation(tmp_path_factory.mktemp("shared") / "data", MANIFEST)
    switch_to(generation)
    write_snapshot(generation.snapshots_dir, [document(number)[1] for number in range(3)], 7, MADE_AT_MS)
    publish_graph(generation, BUFFER_BYTES)
    return generation


def ask(generation: Generation, *arguments: str, sent: str | bytes | None = None) -> Any:
    return CliRunner().invoke(app, ["cypher", *arguments, "--data-dir", str(generation.data_dir)], input=sent)


def test_answer_is_a_table_and_names_the_graph(shared: Generation) -> None:
    result = ask(shared, "MATCH (d:Document) RETURN d.title AS title, 1 AS one ORDER BY title")
    assert result.exit_code == Exit.OK, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines == [["title", "one"], *(["Document", str(number), "1"] for number in range(3))]
    named = "Graph of generation g0001-5f3a9c as of 2025-11-26T16:00:00+00:00, position 7, of the newest snapshot."
    assert result.stderr.strip() == named


def test_json_is_a_list_of_objects(shared: Generation) -> None:
    query = (
        "MATCH path = (d:Document {document_id: 'document 1'})-[about:ABOUT]->(e:Entity) "
        "RETURN d, about, path, d.title AS title, sum(about.weight) AS sum, NULL AS nothing, 1.0 / 0.0 AS infinite"
    )
    result = ask(shared, query, "--json")
    assert result.exit_code == Exit.OK, result.output
    [row] = json.loads(result.stdout)
    assert row["d"]["_label"] == "Document"
    assert row["d"]["document_id"] == "document 1"
    assert row["about"] == {"_label": "ABOUT", "surface": "Document 1", "weight": 1.0}
    assert [node["_label"] for node in row["path"]["_nodes"]] == ["Document", "Entity"]
    assert row["path"]["_nodes"][1]["name"] == "document 1"
    assert set(row["path"]["_nodes"][1]) == {"_label", "id", "collection", "name"}
    assert (row["title"], row["sum"], row["nothing"], row["infinite"]) == ("Document 1", 1.0, None, None)


def test_whole_numbers_of_any_size_are_numbers(shared: Generation) -> None:
    result = ask(shared, "RETURN sum(10000000000000000000000000000) AS large", "--json")
    assert json.loads(result.stdout) == [{"large": 10**28}]


def test_query_comes_from_standard_input(shared: Generation) -> None:
    result = ask(shared, "-", "--json", sent="MATCH (d:Document)\nRETURN count(*) AS documents;\n")
    assert json.loads(result.stdout) == [{"documents": 3}]


def test_limit_cuts_and_says_how_many_there_are(shared: Generation) -> None:
    result = ask(shared, "MATCH (d:Document) RETURN d.id", "--limit", "2", "--json")
    assert len(json.loads(result.stdout)) == 2
    assert "The first 2 of 3 rows" in result.stderr


def test_evidence_is_followed_from_both_ends(shared: Generation) -> None:
    result = ask(
        shared, "MATCH (e:Entity {name: 'entity 1'})-[*1..2]-(d:Chunk) RETURN count(DISTINCT d) AS n", "--json"
    )
    assert json.loads(result.stdout)[0]["n"] > 0


def test_text_that_steers_terminals_is_shown_as_escapes(shared: Generation) -> None:
    result = ask(shared, "RETURN '\x1b[31mred' AS colour")
    assert "\x1b" not in result.stdout
    assert r"\x1b[31mred" in result.stdout


def test_graph_replaced_while_it_is_opened_is_asked_again(empty: Generation, monkeypatch: pytest.MonkeyPatch) -> None:
    def publish(*numbers: int) -> None:
        write_snapshot(
            empty.snapshots_dir, [document(each)[1] for each in numbers], len(numbers), MADE_AT_MS + len(numbers)
        )
        publish_graph(empty, BUFFER_BYTES)

    def ask_late(file: Path, *question: str, **options: Any) -> Any:
        if not late:
            late.append(file)
            publish(0, 1)
            assert not file.exists()
        return asked(file, *question, **options)

    late: list[Path] = []
    asked = cypher.ask
    publish(0)
    monkeypatch.setattr(cypher, "ask", ask_late)
    result = ask(empty, "MATCH (d:Document) RETURN count(*) AS documents", "--json")
    assert result.exit_code == Exit.OK, result.output
    assert json.loads(result.stdout) == [{"documents": 2}]
    assert "position 2" in result.stderr


def test_distance_to_a_newer_snapshot_is_reported(empty: Generation) -> None:
    write_snapshot(empty.snapshots_dir, [document(1)[1]], 7, MADE_AT_MS)
    publish_graph(empty, BUFFER_BYTES)
    write_snapshot(empty.snapshots_dir, [document(1)[1]], 12, MADE_AT_MS + 1)
    assert "position 7; the newest snapshot is 5 positions ahead." in ask(empty, "RETURN 1").stderr


@pytest.mark.parametrize(
    ("query", "code", "says"),
    [
        ("RETUN 1", Exit.USAGE, "Parser exception: extraneous input 'RETUN'"),
        ("MATCH (x:Nothing) RETURN x", Exit.USAGE, "Table Nothing does not exist"),
        ("MATCH (x:Chunk) RETURN x.text", Exit.USAGE, "Cannot find property text"),
        ("CREATE (:Entity {id: 'x'})", Exit.USAGE, "only read"),
        ("MATCH (e:Entity) DETACH DELETE e", Exit.USAGE, "only read"),
        ("DROP TABLE Entity", Exit.USAGE, "only read"),
        ("CHECKPOINT", Exit.FAILED, "could not answer"),
        ("RETURN 1; RETURN 2", Exit.USAGE, "one statement"),
        ("  ", Exit.USAGE, "empty"),
        ("// nothing", Exit.USAGE, "Parser exception"),
        ("RETURN cast('x', 'INT64')", Exit.FAILED, "Conversion exception"),
    ],
)
def test_query_that_has_no_answer_says_why(query: str, code: Exit, says: str, shared: Generation) -> None:
    result = ask(shared, query)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert says in result.stderr
    [folder] = shared.kuzu_dir.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == [FILE, "manifest.json"], "nothing is written beside it"


def test_query_that_is_not_utf8_is_refused(shared: Generation) -> None:
    result = ask(shared, "-", sent=b"RETURN '\xff'")
    assert (result.exit_code, "UTF-8" in result.stderr) == (Exit.USAGE, True)


def test_query_that_takes_too_long_is_ended(shared: Generation) -> None:
    result = ask(shared, ENDLESS, "--timeout", "0.2")
    assert result.exit_code == Exit.FAILED
    assert "No answer after 0.2 s" in result.stderr


@contextmanager
def under_way(generation: Generation, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A command whose query has begun, with its temporary files in `folder`."""
    command = [
        sys.executable,
        "-m",
        "thalweg",
        "cypher",
        ENDLESS,
        "--timeout",
        "300",
        "--data-dir",
        generation.data_dir,
    ]
    environment = os.environ | {"TMPDIR": str(folder)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        opened = f"{generation.kuzu_dir}/"
        wait_until(lambda: [file for file in files_of(process) if file.startswith(opened)], "it is opened", SECONDS)
        yield process


def files_of(process: subprocess.Popen[str]) -> list[str]:
    """Those that its child process has open."""
    with suppress(psutil.Error):
        return [file.path for child in psutil.Process(process.pid).children() for file in child.open_files()]
    return []


def test_ctrl_c_ends_a_query_quietly(shared: Generation, tmp_path: Path) -> None:
    with under_way(shared, tmp_path) as process:
        [child] = psutil.Process(process.pid).children()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, output, errors) == (130, "", "")
    assert not child.is_running()
    assert list(tmp_path.iterdir()) == []


def test_crash_of_kuzu_is_a_sentence(shared: Generation, tmp_path: Path) -> None:
    with under_way(shared, tmp_path) as process:
        [child] = psutil.Process(process.pid).children()
        child.send_signal(signal.SIGSEGV)
        output, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, output) == (Exit.FAILED, "")
    assert errors == "thalweg: Kùzu crashed on this query; rephrase it.\n"


def test_query_that_takes_too_much_memory_is_refused(shared: Generation) -> None:
    folder = newest_folder(shared.kuzu_dir)
    assert folder is not None
    with pytest.raises(Failure, match="more memory"):
        query_graph(folder / FILE, "RETURN 1", limit=1, timeout_seconds=60, buffer_bytes=64 * 1024)


def test_folder_without_stores_says_how_to_start(tmp_path: Path) -> None:
    result = ask(Generation(tmp_path / "nothing", "g0001"), "RETURN 1")
    assert result.exit_code == Exit.FAILED
    assert "There are no stores in" in result.stderr
    assert "thalweg up" in result.stderr


def test_generation_without_a_published_graph_says_when(empty: Generation) -> None:
    result = ask(empty, "RETURN 1")
    assert result.exit_code == Exit.FAILED
    assert "is published yet" in result.stderr
    assert "thalweg up" in result.stderr


@pytest.mark.parametrize("name", [FILE, "manifest.json"])
def test_damaged_graph_is_named_and_not_read(name: str, empty: Generation) -> None:
    write_snapshot(empty.snapshots_dir, [document(1)[1]], 7, MADE_AT_MS)
    publish_graph(empty, BUFFER_BYTES)
    [folder] = empty.kuzu_dir.iterdir()
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    result = ask(empty, "RETURN 1")
    assert result.exit_code == Exit.DAMAGED
    assert str(folder / name) in result.stderr
    assert "makes it again" in result.stderr


def test_question_about_nodes_of_people_is_answered(empty: Generation) -> None:
    made = [hand_made_node("otter", aliases=["Lutra", "Otter, river"]), hand_made_edge("e", "otter", "sea", "lives_in")]
    write_snapshot(empty.snapshots_dir, [each for _, each in made], 1, MADE_AT_MS)
    publish_graph(empty, BUFFER_BYTES)
    query = (
        "MATCH (r:Relation)-[:JOINS {role: 'source'}]->(f:Reference), (r)-[:JOINS {role: 'target'}]->(to:Reference), "
        "(:Document)-[:DESCRIBES]->(n:Node) WHERE n.name = f.name "
        "RETURN n.aliases AS aliases, r.predicate AS p, to.name AS to"
    )
    result = ask(empty, query, "--json")
    assert result.exit_code == Exit.OK, result.output
    assert json.loads(result.stdout) == [{"aliases": ["Lutra", "Otter, river"], "p": "lives_in", "to": "sea"}]
