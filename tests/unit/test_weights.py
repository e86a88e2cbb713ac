"""How much there is to read, to choose and to learn. Raising a limit needs a decision record in the same commit
(docs/adr/0053-weights.md)."""

from pathlib import Path

import pytest
from typer.main import get_command

from query_api.app import create_app
from query_api.settings import ServiceSettings
from schemas.setting_names import NAMES
from thalweg import app

ROOT = Path(__file__).parents[2]
MOST_SETTINGS = 56
MOST_COMMANDS = 44
MOST_ROUTES = 116
MOST_BYTES = {"README.md": 10_240, "ARCHITECTURE.md": 14_848, "CHANGELOG.md": 5_120}
MOST_OF_PACKAGES = {  # lines, modules
    "indexer": (24_227, 157),
    "query_api": (43_930, 272),
    "streams": (12_400, 84),
    "schemas": (7_644, 57),
    "kafka_client": (1_489, 11),
}
BESIDE_THE_TREE = ("evaluate graph", "evaluate answers")  # `evaluate` hands them on


def leaves(command: object) -> int:
    return sum(map(leaves, getattr(command, "commands", {}).values())) or 1


def test_settings_are_few() -> None:
    """What only tunes the product is a constant beside the code that uses it."""
    assert len(NAMES) <= MOST_SETTINGS


def test_commands_are_few() -> None:
    assert leaves(get_command(app)) + len(BESIDE_THE_TREE) <= MOST_COMMANDS


def test_routes_are_few() -> None:
    paths = create_app(ServiceSettings()).openapi()["paths"]
    assert sum(map(len, paths.values())) <= MOST_ROUTES


@pytest.mark.parametrize("package", MOST_OF_PACKAGES)
def test_package_is_no_larger_than_agreed(package: str) -> None:
    modules = [path.read_text() for path in (ROOT / package).rglob("*.py") if "node_modules" not in path.parts]
    lines, most = MOST_OF_PACKAGES[package]
    assert (sum(text.count("\n") for text in modules) <= lines, len(modules) <= most) == (True, True)


@pytest.mark.parametrize("page", MOST_BYTES)
def test_page_is_no_longer_than_agreed(page: str) -> None:
    assert (ROOT / page).stat().st_size <= MOST_BYTES[page]
