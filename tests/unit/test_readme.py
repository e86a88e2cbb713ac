"""What the README says is so: its commands exist, its settings are all there, its Python compiles."""

import ast
import re

import pytest
from typer.main import get_command

from tests.settings_table import README, table
from thalweg import app

TEXT = README.read_text()
COMMANDS = re.findall(r"\.venv/bin/thalweg ([^\n#]*)", TEXT)
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
