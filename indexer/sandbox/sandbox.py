"""Runs a function on untrusted bytes in a child process with limits, so that no document can take the worker down.

A child is a fresh interpreter (it inherits a few environment variables only, no setting) with limits of the operating
system on CPU seconds, memory and core files, a limit on the size of its result and a time-out for each task. An audit
hook refuses sockets, new processes, writing to files, and what /proc holds of other processes. That stops a parser
tricked into fetching or running something, but not native code under an attacker's control. Linux enforces every limit;
elsewhere memory may be unlimited.
"""

import asyncio
import contextlib
import importlib.util
import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from indexer.errors import UnparsableDocument
from indexer.sandbox.child import HEAD_BYTES, MIB, SandboxLimits, Status
from schemas.errors import DeadLetterReason

__all__ = ["Sandbox", "SandboxFailure", "SandboxLimits"]

START_SECONDS = 60.0
_CPU_LIMIT = getattr(signal, "SIGXCPU", None)  # None where the system has no such limit
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT", "COVERAGE_PROCESS_START")


class SandboxFailure(RuntimeError):
    """The child process cannot start, whatever the document: repair the installation."""


class Sandbox:
    """A pool of child processes that run one function from bytes to bytes, named `package.module:function`.

    Children start on demand, are killed when a task exceeds a limit, and are replaced for the next one; tasks in other
    children are not affected. Belongs to one event loop. Close it, or use it as `async with`.
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

        Raises UnparsableDocument with the function's own reason, with `parser_limit` when a limit was exceeded or the
        child died, or with `parser_failed` for any other exception in it. Raises SandboxFailure when no child can
        start. A cancelled call kills its child.
        """
        async with self._free:
            if self._closing.is_set():
                raise SandboxFailure("The sandbox is closed.")
            try:
                status, payload = await self._request(self._idle.pop() if self._idle else None, argument)
            finally:
                if self._closing.is_set():
                    await self.close()
        return _result(status, payload)

    async def _request(self, idle: "_Child | None", argument: bytes) -> tuple[Status, bytes]:
        """Send a request to an idle child, else to a new one.

        If an idle child dies, an earlier task may be the cause, so the request is repeated once with a new child; but
        not after the CPU limit, which is counted for each task separately.
        """
        child = idle or await _Child.start(self._function, self._limits)
        try:
            async with asyncio.timeout(self._limits.wall_seconds):
                status, payload = await child.request(argument)
        except TimeoutError as error:
            await child.kill()
            message = f"Reading it took longer than {self._limits.wall_seconds:g} seconds."
            raise UnparsableDocument("parser_limit", message) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            await child.close()  # not killed at once: the exit status has the cause
            if idle is not None and not child.ended_by_cpu_limit:
                return await self._request(None, argument)
            raise UnparsableDocument("parser_limit", _limits_message(self._limits)) from error
        except BaseException:
            await child.kill()
            raise
        if status in (Status.DONE_EXITING, Status.UNPARSABLE_EXITING):
            await child.kill()
        else:
            self._idle.append(child)
        return status, payload

    async def close(self) -> None:
        """End the children; busy ones end with their task. May be called again."""
        self._closing.set()
        while self._idle:
            await self._idle.pop().close()


def _result(status: Status, payload: bytes) -> bytes:
    if status in (Status.DONE, Status.DONE_EXITING):
        return payload
    reason, message = msgspec.msgpack.decode(payload, type=tuple[DeadLetterReason, str])
    raise UnparsableDocument(reason, message)


def _limits_message(limits: SandboxLimits) -> str:
    return (
        f"Reading it broke a limit: {limits.cpu_seconds} CPU seconds, {limits.memory_bytes // MIB} MiB of memory, "
        f"{limits.output_bytes // MIB} MiB of result."
    )


@dataclass(eq=False)
class _Child:
    """The parent's handle of one child process."""

    process: asyncio.subprocess.Process
    requests: asyncio.StreamWriter
    responses: asyncio.StreamReader
    limits: SandboxLimits

    @classmethod
    async def start(cls, function: str, limits: SandboxLimits) -> "_Child":
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(_import_path(function))
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

    async def request(self, argument: bytes) -> tuple[Status, bytes]:
        self.requests.write(len(argument).to_bytes(8, "big"))
        self.requests.write(argument)
        await self.requests.drain()
        return await self._receive()

    async def _receive(self) -> tuple[Status, bytes]:
        head = await self.responses.readexactly(HEAD_BYTES)
        length = int.from_bytes(head[1:], "big")
        if length > self.limits.output_bytes:
            raise ConnectionError("a response over the limit")
        return Status(head[:1]), await self.responses.readexactly(length)

    @property
    def ended_by_cpu_limit(self) -> bool:
        return _CPU_LIMIT is not None and self.process.returncode == -_CPU_LIMIT

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()

    async def close(self) -> None:
        """Let the child end, as it does when its input ends; kill it after two seconds."""
        self.requests.close()
        try:
            async with asyncio.timeout(2):
                await self.process.wait()
        except TimeoutError:
            await self.kill()


def _import_path(function: str) -> list[str]:
    """The folders that contain this package and the function's."""
    folders = [str(Path(__file__).resolve().parents[2])]
    spec = importlib.util.find_spec(function.partition(":")[0].partition(".")[0])
    if spec is not None and spec.origin is not None:
        package = Path(spec.origin).resolve().parent
        folders.append(str(package.parent if spec.submodule_search_locations else package))
    return list(dict.fromkeys(folders))
