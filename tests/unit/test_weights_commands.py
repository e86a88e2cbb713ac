"""How many commands there are."""

from typer.main import get_command

from thalweg import app

MAX_COMMANDS = 38


def leaves(command: object) -> int:
    return sum(map(leaves, getattr(command, "commands", {}).values())) or 1


def test_commands_are_few() -> None:
    assert leaves(get_command(app)) + len(("evaluate graph",)) <= MAX_COMMANDS
