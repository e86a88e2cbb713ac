"""Asking a person at the terminal before a command takes something away."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from schemas.errors import Failure, WrongSetting
from schemas.terminal import plain

NOBODY_ASKED = "Nobody is there to be asked, so nothing was done: to do it, add --yes."
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def require_consent(question: Callable[[], str], *, yes: bool, unattended: bool = False) -> None:
    """Ask at the terminal before something is deleted; `question` is called only where it is asked.

    Where nobody can be asked, `unattended`: the command continues, as what it deletes is named by its arguments,
    one by one. Raises WrongSetting where it does not go on, Failure for a no.
    """
    if yes or (unattended and not is_interactive()):
        return
    if not is_interactive():
        raise WrongSetting(NOBODY_ASKED)
    if not typer.confirm(plain(question()), err=True):
        raise Failure("Nothing was done.")


def is_interactive() -> bool:
    """Whether a person can answer."""
    return sys.stdin.isatty()
