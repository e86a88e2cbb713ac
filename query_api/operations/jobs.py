"""Work that callers begin and the service does in the background: progress, and the outcome of the last ones."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar
from uuid import uuid4

import structlog

from schemas.clock import rfc3339

KEPT = 20
STOPPED = "The service stopped before it was done."

log = structlog.get_logger(__name__)


class JobRunning(Exception):
    """One job runs; the next may begin when it has ended."""


class Explanation(NamedTuple):
    """Why a job failed and what to do; of what was not foreseen, the log has the trace."""

    message: str
    foreseen: bool


def _now() -> str:
    return rfc3339(time.time_ns() // 1_000_000)


@dataclass(kw_only=True)
class Job:
    """One piece of work. Its subclasses hold the progress, which only the work itself writes."""

    id: str
    created_at: str = field(default_factory=_now)
    ended_at: str | None = None
    state: Literal["running", "done", "failed"] = "running"
    message: str | None = None
    error: Exception | None = field(default=None, repr=False)
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)

    @property
    def is_exclusive(self) -> bool:
        """Whether no other may begin now."""
        return self.state == "running"

    async def ended(self, seconds: float) -> bool:
        """Wait for its end; False where that has not come in time."""
        return self.task is None or bool((await asyncio.wait({self.task}, timeout=seconds))[0])

    def end(self, state: Literal["done", "failed"], message: str | None = None) -> None:
        self.state, self.ended_at = state, _now()
        self.message = message or self.message


J = TypeVar("J", bound=Job)


@dataclass(eq=False)
class Jobs(Generic[J]):
    """Those of one kind, in memory only. Used on the event loop. `again` is the advice about one that was stopped;
    `on_end` is called once for each; at most `kept` are remembered, and all that run."""

    kind: str
    explain: Callable[[Exception], Explanation]
    _: KW_ONLY
    again: str = ""
    on_end: Callable[[J], None] = lambda _: None
    kept: int = KEPT

    def __post_init__(self) -> None:
        self._stopped = f"{STOPPED} {self.again}".rstrip()
        self._jobs: dict[str, J] = {}

    def require_idle(self) -> None:
        """Raises JobRunning."""
        if any(job.is_exclusive for job in self._jobs.values()):
            raise JobRunning

    def begin(self, job: J, work: Callable[[J], Awaitable[None]]) -> J:
        """Start it; it replaces one of the same id."""
        self._jobs.pop(job.id, None)
        self._jobs[job.id] = job
        ended = [each.id for each in self._jobs.values() if each.state != "running"]
        for oldest in ended[: max(0, len(self._jobs) - self.kept)]:
            del self._jobs[oldest]
        job.task = asyncio.create_task(self._run(job, work), name=self.kind)
        return job

    def get(self, job_id: str) -> J | None:
        return self._jobs.get(job_id)

    def forget(self, job_id: str) -> None:
        self._jobs.pop(job_id, None)

    def newest_first(self) -> list[J]:
        return list(reversed(self._jobs.values()))

    async def stop(self, *, cancel: bool = True) -> None:
        """Wait until all have ended; those that run are cancelled, or end of their own accord."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for task in tasks if cancel else ():
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, job: J, work: Callable[[J], Awaitable[None]]) -> None:
        try:
            await work(job)
            job.end("done")
        except asyncio.CancelledError:
            job.end("failed", self._stopped)
            raise
        except Exception as error:  # edge of a background task: the job says why
            message, is_foreseen = self.explain(error)
            job.error = error
            job.end("failed", message)
            trace = None if is_foreseen else error
            log.warning("background job failed", kind=self.kind, job=job.id, reason=message, exc_info=trace)
        finally:
            self.on_end(job)


def new_job_id(prefix: str) -> str:
    return f"{prefix}_{uuid4().hex[:16]}"
