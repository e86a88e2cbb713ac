"""What damage is, and the sentences about it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from indexer.generations import how_to_mend

REPLACED_BY_WORKER = ("snapshots/", "graph/")
SHOWN = 5


class Damage(NamedTuple):
    """A file that is not what was written: `path` begins with the store's folder in the generation."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


def mending_of(data_dir: Path, damage: Sequence[Damage]) -> str:
    """What to type, or what happens by itself."""
    if all(each.path.startswith(REPLACED_BY_WORKER) for each in damage):
        return "It is passed over, and the worker replaces it with its next snapshot or start: nothing is to be done."
    return how_to_mend(data_dir)


def sentence_of(data_dir: Path, damage: Sequence[Damage]) -> str:
    """What is damaged, and what mends it."""
    shown = "; ".join(map(str, damage[:SHOWN]))
    more = f"; and {len(damage) - SHOWN} more" if len(damage) > SHOWN else ""
    return f"Damaged on disk: {shown}{more}. {mending_of(data_dir, damage)}"
