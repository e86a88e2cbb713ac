"""A round: an installation under load, disturbed in an order that its seed decides, and the verdict on it."""

import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from indexer.store_verification import verify_when_complete
from schemas.topics import TopicNames
from streams.embedded_kafka.broker import EmbeddedKafka
from tests.acceptance.torture import disturbances
from tests.acceptance.torture.disturbances import KINDS, Scene
from tests.acceptance.torture.readers import Readers
from tests.acceptance.torture.stream import Stream
from tests.acceptance.torture.subject import Subject
from tests.acceptance.torture.verdict import SNAPSHOT_SECONDS, Ledger, faults, judge
from tests.support.kafka import read_all
from tests.support.processes.query_service import service_process
from tests.support.processes.worker import PARTITIONS, running_worker

RECORDS_PER_SECOND = 8.0
DISK_MIB = 768

Say = Callable[[str], None]


@dataclass
class Report:
    """What a round was like. `findings` are what is wrong."""

    seed: int
    disturbed: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    to_first_commit: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Round:
    """`plan` decides the disturbances; without one, `many` are drawn from `kinds` by the seed."""

    broker: EmbeddedKafka
    folder: Path
    seed: int
    many: int = 8
    kinds: Sequence[str] = tuple(KINDS)
    mutation: str | None = None
    outage_seconds: float = disturbances.OUTAGE_SECONDS
    plan: Sequence[tuple[str, disturbances.Disturbance]] | None = None

    def run(self, say: Say) -> Report:
        began = time.monotonic()
        report = Report(self.seed)
        prefix = f"torture-{self.seed}-{os.getpid()}."
        self.folder.mkdir(parents=True)
        with small_disk(self.folder / "data") as is_small:
            try:
                self._run(report, prefix, is_small, say)
            except AssertionError as error:  # a condition that did not come
                report.findings.append(str(error))
            if report.findings and is_small:
                shutil.copytree(self.folder / "data", self.folder / "kept", dirs_exist_ok=True)
        report.seconds = time.monotonic() - began
        if not report.findings:
            shutil.rmtree(self.folder, ignore_errors=True)
        return report

    def _run(self, report: Report, prefix: str, is_small: bool, say: Say) -> None:
        data_dir = self.folder / "data"
        names = TopicNames(prefix)
        servers = self.broker.bootstrap_servers
        random_ = random.Random(self.seed)
        subject = Subject(servers, prefix, data_dir, self.folder, self.mutation)
        subject.start()
        kafka = {"bootstrap_servers": servers, "topic_prefix": prefix, "partitions": str(PARTITIONS)}
        try:
            subject.worker.wait_ready()
            kept = {"query_api.service_context.CURSOR_SNAPSHOTS": 128}  # a snapshot is new several times a second
            with service_process(data_dir, kafka, self.folder / "service.log", constants=kept) as service:
                stream = Stream(servers, names.documents, self.seed, RECORDS_PER_SECOND)
                stream.start()
                readers = Readers(service.url)
                try:
                    subject.until_commit()
                    readers.start()
                    scene = Scene(
                        self.broker, subject, service.url, data_dir, prefix, random_, is_small, self.outage_seconds
                    )
                    self._disturb(scene, report, say)
                    stream.stop()
                    if scene.rebuilding is not None:
                        disturbances.wait_for_rebuild(scene)
                finally:
                    readers.stop()
                    stream.abandon()
                say(f"  {len(stream.made)} records sent; the verdict ...")
                verdict = judge(servers, names, data_dir, stream, subject.tend)
            subject.stop()
            report.counts = verdict.counts + readers.answers
            report.to_first_commit = subject.to_first_commit
            report.findings += [*verdict.findings, *subject.surprises]
            report.findings += [f"readers: {failure}" for failure in readers.failures[:10]]
            if verdict.digest:
                digest = self._undisturbed(prefix, names)
                if digest != verdict.digest:
                    report.findings.append(f"the digest is {verdict.digest}; of an undisturbed worker, {digest}")
        finally:
            subject.kill()

    def _disturb(self, scene: Scene, report: Report, say: Say) -> None:
        drawn = disturbances.drawn(scene.random, list(self.kinds))
        plan = self.plan or [(kind, KINDS[kind][0]) for kind, _ in zip(drawn, range(self.many), strict=False)]
        for kind, disturb in plan:
            told = disturb(scene)
            report.disturbed[kind] += 1
            report.told.append(f"{kind}: {told}")
            say(f"  {time.strftime('%H:%M:%S')} {report.told[-1]}")

    def _undisturbed(self, prefix: str, names: TopicNames) -> str:
        """The digest of stores that a worker in peace makes from the same log."""
        servers = self.broker.bootstrap_servers
        data_dir = self.folder / "undisturbed"
        with running_worker(servers, prefix, data_dir) as worker:
            Ledger(servers, names, read_all(servers, names.documents)).wait(data_dir, lambda: None)
            report = verify_when_complete(data_dir, SNAPSHOT_SECONDS)
            worker.stop()
        return report.digest if not faults(report) else f"none: {faults(report)[:3]}"


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A small file system there, where this user may mount one; whether it is."""
    folder.mkdir(parents=True)
    mounted = False
    if sys.platform == "linux" and os.geteuid() == 0:
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=0700", "tmpfs", str(folder)]
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)
