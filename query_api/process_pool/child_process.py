"""The child's side of the pool: the messages between the service and a copy of it, and the copy that answers."""

import asyncio
import ctypes
import gc
import os
import signal
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from pathlib import Path
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


def encode_ask(ask: Ask) -> bytes:
    return b"ask %d %s %s\n" % (ask.number, ask.retrieval_id.encode(), ask.request.model_dump_json().encode())


def encode_stop(number: int) -> bytes:
    return b"stop %d\n" % number


def decode_request(line: bytes) -> Ask | Stop:
    word, number, *rest = line.rstrip(b"\n").split(b" ", 3)
    if word == b"stop":
        return Stop(int(number))
    retrieval_id, request = rest
    return Ask(int(number), retrieval_id.decode(), SearchRequest.model_validate_json(request))


def encode_frame(number: int, part: SearchFrame) -> bytes:
    return b"%d %s %s\n" % (number, NAMES[type(part)].encode(), part.model_dump_json(by_alias=True).encode())


def encode_failure(number: int, ended: Ended) -> bytes:
    return b"%d %s %s\n" % (number, FAILED, " ".join(ended.reason.split()).encode("utf-8", "replace"))


def decode_frame(line: bytes) -> tuple[int, SearchFrame | Ended]:
    number, kind, rest = line.rstrip(b"\n").split(b" ", 2)
    if kind in _KINDS:
        return int(number), _KINDS[kind].model_validate_json(rest)
    return int(number), Ended(rest.decode())


LAST_STANDARD_FILE = 2
_FIRST_TO_GO = "1000"  # of -1000 to 1000, proc_pid_oom_score_adj(5)
_SIGNAL_AT_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of linux/prctl.h


def open_files() -> frozenset[int]:
    """The numbers of the files this process has open. Raises OSError on a system without /proc."""
    return frozenset(int(each.name) for each in Path("/proc/self/fd").iterdir())


def run_copy(connection: socket.socket, inherited: frozenset[int], parts_of: Callable[[], Answer]) -> None:
    """Serve until the other end of the connection is closed. To be called in a process that was just forked.

    Nothing of what the service holds is let go of here: no file is closed that it shares, no object collected.
    `inherited` are the files that the service had open: what was opened since is the copy's own, by libraries that
    begin anew after a fork. `parts_of` makes what searches, with threads of its own.
    """
    gc.freeze()  # nothing of before is looked at again, so that it stays shared; and garbage of before closes no file
    signal.set_wakeup_fd(-1)  # it is the service's event loop that was to be woken
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is sent to the copies too, which end after the service
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)
    with suppress(OSError):  # where memory runs out, a copy is to go before the service, which can do without
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    _let_go_of_files(inherited - {connection.fileno()})
    asyncio.run(_Answering(parts_of()).run(connection))


def _let_go_of_files(numbers: frozenset[int]) -> None:
    """Point these but the standard ones nowhere: a client's connection, kept open here, would not end when the service
    ends it. The numbers stay taken, so objects of before that close them harm no newer file."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in numbers:
        if number > LAST_STANDARD_FILE:
            with suppress(OSError):  # closed since it was listed
                os.fstat(number)
                os.dup2(nowhere, number, inheritable=False)


class _Answering:
    def __init__(self, parts_of: Answer) -> None:
        self._parts_of = parts_of
        self._running: dict[int, asyncio.Task[None]] = {}

    async def run(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=LONGEST_LINE)
        while line := await reader.readline():
            match decode_request(line):
                case Ask() as ask:
                    self._running[ask.number] = asyncio.create_task(self._answer(ask, writer))
                case Stop(number) if number in self._running:
                    self._running[number].cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _answer(self, ask: Ask, writer: asyncio.StreamWriter) -> None:
        try:
            async with aclosing(self._parts_of(ask.request, ask.retrieval_id)) as parts:
                async for part in parts:
                    writer.write(encode_frame(ask.number, part))
                    await writer.drain()
        except Exception as error:  # noqa: BLE001 -- edge of a process: the service searches by itself, and tells
            writer.write(encode_failure(ask.number, Ended(f"{type(error).__name__}: {error}")))
        finally:
            del self._running[ask.number]
