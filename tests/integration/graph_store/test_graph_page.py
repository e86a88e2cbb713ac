"""docs/graph.md: its tables are those of the published graph, its examples answer as it shows."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from indexer.generation_folders import make_generation, switch_to
from indexer.graph.kuzu_schema import statements_that_create
from indexer.write.kuzu_publication import publish_graph
from schemas.errors import Exit
from schemas.graph_delta import Contribution
from tests.support.fixtures.folder_graph import contributions_in, contributions_of
from tests.support.fixtures.graph_snapshots import write_snapshot
from tests.support.fixtures.manifest import MANIFEST
from thalweg import app

PAGE = (Path(__file__).parents[3] / "docs" / "graph.md").read_text()
OF_WIKI, OF_ISLANDS = PAGE.split("## A graph made by hand")
EXAMPLE = re.compile(r"```cypher\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
EXAMPLES, BY_HAND = EXAMPLE.findall(OF_WIKI), EXAMPLE.findall(OF_ISLANDS)
CODE = re.compile(r"`([^`]+)`")
CREATED = re.compile(r"CREATE (NODE|REL) TABLE (\w+)\((?:FROM (\w+) TO (\w+)(?:, )?)?(.*?)\)")
BUFFER_BYTES = 256 * 1024**2


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the published graph of the folder that the page names."""
    [folder] = re.findall(r"tests/bench/folders/(\w+)/", PAGE)
    return published(tmp_path_factory.mktemp("graph-page") / "data", contributions_of(folder))


def published(data_dir: Path, contributions: list[Contribution]) -> Path:
    generation = make_generation(data_dir, MANIFEST)
    switch_to(generation)
    write_snapshot(generation.snapshots_dir, contributions, 0, made_at_ms=1_000)
    publish_graph(generation, BUFFER_BYTES)
    return data_dir


def test_page_has_ten_examples() -> None:
    assert (len(EXAMPLES), len(BY_HAND)) == (10, 1)
    assert PAGE.count("```cypher") == 11


def test_example_of_the_graph_made_by_hand_answers_as_shown(tmp_path: Path) -> None:
    [file] = re.findall(r"deploy/samples/\S+\.jsonl", OF_ISLANDS)
    islands = published(tmp_path / "data", contributions_in(Path(__file__).parents[3] / file, "islands"))
    test_example_answers_as_the_page_shows(*BY_HAND[0], islands)


@pytest.mark.parametrize(("query", "shown"), EXAMPLES)
def test_example_answers_as_the_page_shows(query: str, shown: str, wiki: Path) -> None:
    result = CliRunner().invoke(app, ["cypher", "-", "--data-dir", str(wiki)], input=query)
    assert result.exit_code == Exit.OK, result.output
    assert [line.rstrip() for line in result.stdout.splitlines()] == shown.splitlines()


def rows_of(heading: str) -> list[list[list[str]]]:
    """What is between backticks, by cell, of the table under a heading."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][2:]
    return [[CODE.findall(cell) for cell in line.split("|")[1:-1]] for line in lines]


def tables(kind: str) -> dict[str, tuple[tuple[str, str], list[str]]]:
    """{table: its ends, of a relationship, and its columns}, as they are created."""
    created = [match for each in statements_that_create() if (match := CREATED.match(each))]
    return {
        match[2]: ((match[3], match[4]), sorted(column.split()[0] for column in match[5].split(", ") if column))
        for match in created
        if match[1] == kind
    }


def test_each_node_and_its_columns_are_explained() -> None:
    explained: dict[str, list[str]] = {}
    for name, columns, _ in rows_of("Nodes"):
        explained.setdefault(name[0] if name else [*explained][-1], []).extend(columns)
    assert {name: sorted(columns) for name, columns in explained.items()} == {
        name: columns for name, (_, columns) in tables("NODE").items()
    }


def test_each_relationship_and_its_columns_are_explained() -> None:
    explained: dict[str, list[str]] = {}
    ends: dict[str, tuple[str, str]] = {}
    for name, source, target, columns, _ in rows_of("Relationships"):
        if name:
            ends[name[0]] = (source[0], target[0])
        explained.setdefault(name[0] if name else [*explained][-1], []).extend(columns)
    expected = tables("REL")
    assert ends == {name: of for name, (of, _) in expected.items()}
    assert {name: sorted(columns) for name, columns in explained.items()} == {
        name: columns for name, (_, columns) in expected.items()
    }
