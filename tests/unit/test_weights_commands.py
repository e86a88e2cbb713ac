"""How many commands there are."""

from typer.main import get_command

from thalweg import app

MAX_COMMANDS = 38
BESIDE_THE_TREE = ("evaluate graph",)  # `evaluate` hands it on


def leaves(command: object) -> int:
    return sum(map(leaves, getattr(command, "commands", {}).values())) or 1


def test_commands_are_few() -> None:
    assert leaves(get_command(app)) + len(BESIDE_THE_TREE) <= MAX_COMMANDS
