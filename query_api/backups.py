"""Backups of the live generation as a page asks for them: written and verified in a thread, in `<data dir>/backups`."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import structlog

from indexer.backup.archive import ARCHIVES, BackupManifest, copy_files, open_backup, write_backup
from indexer.backup.frozen import frozen
from indexer.errors import DamagedStore, TransientStoreError
from indexer.generations import current_generation
from schemas.backups import BackupShown
from schemas.clock import rfc3339
from schemas.errors import Failure
from schemas.ids import format_positions

FOLDER = "backups"
FORESEEN = (Failure, DamagedStore, TransientStoreError, OSError)

log = structlog.get_logger(__name__)


class BackupRunning(Exception):
    """Another backup is being written or verified: wait for it, and see GET /v1/backups."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class _Stopped(Exception):
    """The service is being stopped."""


@dataclass
class _Job:
    """What is, or was last, done with one backup. Written by one thread, read by others."""

    name: str
    state: str
    manifest: BackupManifest | None = None
    done_bytes: int = 0
    problem: str | None = None
    intact: bool | None = None
    task: "asyncio.Future[None] | None" = field(default=None, repr=False)


class Backups:
    """One is written or verified at a time; those that are there are found in their folder."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir.absolute()
        self._folder = self._data_dir / FOLDER
        self._jobs: dict[str, _Job] = {}
        self._threads = ThreadPoolExecutor(1, "backups")
        self._stopping = threading.Event()

    def begin(self, name: str | None) -> BackupShown:
        """Start writing. Raises BackupRunning, and FileExistsError for a name that is taken."""
        self._require_idle()
        job = _Job(name or f"backup-{datetime.now(UTC):%Y%m%d-%H%M%S}.tar.zst", "writing")
        if self._path(job.name).exists():
            raise FileExistsError
        return self._start(job, self._write)

    def verify(self, name: str) -> BackupShown:
        """Start to check every checksum of one that is there. Raises BackupRunning, FileNotFoundError."""
        self._require_idle()
        if not self._path(name).is_file():
            raise FileNotFoundError
        return self._start(_Job(name, "verifying"), self._verify)

    def listed(self) -> list[BackupShown]:
        """The newest first, by their names where they were made at the same time."""
        there = [path.name for path in self._folder.glob("*") if path.name.endswith(ARCHIVES) and path.name[0] != "."]
        shown = [self.shown(name) for name in {*there, *self._jobs}]
        return sorted(shown, key=lambda each: (each.made_at or "9", each.name), reverse=True)

    def shown(self, name: str) -> BackupShown:
        """Raises FileNotFoundError."""
        job, path = self._jobs.get(name), self._path(name)
        there = path.is_file()
        if job is None and not there:
            raise FileNotFoundError
        job = job or _Job(name, "complete")
        manifest = job.manifest
        if manifest is None and there and job.state == "complete":
            try:
                with open_backup(path) as backup:
                    manifest = backup.manifest
            except FORESEEN as error:
                job.problem, job.intact = str(error), False
        return BackupShown.model_validate(
            {
                "name": name,
                "state": job.state,
                "path": str(path),
                "done_bytes": job.done_bytes,
                "file_bytes": path.stat().st_size if there else None,
                "problem": job.problem,
                "intact": job.intact,
                **({} if manifest is None else _described(manifest)),
            }
        )

    def drop(self, name: str) -> None:
        """Raises FileNotFoundError, and BackupRunning for one that is being worked on."""
        job = self._jobs.get(name)
        if job is not None and job.state in ("writing", "verifying"):
            raise BackupRunning
        if job is None or self._path(name).exists():
            self._path(name).unlink()
        self._jobs.pop(name, None)

    async def stop(self) -> None:
        """What is being written is left out."""
        self._stopping.set()
        await asyncio.gather(*(job.task for job in self._jobs.values() if job.task), return_exceptions=True)
        self._threads.shutdown()

    def _require_idle(self) -> None:
        if any(job.state in ("writing", "verifying") for job in self._jobs.values()):
            raise BackupRunning

    def _path(self, name: str) -> Path:
        return self._folder / name

    def _start(self, job: _Job, work: Callable[[_Job], None]) -> BackupShown:
        self._jobs[job.name] = job
        job.task = asyncio.get_running_loop().run_in_executor(self._threads, self._run, job, work)
        return self.shown(job.name)

    def _run(self, job: _Job, work: Callable[[_Job], None]) -> None:
        doing = job.state
        try:
            work(job)
        except _Stopped:
            job.problem, job.state = "The service was stopped before it was done: order it again.", "failed"
        except FORESEEN as error:
            job.problem = str(error)
            job.intact = False if isinstance(error, DamagedStore) and doing == "verifying" else None
            job.state = "failed" if doing == "writing" else "complete"
            log.warning("a backup failed", name=job.name, doing=doing, problem=job.problem)
        else:
            job.state = "complete"
            log.info("backup", name=job.name, done=doing, bytes=job.done_bytes)

    def _write(self, job: _Job) -> None:
        generation = current_generation(self._data_dir)
        if generation is None:
            raise Failure(f"There are no stores in {self._data_dir} yet: start a worker on it with 'thalweg up'.")
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with frozen(generation) as held:
            job.manifest = held.manifest
            write_backup(held.root, held.manifest, self._path(job.name), lambda done: self._advance(job, done))

    def _verify(self, job: _Job) -> None:
        with open_backup(self._path(job.name)) as backup:
            job.manifest = backup.manifest
            copy_files(backup, None, lambda done: self._advance(job, done))
        job.intact = True

    def _advance(self, job: _Job, done: int) -> None:
        if self._stopping.is_set():
            raise _Stopped
        job.done_bytes += done


def _described(manifest: BackupManifest) -> dict[str, object]:
    return {
        "bytes": manifest.bytes,
        "made_at": rfc3339(manifest.made_at_ms),
        "version": manifest.version,
        "generation": manifest.generation,
        "model": manifest.model,
        "documents": manifest.documents,
        "positions": format_positions({number: offset for number, offset in manifest.positions.items() if offset >= 0}),
    }
