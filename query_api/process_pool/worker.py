"""One copy of this process, seen from here: made in some 20 milliseconds, it shares this one's memory."""

import asyncio
import socket
import time
import warnings
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING

from query_api.process_pool.child_process import (
    LONGEST_LINE,
    Answer,
    Ask,
    Ended,
    decode_frame,
    encode_ask,
    encode_stop,
    open_files,
    run_copy,
)
from schemas.frames import Done, SearchFrame, Stage
from schemas.search import SearchRequest

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

ENDS_WITHIN_SECONDS = 5.0
BEGINS_WITHIN_SECONDS = 5.0  # the first part waits for no step: a copy that does not tell it runs no more


class WorkerLost(Exception):
    """The copy did not finish this search: it is gone, stuck, or failed. Here it can be done all the same."""


class WorkerProcess:
    """A process that answers searches as this one did when it was copied. Made and used on the event loop.

    Threads are not copied. A lock that another thread held at that moment stays locked in the copy, so the first
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
        self._listening = asyncio.create_task(self._listen(reader), name="searches in a copy of this process")

    @classmethod
    async def made(cls, parts_of: Callable[[], Answer], silence_seconds: float) -> "WorkerProcess":
        """A copy of this process as it is now, which searches with what `parts_of` makes there.

        Raises OSError where the system refuses it; `multiprocessing` then leaves four files open.
        """
        here, there = socket.socketpair()
        try:
            given = (there, open_files(), parts_of)
            process = get_context("fork").Process(target=run_copy, args=given, name="searches", daemon=True)
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
        """All that a copy reads is in its memory: a step that failed there met a lock that nobody opens. Raises
        WorkerLost; an answer that was told up to Done is left as it is."""
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
