"""What more than one folder of tests uses stands in `tests/support`."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from query_api.operations import canary
from tests.support.constants import changed

TESTS = Path(__file__).parents[1]
MOST_CHARACTERS = 60
TEST = re.compile(r"def (test_\w+)")
CONSTANT = re.compile(r"\"((?:streams|query_api)\.[a-z_.]+\.[A-Z][A-Z_]+)\"")


@pytest.mark.parametrize("folder", ["unit", "integration", "acceptance", "support"])
def test_no_folder_of_tests_imports_another(folder: str) -> None:
    allowed = {folder, "support"} | (
        {"bench", "settings_table", "console_types", "measured_results"} if folder != "support" else set()
    )
    strangers = {
        f"{file.relative_to(TESTS)}: {name}"
        for file in (TESTS / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and (name := node.module or "").startswith("tests.")
        if name.split(".")[1] not in allowed
    }
    assert strangers == set()


def test_constants_are_restored_at_end_of_block() -> None:
    with changed({"query_api.operations.canary.CANARY_SECONDS": 1}):
        assert canary.CANARY_SECONDS == 1
    assert canary.CANARY_SECONDS == 60
    with pytest.raises(AttributeError), changed({f"{canary.__name__}.CANARY_MINUTES": 1}):
        pass


def test_each_constant_that_tests_change_exists() -> None:
    """A process that is started with one that was renamed would end at once, in a test that takes minutes."""
    named = {name for file in TESTS.rglob("*.py") for name in CONSTANT.findall(file.read_text())}
    assert len(named) > 10
    for name in named:
        module, _, constant = name.rpartition(".")
        assert hasattr(import_module(module), constant), name


@pytest.mark.parametrize("folder", ["integration", "acceptance"])
def test_names_of_long_tests_have_at_most_60_characters(folder: str) -> None:
    """Subject, event, result: `test_search_with_unknown_collection_is_refused`."""
    names = {name for file in (TESTS / folder).rglob("*.py") for name in TEST.findall(file.read_text())}
    assert {name for name in names if len(name) > MOST_CHARACTERS} == set()
