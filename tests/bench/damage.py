"""Changes single bytes of every stored file, cuts and zeroes it: what is found where, and what is answered wrongly.

    python tests/bench/damage.py --changes 60 --seed 1

Prints a line for each kind of file. Exits with 1 for any wrong answer, or a change that 'verify' does not tell.
"""

import argparse
import logging
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.oracles.corruption import Experiment, Tally, is_live, kinds_of, make_stores, summary

OF_OTHERS = 3
HARMLESS = {"lance hint"}  # where Lance begins to look for the newest version; a wrong one changes nothing
REWRITTEN = {"lance checksums"}  # what is no longer listed there is checked by its rows, and listed again


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--changes", type=int, default=60, help="of each file that the newest state is read from")
    asked.add_argument("--documents", type=int, default=10)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--kind", action="append", help="only these kinds of files")
    given = asked.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    chosen, tallies, began = random.Random(given.seed), {}, time.monotonic()
    with TemporaryDirectory() as folder:
        generation = make_stores(Path(folder) / "data", given.documents)
        experiment = Experiment(generation)
        for kind, files in kinds_of(generation).items():
            if given.kind and kind not in given.kind:
                continue
            tally = tallies.setdefault(kind, Tally())
            for file in files:
                changes = given.changes if is_live(file) else min(given.changes, OF_OTHERS)
                experiment.on(kind, file, changes, chosen, tally)
                if kind not in REWRITTEN:
                    experiment.spoil(kind, file, tally)
            print(*list(summary({kind: tally}))[1:], f"{time.monotonic() - began:6.0f} s", flush=True)
    print(*summary(tallies), sep="\n")
    wrong = [each for tally in tallies.values() for each in tally.wrong]
    print(*wrong, sep="\n")
    untold = [kind for kind, each in tallies.items() if kind not in HARMLESS and not each.all_told]
    return 1 if wrong or untold else 0


if __name__ == "__main__":
    raise SystemExit(main())
