"""The check of the harness itself: with a known mistake put back into the worker, a round must fail."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from streams.embedded_kafka.broker import EmbeddedKafka
from tests.acceptance.torture import disturbances
from tests.acceptance.torture.disturbances import Disturbance, Scene
from tests.acceptance.torture.faults import Harm
from tests.acceptance.torture.rounds import Round

SEEDS = (1, 2, 3)


def killing(harm: Harm, call: str, after: int = 0) -> Disturbance:
    return partial(disturbances.kill_at, harm=harm, call=call, after=after)


def failing(harm: Harm, call: str, after: int = 0) -> Disturbance:
    return partial(disturbances.fail_at, harm=harm, call=call, after=after)


def quiet(scene: Scene) -> str:
    """Nothing but load, maintenance and readers."""
    disturbances.wait_while_tending(scene, 15)
    scene.subject.until_commit()
    return "15 s"


CATCHES: dict[str, Sequence[tuple[str, Disturbance]]] = {
    "plain stream.take": [("store breaks", failing("break", "lance: keep the retrievals"))] * 3,
    "commit before write": [("kill at a point", killing("kill before", "send: contributions"))] * 2,
    "no version guard": [("kill", disturbances.kill)],
    "no declared key": [("two writers", disturbances.write_from_elsewhere)] * 2,
    "cleanup_older_than=0": [("load", quiet)] * 2,
    "position outside the transaction": [("kill at a point", killing("kill after", "snapshot: prune", 1))] * 2,
    "deletes not merged": [("load", quiet)] * 2,
    "ack before the dead letter is confirmed": [("named call fails", failing("fail on", "send: dead-letters"))] * 2,
}
"""The disturbances that show each mistake."""


def check_mutations(broker: EmbeddedKafka, folder: Path, mutations: Sequence[str], say: Callable[[str], None]) -> int:
    """Each mistake with the disturbances that show it, by a few seeds; 1 where one was not found."""
    caught: dict[str, str] = {}
    for number, name in enumerate(mutations):
        for seed in SEEDS:
            say(f"{name}, seed {seed}")
            folder_of_round = folder / f"mutation-{number}-{seed}"
            report = Round(broker, folder_of_round, seed, mutation=name, plan=CATCHES[name]).run(say)
            if report.findings:
                caught[name] = f"seed {seed}, {CATCHES[name][0][0]}: {report.findings[0][:160]}"
                say(f"  found: {report.findings[0][:300]}")
                break
    say("")
    for name in mutations:
        say(f"{name:42} {caught.get(name, 'NOT FOUND')}")
    return 0 if caught.keys() == set(mutations) else 1
