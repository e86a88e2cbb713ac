"""Runs a function on untrusted bytes in a child process with limits, so that no document can take the worker down.

What it is: a fresh interpreter (nothing inherited but a few environment variables) with limits of the operating system
on CPU seconds, memory and core files, a bound on its answer and a clock on each task. An audit hook refuses sockets,
new processes and writing to files.
What it is not: a jail. The hook holds back a parser that is talked into fetching or running something; it would not
hold back native code that an attacker has taken over. Linux enforces every limit; elsewhere memory may be unbounded.
"""

import asyncio
import contextlib
import importlib.util
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from indexer.errors import UnparsableDocument
from indexer.sandbox.child import HEAD_BYTES, MIB, SandboxLimits, Status

__all__ = ["Sandbox", "SandboxFailure", "SandboxLimits"]

START_SECONDS = 60.0
_CPU_LIMIT = getattr(signal, "SIGXCPU", None)  # None where the system has no such limit
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT", "COVERAGE_PROCESS_START")


class SandboxFailure(RuntimeError):
    """The child process cannot start, whatever the document: mend the installation; no document is to blame."""


class Sandbox:
    """A few child processes that run one function, named `package.module:function`, taking bytes and giving bytes.

    Children start at the first need, are killed when a task exceeds a limit, and are replaced for the next one; tasks
    in other children notice nothing. Belongs to one event loop. Close it, or use it as `async with`.
    """

    def __init__(self, function: str, limits: SandboxLimits | None = None, *, processes: int = 1) -> None:
        self._function = function
        self._limits = limits or SandboxLimits()
        self._processes = processes
        self._idle: list[_Child] = []
        self._free = asyncio.Semaphore(processes)
        self._closing = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def run(self, argument: bytes) -> bytes:
        """The function's result.

        Raises UnparsableDocument with the function's own reason; with `parser_limit` when a limit was exceeded or the
        child died; with `parser_failed` for any other exception in it. Raises SandboxFailure when no child can start.
        The argument may be run again after such an error; a cancelled call kills its child.
        """
        async with self._free:
            if self._closing.is_set():
                raise SandboxFailure("The sandbox is closed.")
            try:
                status, payload = await self._ask(self._idle.pop() if self._idle else None, argument)
            finally:
                if self._closing.is_set():
                    await self.close()
        return _result(status, payload)

    async def _ask(self, used: "_Child | None", argument: bytes) -> tuple[Status, bytes]:
        """Ask a child, a new one unless there is a used one.

        A used one that dies may have had it from before, so a new one is asked; but not when it died of its CPU limit,
        which is counted for each task alone.
        """
        child = used or await _Child.start(self._function, self._limits)
        try:
            async with asyncio.timeout(self._limits.wall_seconds):
                status, payload = await child.ask(argument)
        except TimeoutError as error:
            await child.kill()
            message = f"Reading it took longer than {self._limits.wall_seconds:g} seconds."
            raise UnparsableDocument("parser_limit", message) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            await child.close()  # not killed at once: a child that is dying is to say of what
            if used is not None and not child.ended_by_cpu_limit:
                return await self._ask(None, argument)
            raise UnparsableDocument("parser_limit", _broken_limits(self._limits)) from error
        except BaseException:
            await child.kill()
            raise
        if status in (Status.DONE_LEAVING, Status.UNPARSABLE_LEAVING):
            await child.kill()
        else:
            self._idle.append(child)
        return status, payload

    async def close(self) -> None:
        """End the children; those at work end with their task. May be called again."""
        self._closing.set()
        while self._idle:
            await self._idle.pop().close()


def _result(status: Status, payload: bytes) -> bytes:
    if status in (Status.DONE, Status.DONE_LEAVING):
        return payload
    reason, message = msgspec.msgpack.decode(payload, type=tuple[str, str])
    raise UnparsableDocument(reason, message)


def _broken_limits(limits: SandboxLimits) -> str:
    return (
        f"Reading it broke a limit: {limits.cpu_seconds} CPU seconds, {limits.memory_bytes // MIB} MiB of memory, "
        f"{limits.output_bytes // MIB} MiB of result."
    )


class _Child:
    """One child process, seen from the worker."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        questions: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        limits: SandboxLimits,
    ) -> None:
        self._process = process
        self._questions = questions
        self._answers = answers
        self._limits = limits

    @classmethod
    async def start(cls, function: str, limits: SandboxLimits) -> "_Child":
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(_import_places(function))
        environment["PYTHONHASHSEED"] = "0"
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "indexer.sandbox.child",
            function,
            msgspec.json.encode(asdict(limits)).decode(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        if process.stdin is None or process.stdout is None:
            raise SandboxFailure("The process that reads documents has no pipes.")
        child = cls(process, process.stdin, process.stdout, limits)
        try:
            async with asyncio.timeout(START_SECONDS):
                status, payload = await child._receive()
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
            await child.kill()
            raise SandboxFailure(
                f"The process that reads documents did not start within {START_SECONDS:g} s."
            ) from error
        except BaseException:
            await child.kill()
            raise
        if status is not Status.READY:
            await child.kill()
            raise SandboxFailure(f"The process that reads documents cannot run {function}: {payload.decode()}")
        return child

    async def ask(self, argument: bytes) -> tuple[Status, bytes]:
        self._questions.write(len(argument).to_bytes(8, "big"))
        self._questions.write(argument)
        await self._questions.drain()
        return await self._receive()

    async def _receive(self) -> tuple[Status, bytes]:
        head = await self._answers.readexactly(HEAD_BYTES)
        length = int.from_bytes(head[1:], "big")
        if length > self._limits.output_bytes:
            raise ConnectionError("an answer over the limit")
        return Status(head[:1]), await self._answers.readexactly(length)

    @property
    def ended_by_cpu_limit(self) -> bool:
        return _CPU_LIMIT is not None and self._process.returncode == -_CPU_LIMIT

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def close(self) -> None:
        """Let a child end by itself, which an idle one does when its input ends, and a dying one anyway."""
        self._questions.close()
        try:
            async with asyncio.timeout(2):
                await self._process.wait()
        except TimeoutError:
            await self.kill()


def _import_places(function: str) -> list[str]:
    """The folders the child imports from: the ones that hold this package and the function's."""
    places = [str(Path(__file__).resolve().parent.parent)]
    spec = importlib.util.find_spec(function.partition(":")[0].partition(".")[0])
    if spec is not None and spec.origin is not None:
        package = Path(spec.origin).resolve().parent
        places.append(str(package.parent if spec.submodule_search_locations else package))
    return list(dict.fromkeys(places))
