"""Cursors of pages: where a list continues, as text that callers return unchanged."""

import base64
import hashlib
from typing import TypeVar

import msgspec

CHECK_BYTES = 6

T = TypeVar("T")


class MalformedCursor(ValueError):
    """Not a cursor of this list; the message says what to do."""


def write_cursor(place: object) -> str:
    """The place in JSON after a check sum. It is neither secret nor signed: a cursor opens nothing that its caller may
    not read."""
    body = msgspec.json.encode(place)
    return base64.urlsafe_b64encode(_check(body) + body).decode().rstrip("=")


def read_cursor(cursor: str, of: type[T], listed: str) -> T:
    """The place; `listed` says what the pages are of. Raises MalformedCursor for anything that `write_cursor` did not
    make of such a place."""
    try:
        sent = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        check, body = sent[:CHECK_BYTES], sent[CHECK_BYTES:]
        if check == _check(body):
            return msgspec.json.decode(body, type=of)
    except ValueError:  # not base64, not ASCII, or a place in another list
        pass
    raise MalformedCursor(
        f"{cursor[:40]!r} is not a cursor of {listed}: give the `next_cursor` of the page before, as it came, or omit "
        "it to begin at the first page."
    )


def _check(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECK_BYTES, person=b"cursor").digest()
