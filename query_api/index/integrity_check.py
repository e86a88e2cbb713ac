"""Integrity checks while the service runs: every stored file is read about every half minute.

What is in memory was checked when it was read and stays right; damage on disk is reported before the next start, or the
next read, needs the file.
"""

import asyncio
import time
from collections.abc import Callable, Iterator

import structlog

from indexer.generations import Generation
from indexer.integrity.files import Damage, damage_message
from query_api.index.stores import Stores

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 20.0
PAUSE_FACTOR = 9  # a tenth of one core at most: a pass over 3 GB then takes some 20 s


class IntegrityMonitor:
    """Keeps `damage`, all that is not as written in the generation that `served` names. Used on the event loop."""

    def __init__(
        self, stores: Stores, served: Callable[[], Generation | None], *, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self.damage: list[Damage] = []
        self._stores = stores
        self._served = served
        self._pause_seconds = pause_seconds

    async def run(self) -> None:
        """One pass after another. What a pass finds is reported at once, and until a pass does not find it."""
        while True:
            generation = self._served()
            if generation is not None:
                try:
                    self.damage = await self._pass(generation)
                except OSError as error:  # such as too many open files: the next pass looks again
                    log.warning("the stored files cannot be looked at just now", reason=str(error))
            await asyncio.sleep(self._pause_seconds)

    def index_damage(self) -> list[Damage]:
        """That in the tables which searches read."""
        return [each for each in self.damage if self._stores.is_in_index(each)]

    def sentence(self) -> str | None:
        """What is damaged and what mends it, for a person."""
        generation = self._served()
        if not self.damage or generation is None:
            return None
        return damage_message(generation.data_dir, self.damage)

    async def _pass(self, generation: Generation) -> list[Damage]:
        steps = self._stores.damage_of(generation)
        found: list[Damage] = []
        while True:
            began = time.perf_counter()
            step = await asyncio.to_thread(_next, steps)
            if step is None:
                return found
            for each in step:
                log.error("damage on disk", path=each.path, what=each.what)
            found += step
            self.damage = list(dict.fromkeys([*self.damage, *found]))
            await asyncio.sleep(PAUSE_FACTOR * (time.perf_counter() - began))


def _next(steps: Iterator[list[Damage]]) -> list[Damage] | None:
    return next(steps, None)
