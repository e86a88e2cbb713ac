"""The cursor of a list of documents: the last document of the page before, not for reading."""

import base64
import binascii

import msgspec

from indexer.errors import MalformedCursor
from schemas.ids import DocumentKey


def write_cursor(key: DocumentKey) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def read_cursor(cursor: str) -> DocumentKey:
    """Raises MalformedCursor for anything that `write_cursor` did not make."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=DocumentKey)
    except (binascii.Error, UnicodeError, msgspec.DecodeError) as error:
        raise MalformedCursor(f"The cursor {cursor[:80]!r} was not given out by a list of documents.") from error
