"""What happens to a round: each kind disturbs, and returns when the worker commits again."""

import contextlib
import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from streams.embedded_kafka.broker import EmbeddedKafka
from tests.acceptance.torture.faults import CALLS, Fault, Harm
from tests.acceptance.torture.subject import Subject
from tests.support.waiting import wait_until

SESSION_SECONDS = 10.0  # of the worker in its consumer group
LASTING_SECONDS = 4.0
OUTAGE_SECONDS = 12.0  # longer than the worker's session
FULL_SECONDS = 4.0
MOST_CALLS = 60
EACH_SECONDS = 120.0  # every call is made sooner or later
WRITERS = 3
WRITERS_SECONDS = 6
REBUILD_SECONDS = 300.0
BALLAST = "ballast"
MIB = 1024 * 1024
KILLS: tuple[Harm, ...] = ("kill before", "kill inside", "kill after")
FAILURES: tuple[Harm, ...] = ("fail", "fail after", "fail on")


@dataclass
class Scene:
    """What can be disturbed. `rebuilding` is the generation that is being built."""

    broker: EmbeddedKafka
    subject: Subject
    service_url: str
    data_dir: Path
    prefix: str
    random: random.Random
    is_small_disk: bool
    outage_seconds: float = OUTAGE_SECONDS
    rebuilding: str | None = None


def kill(scene: Scene) -> str:
    """At any moment, as in the middle of a call that nobody named."""
    seconds = scene.random.uniform(0.0, 2.0)
    time.sleep(seconds)  # a moment is what this is about
    scene.subject.restart()
    scene.subject.until_commit()
    return f"after {seconds:.2f} s"


def kill_at(scene: Scene, harm: Harm, call: str, after: int | None = None) -> str:
    """At a named call, after so many others of it."""
    fault = Fault(harm, call, scene.random.randrange(4) if after is None else after)
    scene.subject.restart(fault)
    reached = scene.subject.until_ended()
    if not reached:
        scene.subject.restart()
    scene.subject.until_commit()
    return f"{harm} {call}, the call no. {fault.after}{'' if reached else ': was not made'}"


def kill_at_point(scene: Scene) -> str:
    return kill_at(scene, scene.random.choice(KILLS), scene.random.choice(CALLS))


def kill_at_each(scene: Scene, harm: Harm, calls: Sequence[str]) -> str:
    """At one after the other: each start of the worker ends there."""
    missed = [call for call in calls if not _dies_at(scene, harm, call)]
    scene.subject.restart()
    scene.subject.until_commit()
    if missed:
        scene.subject.surprises.append(f"{harm}: not made in time: {', '.join(missed)}")
    return f"{harm} each of {len(calls)} calls"


def _dies_at(scene: Scene, harm: Harm, call: str) -> bool:
    scene.subject.restart(Fault(harm, call))
    return scene.subject.until_ended(EACH_SECONDS)


def fail_call(scene: Scene) -> str:
    """Call n of a store or the broker fails: once, from then on, or after it took effect."""
    return fail_at(scene, scene.random.choice(FAILURES), "", scene.random.randrange(MOST_CALLS))


def fail_named_call(scene: Scene) -> str:
    names = [name for name in CALLS if name != "acknowledge"]
    return fail_at(scene, scene.random.choice(FAILURES), scene.random.choice(names), scene.random.randrange(3))


def fail_at(scene: Scene, harm: Harm, call: str, after: int) -> str:
    scene.subject.restart(Fault(harm, call, after))
    fired = scene.subject.until_fired()
    if harm == "fail on":
        wait_while_tending(scene, LASTING_SECONDS)
        scene.subject.restart()
    scene.subject.until_commit()
    return f"{harm} {call or 'any call'}, the call no. {after}{'' if fired else ': was not made'}"


def break_call(scene: Scene) -> str:
    """A store fails as none is known to: the worker ends, and what it had in hand is read again."""
    call = scene.random.choice(
        ["lance: keep the retrievals", "lance: write documents", "lance: write positions", "graph: apply"]
    )
    return fail_at(scene, "break", call, scene.random.randrange(2))


def suspend(scene: Scene) -> str:
    """SIGSTOP until the group has given it up."""
    process = scene.subject.worker.process
    process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(SESSION_SECONDS + 2.0)  # the session's time is what this is about
    finally:
        process.send_signal(signal.SIGCONT)
    scene.subject.until_commit()
    return f"{SESSION_SECONDS + 2:.0f} s"


def restart_broker(scene: Scene) -> str:
    is_crash = scene.random.random() < 0.5
    (scene.broker.kill if is_crash else scene.broker.stop)()
    start_again(scene.broker)
    scene.subject.until_commit()
    return "killed" if is_crash else "stopped"


def broker_outage(scene: Scene) -> str:
    scene.broker.stop()
    wait_while_tending(scene, scene.outage_seconds)
    start_again(scene.broker)
    scene.subject.until_commit()
    return f"{scene.outage_seconds:.0f} s"


def hang_broker(scene: Scene) -> str:
    """It keeps its connections, and answers nobody."""
    os.kill(scene.broker.pid, signal.SIGSTOP)
    try:
        wait_while_tending(scene, scene.outage_seconds)
    finally:
        os.kill(scene.broker.pid, signal.SIGCONT)
    scene.subject.until_commit()
    return f"{scene.outage_seconds:.0f} s"


def start_again(broker: EmbeddedKafka) -> None:
    broker.stop()
    broker.start()
    broker.wait_ready()


def fill_disk(scene: Scene) -> str:
    """On a small file system of its own; else by stores that say so."""
    if not scene.is_small_disk:
        return fail_at(scene, "fail on", scene.random.choice(["lance: ", "graph: "]), 0)
    ballast = scene.data_dir / BALLAST
    with contextlib.suppress(OSError), ballast.open("wb") as file:
        while True:
            write_all(file.fileno())
    try:
        wait_while_tending(scene, FULL_SECONDS)
    finally:
        ballast.unlink(missing_ok=True)
    scene.subject.until_commit()
    return f"{FULL_SECONDS:.0f} s"


def write_all(descriptor: int) -> None:
    """As much as there is room for; raises OSError when there is none."""
    for size in (MIB, 4_096):
        try:
            while True:
                os.write(descriptor, bytes(size))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    raise OSError(errno.ENOSPC, "full")


def write_from_elsewhere(scene: Scene) -> str:
    """Other workers that were given the same partitions write the same retrievals."""
    command = [sys.executable, "-m", "tests.acceptance.torture.other_worker", str(scene.data_dir)]
    command += [scene.broker.bootstrap_servers, scene.prefix, str(WRITERS_SECONDS)]
    environment = scene.subject.worker.environment
    writers = [subprocess.Popen(command, env=environment) for _ in range(WRITERS)]
    codes = [writer.wait(120) for writer in writers]
    if any(codes):
        scene.subject.surprises.append(f"another worker's writer ended with {codes}")
    scene.subject.until_commit()
    return f"{WRITERS} for {WRITERS_SECONDS} s"


def rebuild(scene: Scene) -> str:
    """Ordered; it is built while other things happen, and waited for at the end of the round."""
    if scene.rebuilding is not None:
        wait_for_rebuild(scene)
    answer = httpx.post(f"{scene.service_url}/v1/generations", json={"reason": "torture"}, timeout=60)
    answer.raise_for_status()
    scene.rebuilding = answer.json()["name"]
    scene.subject.until_commit()
    return str(scene.rebuilding)


def wait_for_rebuild(scene: Scene) -> None:
    """Until what was ordered is live, and searched."""
    name, scene.rebuilding = scene.rebuilding, None

    def shown() -> dict[str, object]:
        return dict(httpx.get(f"{scene.service_url}/v1/generations/{name}", timeout=60).json())

    def is_live() -> bool:
        scene.subject.tend()
        return shown().get("state") == "live"

    wait_until(is_live, lambda: f"the switch to {shown()}", REBUILD_SECONDS)

    def is_searched() -> bool:
        answer = httpx.get(f"{scene.service_url}/v1/search", params={"q": "station"}, timeout=60)
        return bool(answer.json()["snapshot"]["generation"] == name)

    wait_until(is_searched, f"answers from {name}", REBUILD_SECONDS)


def wait_while_tending(scene: Scene, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        scene.subject.tend()
        time.sleep(0.2)  # how long it lasts is what this is about


Disturbance = Callable[[Scene], str]

KINDS: dict[str, tuple[Disturbance, int]] = {
    "kill": (kill, 6),
    "kill at a point": (kill_at_point, 10),
    "call fails": (fail_call, 6),
    "named call fails": (fail_named_call, 6),
    "store breaks": (break_call, 2),
    "suspended": (suspend, 1),
    "broker restart": (restart_broker, 2),
    "broker outage": (broker_outage, 1),
    "broker hangs": (hang_broker, 1),
    "disk full": (fill_disk, 2),
    "two writers": (write_from_elsewhere, 1),
    "rebuild": (rebuild, 1),
}
"""Each kind with its weight."""


def drawn(random_: random.Random, kinds: list[str]) -> Iterator[str]:
    """Kinds without end: first each once, in any order, then by weight."""
    yield from random_.sample(kinds, len(kinds))
    while True:
        yield random_.choices(kinds, [KINDS[kind][1] for kind in kinds])[0]
