"""Background jobs: one at a time where that is asked for, their outcome, and which are remembered."""

import asyncio

import pytest

from query_api.operations.jobs import STOPPED, Explanation, Job, JobRunning, Jobs


def jobs(**options: object) -> Jobs[Job]:
    return Jobs("trial", lambda error: Explanation(f"It failed: {error}", foreseen=True), **options)  # type: ignore[arg-type]


async def at_once(_: Job) -> None:
    pass


async def test_next_job_is_refused_until_the_first_has_ended() -> None:
    held, go_on = jobs(), asyncio.Event()

    async def wait(_: Job) -> None:
        await go_on.wait()

    first = held.begin(Job(id="first"), wait)
    with pytest.raises(JobRunning):
        held.require_idle()
    assert not await first.ended(0)
    go_on.set()
    assert await first.ended(10)
    held.require_idle()
    assert (first.state, first.message, first.error) == ("done", None, None)


async def test_failed_job_reports_why_and_frees_its_place() -> None:
    held, ended = jobs(on_end=lambda job: ended.append(job.state)), list[str]()

    async def fail(_: Job) -> None:
        raise OSError("no disk")

    job = held.begin(Job(id="a"), fail)
    await job.ended(10)
    held.require_idle()
    assert (job.state, job.message, ended) == ("failed", "It failed: no disk", ["failed"])
    assert isinstance(job.error, OSError)


async def test_stop_ends_running_job_with_advice() -> None:
    held = jobs(again="Order it again.")
    job = held.begin(Job(id="a"), lambda _: asyncio.sleep(60))
    await asyncio.sleep(0)
    await held.stop()
    assert (job.state, job.message) == ("failed", f"{STOPPED} Order it again.")


async def test_oldest_ended_job_is_forgotten_first() -> None:
    held, go_on = jobs(kept=2), asyncio.Event()

    async def wait(_: Job) -> None:
        await go_on.wait()

    running = held.begin(Job(id="running"), wait)
    for name in ("a", "b", "c"):
        await held.begin(Job(id=name), at_once).ended(10)
    assert [job.id for job in held.newest_first()] == ["c", "running"]
    go_on.set()
    await running.ended(10)


async def test_job_of_a_known_id_replaces_the_earlier_one() -> None:
    held = jobs()
    await held.begin(Job(id="a"), at_once).ended(10)
    again = held.begin(Job(id="a"), at_once)
    await again.ended(10)
    assert held.newest_first() == [again]
    held.forget("a")
    assert held.get("a") is None
