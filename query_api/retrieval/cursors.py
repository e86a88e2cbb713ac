"""The cursor of a search: which snapshot, which question, which page; not for reading by those who carry it."""

import base64
import binascii
import hashlib
from typing import Annotated

import msgspec

from indexer.errors import MalformedCursor
from schemas.search import MAX_OFFSET

CHECK_BYTES = 6

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """`snapshot` is the name it is kept under, `question` a digest of what was asked, `offset` the page's first hit."""

    snapshot: Name
    question: Name
    offset: Annotated[int, msgspec.Meta(ge=0, le=MAX_OFFSET)]


_decoder = msgspec.json.Decoder(Cursor)


def write_cursor(cursor: Cursor) -> str:
    """With a check sum before it. It is no secret and no signature: a cursor opens nothing its caller may not search,
    and a snapshot's name cannot be guessed."""
    body = msgspec.json.encode(cursor)
    return base64.urlsafe_b64encode(_check(body) + body).decode().rstrip("=")


def read_cursor(text: str) -> Cursor:
    """Raises MalformedCursor for anything that `write_cursor` did not make."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        sent = base64.b64decode(padded, altchars=b"-_", validate=True)
        check, body = sent[:CHECK_BYTES], sent[CHECK_BYTES:]
        if check != _check(body):
            raise ValueError("the check sum does not fit")
        return _decoder.decode(body)
    except (binascii.Error, ValueError) as error:
        raise MalformedCursor(
            f"{text[:40]!r} is no cursor of a search: give the `next_cursor` of the page before, as it came."
        ) from error


def _check(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECK_BYTES, person=b"cursor").digest()
