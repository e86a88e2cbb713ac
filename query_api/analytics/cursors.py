"""The cursor of the list of retrievals: where in time the page before ended, not for reading by those who carry it."""

import base64
import binascii

import msgspec

from indexer.errors import MalformedCursor
from schemas.provenance import Retrieval

Place = tuple[int, str]  # (at_ms, retrieval_id)


def cursor_after(retrieval: Retrieval) -> str:
    place = msgspec.json.encode((retrieval.at_ms, retrieval.retrieval_id))
    return base64.urlsafe_b64encode(place).decode().rstrip("=")


def place_of(cursor: str) -> Place:
    """Raises MalformedCursor for anything that `cursor_after` did not make."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        place: Place = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=Place)
    except (binascii.Error, ValueError) as error:
        raise MalformedCursor("Give the `next_cursor` of the page before, as it came.") from error
    return place
