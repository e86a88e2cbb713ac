"""What more than one folder of tests uses stands in `tests/support`."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("folder", ["unit", "integration", "acceptance", "support"])
def test_no_folder_of_tests_imports_another(folder: str) -> None:
    allowed = {folder, "support"} | ({"bench", "settings_table", "measured_results"} if folder != "support" else set())
    strangers = {
        f"{file.relative_to(TESTS)}: {name}"
        for file in (TESTS / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and (name := node.module or "").startswith("tests.")
        if name.split(".")[1] not in allowed
    }
    assert strangers == set()
