"""Texts to vectors in one thread, so that heartbeats go on; a text the model cannot take is found and set apart."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.embedding import Encoder
from streams.metrics import WorkerMetrics
from streams.progress.partitions import Progress
from streams.progress.patience import Patience

Result = TypeVar("Result")

PROBE = "a probe of the encoder"
_FIRST_WAIT_SECONDS = 0.2


class EncoderBroken(Exception):
    """The encoder cannot even encode a few plain words."""


class Encoding:
    """The worker's one computing thread."""

    def __init__(
        self,
        encoder: Encoder,
        metrics: WorkerMetrics,
        progress: Progress,
        *,
        first_wait_seconds: float = _FIRST_WAIT_SECONDS,
    ) -> None:
        self._encoder = encoder
        self._patience = Patience("encoder", (EncoderBroken,), metrics, progress, first_wait_seconds=first_wait_seconds)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="encode")

    async def encode(self, texts: Sequence[str]) -> list[NDArray[np.float32] | Exception]:
        """For each text its vector, (dimension,) float32, or what the encoder raised for it alone.

        A failing batch is halved until the texts to blame stand alone. While the encoder fails for any text, this
        waits and tries again.
        """
        if not texts:
            return []
        return await self._patience.insist(lambda: self._isolating(list(texts)))

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Run a computation in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Let the call under way end, start no other."""
        self._executor.shutdown(cancel_futures=True)

    async def _isolating(self, texts: list[str]) -> list[NDArray[np.float32] | Exception]:
        try:
            return list(await self.compute(lambda: self._encoder.encode(texts)))
        except Exception as error:  # noqa: BLE001 -- whatever a model may raise
            if len(texts) == 1:
                await self._require_working(error)
                return [error]
        half = len(texts) // 2
        return [*await self._isolating(texts[:half]), *await self._isolating(texts[half:])]

    async def _require_working(self, error: Exception) -> None:
        try:
            await self.compute(lambda: self._encoder.encode([PROBE]))
        except Exception as broken:
            raise EncoderBroken(f"{type(error).__name__}: {error}") from broken
