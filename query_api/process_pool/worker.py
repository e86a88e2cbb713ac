"""A worker process of the pool: a fork of this one, made in some 20 milliseconds, that shares its memory."""

import asyncio
import ctypes
import gc
import os
import signal
import socket
import time
import warnings
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from schemas.frames import NAMES, PARTS, Done, SearchFrame, Stage
from schemas.search import SearchRequest

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

LONGEST_LINE = 256 * 1024 * 1024  # bytes; a hit holds the text of a passage and the metadata of a document
FAILED = b"failed"  # how a search ends that ends without Done

Answer = Callable[[SearchRequest, str], AsyncGenerator[SearchFrame, None]]
"""The frames of the answer to a request, for a retrieval id."""

_KINDS = {name.encode(): part for name, part in PARTS.items()}


class Ask(NamedTuple):
    """Search. `number` tells the searches of one worker apart."""

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


def run_worker(connection: socket.socket, inherited: frozenset[int], parts_of: Callable[[], Answer]) -> None:
    """Serve until the other end of the connection is closed. To be called in a process that was just forked.

    Nothing of what the service holds is let go of here: no file is closed that it shares, no object collected.
    `inherited` are the files that the service had open: what was opened since is the worker's own, by libraries that
    begin anew after a fork. `parts_of` makes what searches, with threads of its own.
    """
    gc.freeze()  # nothing of before is looked at again, so that it stays shared; and garbage of before closes no file
    signal.set_wakeup_fd(-1)  # it is the service's event loop that was to be woken
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is sent to the workers too, which end after the service
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)
    with suppress(OSError):  # where memory runs out, end the worker before the service, which can do without it
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


ENDS_WITHIN_SECONDS = 5.0
BEGINS_WITHIN_SECONDS = 5.0  # the first part waits for no step: a worker that does not send it is stuck


class WorkerLost(Exception):
    """The worker did not finish this search: it is gone, stuck, or failed. Here it can be done all the same."""


class WorkerProcess:
    """A process that answers searches as this one did when it was forked. Made and used on the event loop.

    Threads are not copied. A lock that another thread held at that moment stays locked in the worker, so the first
    search it is sent shows whether it is of use. One in which a step fails, that does not begin
    an answer soon, or that says nothing for `silence_seconds`, is ended.
    """

    def __init__(
        self,
        process: "ForkProcess",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        fork_seconds: float,
        silence_seconds: float,
    ) -> None:
        self.pid = process.pid
        self.fork_seconds = fork_seconds
        self.under_way = 0
        self.used_at = time.monotonic()
        self.lost: str | None = None
        self._process = process
        self._writer = writer
        self._silence_seconds = silence_seconds
        self._waiting: dict[int, asyncio.Queue[SearchFrame | Ended | None]] = {}
        self._asked = 0
        self._listening = asyncio.create_task(self._listen(reader), name="searches in a worker")

    @classmethod
    async def made(cls, parts_of: Callable[[], Answer], silence_seconds: float) -> "WorkerProcess":
        """A fork of this process as it is now, which searches with what `parts_of` makes there.

        Raises OSError where the system refuses it; `multiprocessing` then leaves four files open.
        """
        here, there = socket.socketpair()
        try:
            given = (there, open_files(), parts_of)
            process = get_context("fork").Process(target=run_worker, args=given, name="searches", daemon=True)
            began = time.perf_counter()
            with warnings.catch_warnings():  # of a fork beside threads, which is what this class is careful about
                warnings.simplefilter("ignore")
                process.start()
            fork_seconds = time.perf_counter() - began
        except BaseException:
            here.close()
            raise
        finally:
            there.close()
        reader, writer = await asyncio.open_unix_connection(sock=here, limit=LONGEST_LINE)
        return cls(process, reader, writer, fork_seconds, silence_seconds)

    async def search(self, request: SearchRequest, retrieval_id: str) -> AsyncGenerator[SearchFrame, None]:
        """The parts of an answer, as the engine gives them; no step that failed. Raises WorkerLost at any moment."""
        if self.lost is not None:
            raise WorkerLost(self.lost)
        self._asked += 1
        number = self._asked
        frames: asyncio.Queue[SearchFrame | Ended | None] = asyncio.Queue()
        self._waiting[number] = frames
        self.under_way += 1
        self.used_at = time.monotonic()
        ended = False
        try:
            self._writer.write(encode_ask(Ask(number, retrieval_id, request)))
            silence_seconds = min(BEGINS_WITHIN_SECONDS, self._silence_seconds)
            while not ended:
                part = await self._next(frames, silence_seconds)
                silence_seconds = self._silence_seconds
                ended = isinstance(part, Done | Ended)
                if isinstance(part, Ended):
                    raise WorkerLost(part.reason)
                self._look_for_failure(part)
                yield part
        finally:
            self.under_way -= 1
            del self._waiting[number]
            if not ended and self.lost is None:
                self._writer.write(encode_stop(number))

    async def close(self) -> None:
        """End it once the searches it was sent are done, by force if that takes too long."""
        if self.lost is None:
            with suppress(OSError):
                self._writer.write_eof()
            with suppress(TimeoutError):
                async with asyncio.timeout(ENDS_WITHIN_SECONDS):
                    await asyncio.shield(self._listening)
        self._end("it was closed")
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    def _look_for_failure(self, part: SearchFrame) -> None:
        """All that a worker reads is in its memory: a step that failed there met a lock that nobody opens. Raises
        WorkerLost; an answer that is complete is left as it is."""
        match part:
            case Stage(name=name, error=str(error)):
                self._end(f"the step {name} failed in it: {error}")
                raise WorkerLost(self.lost)
            case Done(failed_channels=failed) if failed:
                self._end(f"steps failed in it: {failed}")

    async def _next(
        self, frames: "asyncio.Queue[SearchFrame | Ended | None]", silence_seconds: float
    ) -> SearchFrame | Ended:
        try:
            async with asyncio.timeout(silence_seconds):
                part = await frames.get()
        except TimeoutError:
            self._end(f"it said nothing for {silence_seconds:g} s")
            raise WorkerLost(self.lost) from None
        if part is None:
            raise WorkerLost(self.lost)
        return part

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                number, part = decode_frame(line)
                if number in self._waiting:
                    self._waiting[number].put_nowait(part)
            self._end("it has ended")
        except (OSError, ValueError) as error:
            self._end(f"it cannot be heard: {error}")
        finally:
            self._end("nobody listens to it any more")
            await _reaped(self._process)

    def _end(self, reason: str) -> None:
        """No answer comes from it any more."""
        if self.lost is not None:
            return
        self.lost = reason
        self._process.kill()
        for frames in self._waiting.values():
            frames.put_nowait(None)
        self._writer.close()


async def _reaped(process: "ForkProcess") -> None:
    await asyncio.to_thread(process.join)
    process.close()
