"""The damage noted of a generation: from then on nothing is written there, and another generation takes its place."""

import time

import msgspec

from indexer.errors import HEALING
from indexer.generation_folders import Generation, new_generation_name, replace_file


class Damaged(msgspec.Struct, frozen=True):
    """What is damaged, for a person, and the generation that takes its place; `ordered` once that is in the log.

    `since_ms` is when it was noted; `refused` why only a person can go on.
    """

    problem: str
    successor: str
    ordered: bool = False
    since_ms: int = 0
    refused: str = ""

    def sentence(self) -> str:
        if self.refused:
            return f"{self.problem} {self.refused}"
        return (
            f"{self.problem} The stores are made again from the log automatically, as generation {self.successor}, and "
            "replaced when that is complete; searches continue with what was read before, and what is published waits "
            f"in the log. 'thalweg generations show {self.successor}' shows its progress."
        )


def read_damage(generation: Generation) -> Damaged | None:
    """The damage noted of a generation. A note that cannot be read is none: the damage is found again."""
    try:
        return msgspec.json.decode(generation.damage_path.read_bytes(), type=Damaged)
    except (OSError, msgspec.DecodeError):
        return None


def note_damage(generation: Generation, problem: str) -> Damaged:
    """What was noted first stays. Raises OSError."""
    problem = problem.replace(HEALING, "").strip()
    now_ms = time.time_ns() // 1_000_000
    noted = read_damage(generation) or Damaged(problem, new_generation_name(generation.data_dir), since_ms=now_ms)
    write_damage(generation, noted)
    return noted


def write_damage(generation: Generation, noted: Damaged) -> None:
    """Raises OSError."""
    generation.root.mkdir(parents=True, exist_ok=True)
    replace_file(generation.damage_path, msgspec.json.encode(noted))
