"""Repairs from the log, as the processes tell each other of them: orders on `curation.v1`, carried out by the worker.

The key of an order is `*/repair/<id>`: it may be about several collections. A null value takes it back.
"""

import re
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from schemas.generations import EVERY_COLLECTION

REPAIR = "repair"
REPAIR_ID = re.compile(r"[0-9a-f]{12}")
MOST_DOCUMENTS = 1_000  # of more, the stores are built again


class Repair(BaseModel):
    """What a generation is to get again from the log, and how far that is.

    `documents` are written again as their records have them; `graph` makes the graph again from its topic. Only a
    worker that runs this generation obeys.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    generation: str = Field(min_length=1, max_length=64)
    documents: list[str] = Field(default_factory=list, max_length=MOST_DOCUMENTS)
    graph: bool = False
    state: Literal["ordered", "running", "done"] = "ordered"
    repaired: int = Field(0, ge=0, description="Documents written or deleted.")
    kept: int = Field(0, ge=0, description="Documents left as they are: the log no longer holds what they came from.")
    failed: int = Field(0, ge=0, description="Documents left as they are: a store or the pipeline refused them.")


class RepairEvent(NamedTuple):
    """An order, or how far it is; `repair` is None where it was taken back."""

    id: str
    repair: Repair | None


def repair_key(name: str) -> bytes:
    """The record key of an order."""
    return f"{EVERY_COLLECTION}/{REPAIR}/{name}".encode()
