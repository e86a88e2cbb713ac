"""Backups of the live generation as a page asks for them: written and verified in a thread, in `<data dir>/backups`."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import structlog

from indexer.backup.archive import ARCHIVES, BackupManifest, copy_files, open_backup, write_backup
from indexer.backup.frozen import frozen
from indexer.errors import DamagedStore, TransientStoreError
from indexer.generation_folders import current_generation
from query_api.operations.jobs import STOPPED, Explanation, Job, JobRunning, Jobs
from schemas.backups import BackupShown
from schemas.clock import rfc3339
from schemas.errors import Failure
from schemas.ids import format_positions

FOLDER = "backups"
MAX_KEPT = 1_000  # whether they were intact is remembered
FORESEEN = (Failure, DamagedStore, TransientStoreError, OSError)

log = structlog.get_logger(__name__)


@dataclass(kw_only=True)
class _BackupJob(Job):
    """What is, or was last, done with the backup of this id, its name. Written by one thread, read by others."""

    doing: Literal["writing", "verifying"]
    manifest: BackupManifest | None = None
    done_bytes: int = 0
    intact: bool | None = None

    @property
    def backup_state(self) -> str:
        if self.state == "running":
            return self.doing
        return "failed" if (self.state, self.doing) == ("failed", "writing") else "complete"


class Backups:
    """One is written or verified at a time; those that are there are found in their folder."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir.absolute()
        self._folder = self._data_dir / FOLDER
        self._jobs: Jobs[_BackupJob] = Jobs("backup", _explained, on_end=_log_end, kept=MAX_KEPT)
        self._threads = ThreadPoolExecutor(1, "backups")
        self._stopping = threading.Event()

    def begin(self, name: str | None) -> BackupShown:
        """Start writing. Raises JobRunning, and FileExistsError for a name that is taken."""
        self._jobs.require_idle()
        job = _BackupJob(id=name or f"backup-{datetime.now(UTC):%Y%m%d-%H%M%S}.tar.zst", doing="writing")
        if self._path(job.id).exists():
            raise FileExistsError
        return self._start(job, self._write)

    def verify(self, name: str) -> BackupShown:
        """Start to check every checksum of one that is there. Raises JobRunning, FileNotFoundError."""
        self._jobs.require_idle()
        if not self._path(name).is_file():
            raise FileNotFoundError
        return self._start(_BackupJob(id=name, doing="verifying"), self._verify)

    def listed(self) -> list[BackupShown]:
        """The newest first, by their names where they were made at the same time."""
        there = [path.name for path in self._folder.glob("*") if path.name.endswith(ARCHIVES) and path.name[0] != "."]
        shown = [self.shown(name) for name in {*there, *(job.id for job in self._jobs.newest_first())}]
        return sorted(shown, key=lambda each: (each.made_at or "9", each.name), reverse=True)

    def shown(self, name: str) -> BackupShown:
        """Raises FileNotFoundError."""
        job, path = self._jobs.get(name), self._path(name)
        there = path.is_file()
        if job is None and not there:
            raise FileNotFoundError
        job = job or _BackupJob(id=name, doing="verifying", state="done")
        manifest = job.manifest
        if manifest is None and there and job.backup_state == "complete":
            try:
                with open_backup(path) as backup:
                    manifest = backup.manifest
            except FORESEEN as error:
                job.message, job.intact = str(error), False
        return BackupShown.model_validate(
            {
                "name": name,
                "state": job.backup_state,
                "path": str(path),
                "done_bytes": job.done_bytes,
                "file_bytes": path.stat().st_size if there else None,
                "problem": job.message,
                "intact": job.intact,
                **({} if manifest is None else _described(manifest)),
            }
        )

    def drop(self, name: str) -> None:
        """Raises FileNotFoundError, and JobRunning for one that is being worked on."""
        job = self._jobs.get(name)
        if job is not None and job.is_exclusive:
            raise JobRunning
        if job is None or self._path(name).exists():
            self._path(name).unlink()
        self._jobs.forget(name)

    async def stop(self) -> None:
        """What is being written is left out."""
        self._stopping.set()
        await self._jobs.stop(cancel=False)
        self._threads.shutdown()

    def _path(self, name: str) -> Path:
        return self._folder / name

    def _start(self, job: _BackupJob, work: Callable[[_BackupJob], None]) -> BackupShown:
        def in_thread(job: _BackupJob) -> Awaitable[None]:
            return asyncio.get_running_loop().run_in_executor(self._threads, work, job)

        self._jobs.begin(job, in_thread)
        return self.shown(job.id)

    def _write(self, job: _BackupJob) -> None:
        generation = current_generation(self._data_dir)
        if generation is None:
            raise Failure(f"There are no stores in {self._data_dir} yet: start a worker on it with 'thalweg up'.")
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with frozen(generation) as held:
            job.manifest = held.manifest
            write_backup(held.root, held.manifest, self._path(job.id), lambda done: self._advance(job, done))

    def _verify(self, job: _BackupJob) -> None:
        try:
            with open_backup(self._path(job.id)) as backup:
                job.manifest = backup.manifest
                copy_files(backup, None, lambda done: self._advance(job, done))
        except DamagedStore:
            job.intact = False
            raise
        job.intact = True

    def _advance(self, job: _BackupJob, done: int) -> None:
        if self._stopping.is_set():
            raise Failure(f"{STOPPED} Order it again.")
        job.done_bytes += done


def _explained(error: Exception) -> Explanation:
    return Explanation(str(error) or type(error).__name__, isinstance(error, FORESEEN))


def _log_end(job: _BackupJob) -> None:
    log.info("backup", name=job.id, doing=job.doing, state=job.state, bytes=job.done_bytes)


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
