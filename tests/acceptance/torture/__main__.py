"""`make torture`: an installation is killed, starved and cut off for some minutes, and must lose nothing.

`python -m tests.acceptance.torture --minutes 10 --seed 1` runs rounds, each on stores of its own and with the next
seed. A round is a worker under load and readers, disturbed in an order that the seed decides; then every record must be
accounted for, the stores must agree with an oracle and with those of an undisturbed worker. A failure prints its seed,
and `--seed N --rounds 1` runs that round again. Exits with 1 for any.

`--mutations` puts known mistakes into the worker, one at a time, and fails where the rounds do not find one.
"""

import argparse
import random
import shlex
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from streams.embedded_kafka.broker import EmbeddedKafka
from streams.ports import free_port
from tests.acceptance.torture.disturbances import KINDS, OUTAGE_SECONDS
from tests.acceptance.torture.mutation_check import check_mutations
from tests.acceptance.torture.mutations import MUTATIONS
from tests.acceptance.torture.rounds import Report, Round

DISTURBANCES = len(KINDS) + 4


def say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--minutes", type=float, default=10.0, help="no round begins after so many")
    asked.add_argument("--seed", type=int, help="of the first round; a random one without")
    asked.add_argument("--rounds", type=int, help="at most")
    asked.add_argument("--disturbances", type=int, default=DISTURBANCES, help="in each round")
    asked.add_argument("--kind", action="append", choices=list(KINDS), help="only these kinds of disturbances")
    asked.add_argument("--outage-seconds", type=float, default=OUTAGE_SECONDS, help="of the broker")
    asked.add_argument("--mutations", action="store_true", help="check the harness itself")
    asked.add_argument("--mutation", action="append", choices=list(MUTATIONS), help="the same, only with these")
    asked.add_argument("--keep", type=Path, help="a folder that keeps what rounds with findings leave")
    given = asked.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))  # what was started and mounted goes, too
    with tempfile.TemporaryDirectory(prefix="torture-", ignore_cleanup_errors=True) as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with EmbeddedKafka(folder / "broker", port=free_port()) as broker:
            if given.mutations or given.mutation:
                return check_mutations(broker, folder, given.mutation or list(MUTATIONS), say)
            return torture(broker, folder, given)


def torture(broker: EmbeddedKafka, folder: Path, given: argparse.Namespace) -> int:
    first = random.randrange(1, 1_000_000) if given.seed is None else given.seed
    deadline = time.monotonic() + given.minutes * 60
    reports: list[Report] = []
    while time.monotonic() < deadline and (given.rounds is None or len(reports) < given.rounds):
        seed = first + len(reports)
        say(f"round {len(reports) + 1}, seed {seed}")
        kinds = given.kind or list(KINDS)
        report = Round(
            broker, folder / f"round-{seed}", seed, given.disturbances, kinds, outage_seconds=given.outage_seconds
        ).run(say)
        reports.append(report)
        counts = ", ".join(f"{count} {name}" for name, count in report.counts.items())
        say(f"  {report.seconds:.0f} s: {counts}; {'as undisturbed' if not report.findings else 'FAILED'}")
        for finding in report.findings:
            say(f"  FAILED: {finding}")
        if report.findings:
            say(f"  again: {command_again(seed, given)}")
    summarise(reports)
    return 1 if any(report.findings for report in reports) else 0


def command_again(seed: int, given: argparse.Namespace) -> str:
    """What to type to run a round again."""
    if not given.kind and given.disturbances == DISTURBANCES and given.outage_seconds == OUTAGE_SECONDS:
        return f"make torture SEED={seed} ROUNDS=1"
    kinds = "".join(f" --kind {shlex.quote(kind)}" for kind in given.kind or [])
    others = f"--disturbances {given.disturbances} --outage-seconds {given.outage_seconds:g}"
    return f"python -m tests.acceptance.torture --seed {seed} --rounds 1 {others}{kinds}"


def summarise(reports: list[Report]) -> None:
    disturbed: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for report in reports:
        disturbed += report.disturbed
        counts += report.counts
    seconds = [each for report in reports for each in report.to_first_commit]
    failed = [report.seed for report in reports if report.findings]
    say("")
    for kind, times in disturbed.most_common():
        say(f"{times:8} {kind}")
    for name, count in sorted(counts.items()):
        say(f"{count:8} {name}")
    if seconds:
        p50, p95 = np.percentile(seconds, [50, 95])
        say(f"{len(seconds):8} starts; to the first commit p50 {p50:.1f} s, p95 {p95:.1f} s")
    say(f"{len(reports):8} rounds; {'all as undisturbed' if not failed else f'FAILED with the seeds {failed}'}")


if __name__ == "__main__":
    sys.exit(main())
