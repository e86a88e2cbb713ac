"""The parts `thalweg up` runs: the broker, the child processes with a readiness probe over HTTP, and their logs."""

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Protocol

import httpx

from schemas.errors import Exit, Failure
from streams.child_processes import Child, exit_text, file_size, file_tail
from streams.embedded_kafka.broker import EmbeddedKafka
from streams.runtime.worker_health import NOTE

LARGEST_LOG_BYTES = 16 * 1024 * 1024
_FOLLOW_SECONDS = 0.2
_TRIM_SECONDS = 10.0


def trim(log_file: Path) -> None:
    """Keeps a large log as `<name>.1` and empties it, also while a process appends to it.

    Lines written during the copy may be missing from both.
    """
    if file_size(log_file) > LARGEST_LOG_BYTES:
        shutil.copyfile(log_file, log_file.with_name(f"{log_file.name}.1"))
        with log_file.open("r+b") as file:
            file.truncate(0)


def readable(line: str) -> str:
    """A log line for people: of one in JSON the event, the failure and its traceback."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    if not isinstance(entry, dict) or "event" not in entry:
        return line
    what = ": ".join(str(entry[name]) for name in ("event", "error") if entry.get(name))
    return "\n".join(str(each) for each in (what, entry.get("exception")) if each)


async def keep_trimmed(log_files: list[Path]) -> None:
    """Trims the logs again and again, until cancelled."""
    while True:
        for log_file in log_files:
            await asyncio.to_thread(trim, log_file)
        await asyncio.sleep(_TRIM_SECONDS)


async def follow(log_file: Path, name: str, write: Callable[[str], None]) -> None:
    """Writes each line that the file gets from now on, after the part's name, until cancelled."""
    position = file_size(log_file)
    remainder = b""
    while True:
        size = file_size(log_file)
        if size < position:
            position, remainder = 0, b""
        if size > position:
            with log_file.open("rb") as file:
                file.seek(position)
                remainder += file.read(size - position)
            position = size
            *lines, remainder = remainder.split(b"\n")
            for line in lines:
                write(f"{name} | {line.decode('utf-8', 'replace')}")
        await asyncio.sleep(_FOLLOW_SECONDS)


_POLL_SECONDS = 0.1
_PROBE_TIMEOUT_SECONDS = 2.0
_PERMANENT = (Exit.USAGE, Exit.IN_USE, Exit.NO_ACCESS, Exit.DAMAGED)
_STARTS_BEFORE_READY = 3
_NOTES_SECONDS = 2.0
FIRST_DELAY_SECONDS = 1.0
LONGEST_DELAY_SECONDS = 30.0
HEALTHY_AFTER_SECONDS = 45.0

Say = Callable[[str], None]


class Part(Protocol):
    """Something that runs, and is started again when it ends without being stopped."""

    name: str
    log_file: Path

    async def start(self) -> None:
        """Starts it, again when it has ended; returns before it is ready. Raises Failure when it cannot be started."""

    async def is_ready(self) -> bool:
        """Whether it does its work now. False, not an exception, while it does not answer."""

    async def notes(self) -> list[str]:
        """What the operator should know and do, though it works; empty while it does not answer."""

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""

    def output(self) -> str:
        """The end of what it printed in this run."""

    async def stop(self) -> None:
        """Ends it cleanly, or by force after a grace. May be called again, and before `start`."""

    def kill(self) -> None:
        """Ends it at once. May be called again, and before `start`."""


class KafkaPart:
    """The embedded broker. A restart keeps its port."""

    name = "Kafka"

    def __init__(self, broker: EmbeddedKafka) -> None:
        self._broker = broker
        self.log_file = broker.log_file

    async def start(self) -> None:
        await asyncio.to_thread(self._broker.start)

    async def is_ready(self) -> bool:
        return await asyncio.to_thread(self._broker.is_ready)

    async def notes(self) -> list[str]:
        return []

    def poll(self) -> int | None:
        return self._broker.poll()

    def output(self) -> str:
        return self._broker.log_tail()

    async def stop(self) -> None:
        await asyncio.to_thread(self._broker.stop)

    def kill(self) -> None:
        self._broker.kill()


@dataclass(eq=False)
class ProcessPart:
    """A child process with `/readyz` on 127.0.0.1, its output in a log file."""

    name: str
    command: Sequence[str]
    _: KW_ONLY
    environment: Mapping[str, str]
    ready_url: str
    log_file: Path
    grace_seconds: float
    _child: Child | None = None

    async def start(self) -> None:
        trim(self.log_file)
        self._child = Child(self.command, output=self.log_file, env=self.environment)

    async def is_ready(self) -> bool:
        answer = await self._probe()
        return answer is not None and answer.is_success

    async def notes(self) -> list[str]:
        answer = await self._probe()
        lines = [] if answer is None else answer.text.splitlines()
        return [line.removeprefix(NOTE) for line in lines if line.startswith(NOTE)]

    async def _probe(self) -> httpx.Response | None:
        try:
            async with httpx.AsyncClient(timeout=_PROBE_TIMEOUT_SECONDS, trust_env=False) as client:
                return await client.get(self.ready_url)
        except httpx.HTTPError:
            return None

    def poll(self) -> int | None:
        return None if self._child is None else self._child.poll()

    def output(self) -> str:
        if self._child is None:
            return ""
        tail = file_tail(self.log_file, 15, self._child.output_start)
        lines = [readable(line) for line in tail.splitlines()]
        return "\n".join([*lines, f"(all of it: {self.log_file})"])

    async def stop(self) -> None:
        if self._child is not None:
            await asyncio.to_thread(self._child.stop, self.grace_seconds)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()


@dataclass
class BackOff:
    """Restart at once, then after 1, 2, 4 … 30 seconds while the part crashes again soon; at once again after a run of
    45 seconds. So only a loop of crashes is slowed down."""

    failures: int = 0

    def after_run_of(self, seconds: float) -> float:
        """The delay in seconds before the next start of a part that ran for `seconds`."""
        if seconds >= HEALTHY_AFTER_SECONDS:
            self.failures = 0
        self.failures += 1
        if self.failures == 1:
            return 0.0
        return min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** min(self.failures - 2, 10))


class PartRunner:
    """Runs one part, restarting it, until cancelled; its owner then stops it."""

    def __init__(self, part: Part, say: Say) -> None:
        self.part = part
        self.ready = asyncio.Event()
        self._say = say

    async def run(self) -> None:
        """Start the part, and restart it whenever it ends, with a growing delay when it ends again soon.

        Raises Failure when it cannot be started at first, or ends before it was ever ready: three times, or with an
        exit code that a restart does not change.
        """
        back_off = BackOff()
        await self.part.start()
        while True:
            began = time.monotonic()
            code = await self._watch()
            if not self.ready.is_set() and (code in _PERMANENT or back_off.failures + 1 >= _STARTS_BEFORE_READY):
                raise start_failure(self.part, code)
            delay = back_off.after_run_of(time.monotonic() - began)
            self._say(
                f"{self.part.name} ended unexpectedly ({exit_text(code)}); it is started again {_when(delay)}. "
                f"Its log: {self.part.log_file}"
            )
            if code == Exit.DAMAGED:
                self._say(self.part.output())
            await asyncio.sleep(delay)
            await self._start_again(back_off)

    async def _start_again(self, back_off: BackOff) -> None:
        while True:
            try:
                await self.part.start()
            except Failure as failure:
                delay = back_off.after_run_of(0)
                self._say(f"{self.part.name} could not be started; next try {_when(delay)}. {failure}")
                await asyncio.sleep(delay)
            else:
                return

    async def _watch(self) -> int:
        ready = False
        shown: list[str] = []
        next_look = 0.0
        while (code := self.part.poll()) is None:
            if not ready and await self.part.is_ready():
                ready = True
                if self.ready.is_set():
                    self._say(f"{self.part.name} is ready again.")
                self.ready.set()
            if ready and time.monotonic() > next_look:
                notes = await self.part.notes()
                for note in notes:
                    if note not in shown:
                        self._say(note)
                shown, next_look = notes, time.monotonic() + _NOTES_SECONDS
            await asyncio.sleep(_POLL_SECONDS)
        return code


def _when(delay: float) -> str:
    return f"in {delay:g} s" if delay else "at once"


def start_failure(part: Part, code: int) -> Failure:
    """The failure of a part that did not start, with its exit code and the end of its output."""
    failure = Failure(f"{part.name} did not start ({exit_text(code)}).\n{part.output()}")
    if code in _PERMANENT:
        failure.exit_code = Exit(code)
    return failure
