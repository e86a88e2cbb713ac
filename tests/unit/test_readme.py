"""What the README says is so: its commands exist, its settings and formats are all there, its Python compiles.

So is ARCHITECTURE.md's table of bad input: it holds every reason the code gives.
"""

import ast
import re
from pathlib import Path
from typing import get_args

import pytest
from typer.main import get_command

from indexer.parsing import formats
from streams.kafka.dead_letters import Stage
from tests.settings_table import README, table
from thalweg import app

TEXT = README.read_text()
COMMANDS = re.findall(r"\.venv/bin/thalweg ([^\n#]*)", TEXT)
GIVEN = re.compile(r"(?:MalformedEvent|UnparsableDocument|_refusal|Refused)\((?:\s*\w+(?:\(\w+\))?,)?\s*\"([a-z_]+)\"")
TARGETS = re.findall(r"^make ([a-z]+)", TEXT, re.MULTILINE)


def test_the_table_of_settings_is_the_settings_own() -> None:
    assert table() in TEXT, "run python -m tests.settings_table"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_exists_with_its_options(command: str) -> None:
    words = re.findall(r"'[^']*'|\S+", command)
    known = get_command(app)
    while words and hasattr(known, "commands"):
        assert words[0] in known.commands, words
        known = known.commands[words.pop(0)]
    options = {option for parameter in known.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-") and word != "-"} <= options


@pytest.mark.parametrize("target", TARGETS)
def test_each_make_target_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (README.parent / "Makefile").read_text(), re.MULTILINE)


def test_the_python_examples_are_python() -> None:
    examples = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert examples
    for example in examples:
        ast.parse(example)


def test_every_format_is_in_the_table() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ")]
    languages = 0
    for known in formats():
        if known.module.endswith("source_code"):
            languages += 1
            continue
        [row] = [row for row in rows if row.startswith(f"| {known.name} |")]
        assert f"`{known.media_type}`" in row
        assert row.split("|")[3].split() == list(known.extensions)
    assert f"{languages} languages" in TEXT


def test_every_reason_for_a_refusal_is_in_the_table_of_bad_input() -> None:
    root = README.parent
    _, _, rest = (root / "ARCHITECTURE.md").read_text().partition("## What becomes of bad input")
    explained = set(re.findall(r"`([a-z_]+)`", rest.partition("## Glossary")[0]))
    given = {reason for file in _sources(root) for reason in GIVEN.findall(file.read_text())} - set(get_args(Stage))
    assert len(given) > 20
    assert given <= explained


def _sources(root: Path) -> list[Path]:
    packages = ("schemas", "indexer", "kafka_client", "streams", "query_api")
    return [file for package in packages for file in (root / package).rglob("*.py")]
