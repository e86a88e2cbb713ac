"""What goes between the service and a copy of it that searches: one line for each message, most of it JSON."""

from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

from schemas.frames import NAMES, PARTS, SearchFrame
from schemas.search import SearchRequest

LONGEST_LINE = 256 * 1024 * 1024  # bytes; a hit holds the text of a passage and the metadata of a document
FAILED = b"failed"  # how a search ends that ends without Done

Answer = Callable[[SearchRequest, str], AsyncGenerator[SearchFrame, None]]
"""The frames of the answer to a request, for a retrieval id."""

_KINDS = {name.encode(): part for name, part in PARTS.items()}


class Ask(NamedTuple):
    """Search. `number` tells the searches of one copy apart."""

    number: int
    retrieval_id: str
    request: SearchRequest


class Stop(NamedTuple):
    """Nobody waits for this search any more."""

    number: int


class Ended(NamedTuple):
    """A search has ended without Done."""

    reason: str


def asking(ask: Ask) -> bytes:
    return b"ask %d %s %s\n" % (ask.number, ask.retrieval_id.encode(), ask.request.model_dump_json().encode())


def stopping(number: int) -> bytes:
    return b"stop %d\n" % number


def asked(line: bytes) -> Ask | Stop:
    word, number, *rest = line.rstrip(b"\n").split(b" ", 3)
    if word == b"stop":
        return Stop(int(number))
    retrieval_id, request = rest
    return Ask(int(number), retrieval_id.decode(), SearchRequest.model_validate_json(request))


def telling(number: int, part: SearchFrame) -> bytes:
    return b"%d %s %s\n" % (number, NAMES[type(part)].encode(), part.model_dump_json(by_alias=True).encode())


def ending(number: int, ended: Ended) -> bytes:
    return b"%d %s %s\n" % (number, FAILED, " ".join(ended.reason.split()).encode("utf-8", "replace"))


def told(line: bytes) -> tuple[int, SearchFrame | Ended]:
    number, kind, rest = line.rstrip(b"\n").split(b" ", 2)
    if kind in _KINDS:
        return int(number), _KINDS[kind].model_validate_json(rest)
    return int(number), Ended(rest.decode())
