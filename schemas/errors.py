"""Errors of data that crossed a process border, and foreseeable failures of a command with their exit codes."""

import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum

from schemas.terminal import say


class MalformedEvent(ValueError):
    """A record that no retry can help: it goes to dead letters with this reason.

    `reason` is a short code for counting (it becomes a metric label); the message is for the person who mends it.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class MalformedToken(ValueError):
    """A token (`after`) that is not a comma-separated list of `<partition>:<offset>`."""


class MalformedFilter(ValueError):
    """A filter of a search that is not in the syntax, or asks what a collection's documents cannot answer."""


class Exit(IntEnum):
    """Exit codes of every `thalweg` command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    """A wrong option or setting: the message names it."""
    UNREACHABLE = 3
    """No answer from the broker or the service."""
    IN_USE = 4
    """A port or a data directory that another process holds."""
    NO_ACCESS = 5
    """No permission to read or write there."""
    DAMAGED = 6
    """What is on disk is not what was written: the message says which file, and what mends it."""


class Failure(Exception):
    """A foreseeable failure: the message says what happened and what to do, in words for the person at the terminal."""

    exit_code = Exit.FAILED


class WrongSetting(Failure):
    exit_code = Exit.USAGE


class Unreachable(Failure):
    exit_code = Exit.UNREACHABLE


class InUse(Failure):
    exit_code = Exit.IN_USE


class NoAccess(Failure):
    exit_code = Exit.NO_ACCESS


@contextmanager
def plain_failures(
    others: Mapping[type[Exception], Exit] | None = None, *, stderr_is_log: bool = False
) -> Iterator[None]:
    """Ends the process with a plain message and the right code when the block fails in a foreseeable way.

    `others` gives further exceptions whose message is fit for a person, with their exit codes. What is not foreseen
    passes through with its traceback. Use it around a command's whole body, or as its decorator.

    With `stderr_is_log`, for processes that run for long: where standard error is no terminal, the message is one line
    of JSON as the rest of the log is, and so is what is not foreseen.
    """
    as_json = stderr_is_log and not sys.stderr.isatty()
    try:
        yield
    except Exception as error:
        explained = _explained(error, others or {})
        if explained is None and not as_json:
            raise
        message, code = explained or (f"failed: {type(error).__name__}: {error}", Exit.FAILED)
        if as_json:
            trace = None if explained else "".join(traceback.format_exception(error))
            _log(message, code, trace)
        else:
            complain(message)
        raise SystemExit(code) from error


def _explained(error: Exception, others: Mapping[type[Exception], Exit]) -> tuple[str, Exit] | None:
    if isinstance(error, Failure):
        return str(error), error.exit_code
    for kind, code in others.items():
        if isinstance(error, kind):
            return str(error), code
    if isinstance(error, PermissionError):
        place = f" {error.filename}" if error.filename else ""
        return f"No permission to use{place}. Give this user access to it, or choose another place.", Exit.NO_ACCESS
    return None


def complain(message: str) -> None:
    """One message to standard error, under the command's name."""
    say(f"thalweg: {message}", error=True)


def _log(message: str, code: Exit, trace: str | None) -> None:
    entry = {"event": message, "exit_code": int(code), "level": "error", "timestamp": datetime.now(UTC).isoformat()}
    print(json.dumps(entry | ({"exception": trace} if trace else {})), file=sys.stderr, flush=True)
