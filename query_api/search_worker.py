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
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from schemas.frames import NAMES, PARTS, Done, SearchFrame, Stage
from schemas.search import SearchRequest

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

Answer = Callable[[SearchRequest, str], AsyncGenerator[SearchFrame, None]]
"""The frames of the answer to a request, for a retrieval id."""

LONGEST_LINE = 256 * 1024 * 1024  # bytes; a hit holds the text of a passage and the metadata of a document
FAILED = b"failed"  # how a search ends that ends without Done
_KINDS = {name.encode(): part for name, part in PARTS.items()}


class SearchCommand(NamedTuple):
    """Search. `number` identifies a search of one worker."""

    number: int
    retrieval_id: str
    request: SearchRequest


class CancelCommand(NamedTuple):
    number: int


class Failure(NamedTuple):
    """A search has ended without Done."""

    reason: str


def encode_command(command: SearchCommand | CancelCommand) -> bytes:
    if isinstance(command, CancelCommand):
        return b"cancel %d\n" % command.number
    body = command.request.model_dump_json().encode()
    return b"search %d %s %s\n" % (command.number, command.retrieval_id.encode(), body)


def decode_command(line: bytes) -> SearchCommand | CancelCommand:
    word, number, *rest = line.rstrip(b"\n").split(b" ", 3)
    if word == b"cancel":
        return CancelCommand(int(number))
    retrieval_id, request = rest
    return SearchCommand(int(number), retrieval_id.decode(), SearchRequest.model_validate_json(request))


def encode_frame(number: int, frame: SearchFrame | Failure) -> bytes:
    if isinstance(frame, Failure):
        return b"%d %s %s\n" % (number, FAILED, " ".join(frame.reason.split()).encode("utf-8", "replace"))
    return b"%d %s %s\n" % (number, NAMES[type(frame)].encode(), frame.model_dump_json(by_alias=True).encode())


def decode_frame(line: bytes) -> tuple[int, SearchFrame | Failure]:
    number, kind, rest = line.rstrip(b"\n").split(b" ", 2)
    if kind in _KINDS:
        return int(number), _KINDS[kind].model_validate_json(rest)
    return int(number), Failure(rest.decode())


LAST_STANDARD_FILE = 2
_FIRST_TO_GO = "1000"  # of -1000 to 1000, proc_pid_oom_score_adj(5)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def open_files() -> frozenset[int]:
    """The file descriptors of this process. Raises OSError on a system without /proc."""
    return frozenset(int(each.name) for each in Path("/proc/self/fd").iterdir())


def run_worker(connection: socket.socket, inherited: frozenset[int], create_answer: Callable[[], Answer]) -> None:
    """Serve until the other end of the connection is closed. To be called in a process that was just forked.

    Nothing that is shared with the service is released: no file is closed, no object collected. `inherited` are the
    file descriptors of the service; those opened since are the worker's own, of libraries that restart after a fork.
    """
    gc.freeze()  # earlier objects stay shared, and earlier garbage closes no file
    signal.set_wakeup_fd(-1)  # the service's event loop was to be woken
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is sent to the workers too, which end after the service
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(OSError):  # where memory runs out, end the worker before the service, which can do without it
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    _detach_inherited_fds(inherited - {connection.fileno()})
    asyncio.run(_serve(connection, create_answer()))


def _detach_inherited_fds(descriptors: frozenset[int]) -> None:
    """Redirect these but the standard ones to the null device: a client's connection, open here too, would not end when
    the service closes it. The numbers stay in use, so objects that close them harm no newer file."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        if descriptor > LAST_STANDARD_FILE:
            with suppress(OSError):  # closed since it was listed
                os.fstat(descriptor)
                os.dup2(null, descriptor, inheritable=False)


async def _serve(connection: socket.socket, answer: Answer) -> None:
    running: dict[int, asyncio.Task[None]] = {}
    reader, writer = await asyncio.open_unix_connection(sock=connection, limit=LONGEST_LINE)

    async def search(command: SearchCommand) -> None:
        try:
            async with aclosing(answer(command.request, command.retrieval_id)) as frames:
                async for frame in frames:
                    writer.write(encode_frame(command.number, frame))
                    await writer.drain()
        except Exception as error:  # noqa: BLE001 -- edge of a process: the service retries the search, and logs
            writer.write(encode_frame(command.number, Failure(f"{type(error).__name__}: {error}")))
        finally:
            del running[command.number]

    while line := await reader.readline():
        match decode_command(line):
            case SearchCommand() as command:
                running[command.number] = asyncio.create_task(search(command))
            case CancelCommand(number) if number in running:
                running[number].cancel()
    await asyncio.gather(*running.values(), return_exceptions=True)


END_SECONDS = 5.0
BEGIN_SECONDS = 5.0  # the first frame waits for no stage: a worker that does not send it is stuck


class WorkerLost(Exception):
    """The worker did not finish this search: it is gone, stuck, or failed. The main process can still do it."""


@dataclass(eq=False)
class WorkerProcess:
    """A process that answers searches as this one did when it was forked. Created and used on the event loop.

    Threads are not copied. A lock that another thread held during the fork stays locked in the worker, so a first
    search probes it. A worker in which a stage fails, that does not begin an answer soon, or that sends nothing for
    `silence_seconds`, is ended.
    """

    process: "ForkProcess"
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    fork_seconds: float
    silence_seconds: float

    def __post_init__(self) -> None:
        self.pid = self.process.pid
        self.under_way = 0
        self.used_at = time.monotonic()
        self.lost: str | None = None
        self._waiting: dict[int, asyncio.Queue[SearchFrame | Failure | None]] = {}
        self._searches = 0
        self._listening = asyncio.create_task(self._listen(self.reader), name="searches in a worker")

    @classmethod
    async def create(cls, create_answer: Callable[[], Answer], silence_seconds: float) -> "WorkerProcess":
        """A fork of this process as it is now, which searches with what `create_answer` makes there.

        Raises OSError where the system refuses it; `multiprocessing` then leaves four files open.
        """
        here, there = socket.socketpair()
        try:
            arguments = (there, open_files(), create_answer)
            process = get_context("fork").Process(target=run_worker, args=arguments, name="searches", daemon=True)
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
        """The frames of an answer; no stage that failed. Raises WorkerLost at any moment."""
        if self.lost is not None:
            raise WorkerLost(self.lost)
        self._searches += 1
        number = self._searches
        frames: asyncio.Queue[SearchFrame | Failure | None] = asyncio.Queue()
        self._waiting[number] = frames
        self.under_way += 1
        self.used_at = time.monotonic()
        ended = False
        try:
            self.writer.write(encode_command(SearchCommand(number, retrieval_id, request)))
            silence_seconds = min(BEGIN_SECONDS, self.silence_seconds)
            while not ended:
                frame = await self._next(frames, silence_seconds)
                silence_seconds = self.silence_seconds
                ended = isinstance(frame, Done | Failure)
                if isinstance(frame, Failure):
                    raise WorkerLost(frame.reason)
                self._check_stage(frame)
                yield frame
        finally:
            self.under_way -= 1
            del self._waiting[number]
            if not ended and self.lost is None:
                self.writer.write(encode_command(CancelCommand(number)))

    async def close(self) -> None:
        """End it once the searches it was sent are done, by force if that takes too long."""
        if self.lost is None:
            with suppress(OSError):
                self.writer.write_eof()
            with suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await asyncio.shield(self._listening)
        self._end("it was closed")
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    def _check_stage(self, frame: SearchFrame) -> None:
        """All that a worker reads is in its memory, so a stage that failed there met a lock that is never released.
        Raises WorkerLost; an answer that is complete is left as it is."""
        match frame:
            case Stage(name=name, error=str(error)):
                self._end(f"the step {name} failed in it: {error}")
                raise WorkerLost(self.lost)
            case Done(failed_channels=failed) if failed:
                self._end(f"steps failed in it: {failed}")

    async def _next(
        self, frames: "asyncio.Queue[SearchFrame | Failure | None]", silence_seconds: float
    ) -> SearchFrame | Failure:
        try:
            async with asyncio.timeout(silence_seconds):
                frame = await frames.get()
        except TimeoutError:
            self._end(f"it sent nothing for {silence_seconds:g} s")
            raise WorkerLost(self.lost) from None
        if frame is None:
            raise WorkerLost(self.lost)
        return frame

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                number, frame = decode_frame(line)
                if number in self._waiting:
                    self._waiting[number].put_nowait(frame)
            self._end("it has ended")
        except (OSError, ValueError) as error:
            self._end(f"it cannot be read: {error}")
        finally:
            self._end("nothing reads from it any more")
            await asyncio.to_thread(self.process.join)
            self.process.close()

    def _end(self, reason: str) -> None:
        """No answer comes from it any more."""
        if self.lost is not None:
            return
        self.lost = reason
        self.process.kill()
        for frames in self._waiting.values():
            frames.put_nowait(None)
        self.writer.close()
