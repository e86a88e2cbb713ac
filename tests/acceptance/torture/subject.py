"""The worker under test, started again whenever it ends, as its supervisor would."""

import time
from collections import Counter
from pathlib import Path

import msgspec

from streams.errors import WorkerExit
from tests.acceptance.torture import faults, mutations
from tests.acceptance.torture.faults import Fault
from tests.support.processes.worker import WorkerProcess
from tests.support.waiting import wait_until

COMMITTED = '"event": "indexed"'
COMMIT_SECONDS = 150.0
REACH_SECONDS = 40.0


class Subject:
    """`to_first_commit` are the seconds from each start of the process to its first commit."""

    def __init__(self, servers: str, prefix: str, data_dir: Path, log_dir: Path, mutation: str | None = None) -> None:
        self._settings = {mutations.ENVIRONMENT: mutation} if mutation else {}
        self.worker = WorkerProcess(servers, prefix, data_dir, dict(self._settings), "tests.acceptance.torture.worker")
        self.worker.log_dir = log_dir
        self.to_first_commit: list[float] = []
        self.ends: Counter[int] = Counter()
        self.surprises: list[str] = []
        self._begun = 0.0
        self._log_begin = 0
        self._waits_for_first = False

    def start(self, fault: Fault | None = None) -> None:
        armed = {faults.ENVIRONMENT: msgspec.json.encode(fault).decode()} if fault else {}
        self.worker.settings = self._settings | armed
        self._log_begin = self._log_size()
        self._begun, self._waits_for_first = time.monotonic(), True
        self.worker.start()

    def restart(self, fault: Fault | None = None) -> None:
        """Killed, and started again."""
        self.kill()
        self.start(fault)

    def kill(self) -> None:
        if self.worker.process.poll() is None:
            self.worker.kill()

    def stop(self) -> None:
        self.tend()
        self.worker.stop()

    def tend(self) -> None:
        """Start it again if it has ended; without a fault."""
        code = self.worker.process.poll()
        if code is None:
            self._note_first_commit()
            return
        self.ends[code] += 1
        if code not in (WorkerExit.RESTART, -9):
            self.surprises.append(f"the worker ended with {code}: {self.said()[-600:]}")
        self.start()

    def until_ended(self, seconds: float = REACH_SECONDS) -> bool:
        """Whether it ended by itself in time."""
        try:
            wait_until(lambda: self.worker.process.poll() is not None, "", seconds)
        except AssertionError:
            return False
        return True

    def until_fired(self) -> bool:
        """Whether its fault was met in time."""

        def met() -> bool:
            return faults.FIRED in self.said() or self.worker.process.poll() is not None

        try:
            wait_until(met, "", REACH_SECONDS)
        except AssertionError:
            return False
        return True

    def until_commit(self) -> None:
        """Until it commits a batch that it has not committed when this is called."""
        self.tend()
        before = self.worker.said().count(COMMITTED)

        def committed() -> bool:
            self.tend()
            return self.worker.said().count(COMMITTED) > before

        wait_until(committed, lambda: f"a commit; the worker's last words: {self.said()[-1500:]}", COMMIT_SECONDS)
        self._note_first_commit()

    def said(self) -> str:
        """Since its last start."""
        return self.worker.said()[self._log_begin :]

    def _note_first_commit(self) -> None:
        if self._waits_for_first and COMMITTED in self.said():
            self._waits_for_first = False
            self.to_first_commit.append(time.monotonic() - self._begun)

    def _log_size(self) -> int:
        return len(self.worker.said()) if self.worker.log_file.exists() else 0
