"""Errors of data that crossed a process border, and foreseeable failures of a command with their exit codes."""

import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum
from typing import Literal

from schemas.terminal import say

DeadLetterReason = Literal[
    # keys and envelopes
    "missing_id",  # The key is empty.
    "bad_key",  # The key is not `<collection>/<document id>` within its bounds.
    "key_mismatch",  # The record names another document than its key.
    "not_json",  # The value is not JSON.
    "wrong_type",  # The value is JSON of another shape, or a field has a value that it cannot have.
    "empty_content",  # There is nothing readable.
    "title_too_large",  # The title has too many characters.
    "uri_too_large",  # The address has too many characters.
    "content_type_too_large",  # The media type has too many characters.
    "links_too_large",  # There are too many links, or one is too long.
    "metadata_too_large",  # The metadata is over THALWEG_LIMITS__MAX_METADATA_BYTES.
    "metadata_too_deep",  # The metadata nests too deep.
    "number_too_large",  # The metadata has an integer over 64 bits.
    "reserved_metadata",  # A metadata name is one that parsers use.
    "too_large",  # The document is over THALWEG_LIMITS__MAX_DOCUMENT_BYTES, or over a limit of its format.
    # parsing, embedding and linking
    "unknown_media_type",  # No parser reads the media type.
    "media_type_mismatch",  # The first bytes are of another format than the media type.
    "undecodable",  # The character set is unknown, or the bytes are not of it.
    "malformed",  # The content violates its format.
    "protected",  # The content can only be read with a password.
    "pictures_only",  # The content has pages, and no text on any of them.
    "too_deep",  # The content nests too deep for its format.
    "unsafe",  # The content has constructs of attacks: entity expansion, paths that lead out of an archive.
    "parser_limit",  # Parsing exceeds a limit of time, memory or output.
    "parser_failed",  # The parser fails with an error of its own.
    "embedding_failed",  # The encoder returns no vector for one of the texts.
    "failed",  # The store refuses the record, or an error is unforeseen.
    # other topics
    "unknown_setting",  # A collection has no setting of this name.
    "bad_setting",  # The sizes of a collection's chunking do not fit together.
    "bad_contribution",  # A record of the contributions topic is not a contribution.
    "bad_retrieval",  # A record of the provenance topic is neither a retrieval nor feedback.
    "unreadable_batch",  # A batch of any topic cannot be read, and an operator has skipped it.
]
"""Every reason of a dead letter: its header `thalweg.reason`, a label of `thalweg_dead_letters_total`, and `reason` of
the problem where a request is refused for it."""


class MalformedEvent(ValueError):
    """A record that no retry can help: a dead letter. The message is for the person who repairs it."""

    def __init__(self, reason: DeadLetterReason, message: str) -> None:
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
    """What is on disk is not what was written: the message says which file, and what repairs it."""
    INCOMPLETE = 7
    """Not all of it could be looked at yet, and nothing that could is wrong: try it again later."""


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


def install_extra(name: str) -> str:
    """How to add an optional part, for messages. No package index has Thalweg."""
    return (
        f"install it with .venv/bin/pip install -e '.[{name}]' in the checkout, or with pip install 'FILE.whl[{name}]' "
        "from the wheel's file"
    )


@contextmanager
def plain_failures(
    others: Mapping[type[Exception], Exit] | None = None, *, stderr_is_log: bool = False
) -> Iterator[None]:
    """Ends the process with a plain message and the right code when the block fails in a foreseeable way.

    `others` gives further exceptions whose message is fit for a person, with their exit codes. What is not foreseen
    passes through with its traceback. Use it around a command's whole body, or as its decorator.

    With `stderr_is_log`, for long-running processes: where standard error is not a terminal, the message is one line
    of JSON as the rest of the log is, and so is what is not foreseen.
    """
    as_json = stderr_is_log and not sys.stderr.isatty()
    try:
        yield
    except Exception as error:
        explained = _explained(error, others or {})
        if isinstance(error, UnicodeEncodeError) and not stderr_is_log:
            explained = f"{error.object[:80]!r} is not UTF-8, so it cannot be sent or written.", Exit.USAGE
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
