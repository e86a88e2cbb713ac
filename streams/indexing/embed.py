"""Texts to vectors in a thread, so that heartbeats go on; a text the model cannot take is found and set apart."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.embedding.encoder import Encoder
from indexer.errors import EncoderBusy, EncoderFailure, EncoderUnavailable
from schemas.errors import MalformedEvent
from streams.metrics import WorkerMetrics
from streams.runtime.progress import Progress
from streams.runtime.retry import Retrier

Result = TypeVar("Result")

PROBE = "a probe of the encoder"
RETRY_SECONDS = (1.0, 2.0, 4.0)
_FIRST_WAIT_SECONDS = 0.2
_MOST_TIMES_AWAY = 3


class EncoderBroken(EncoderUnavailable):
    """The encoder cannot even encode a few plain words."""


class WithoutVector(MalformedEvent):
    """A document is refused: one of its texts got no vector. Of others' errors only the kind is told: they may quote
    the text."""

    def __init__(self, texts: str, failure: Exception) -> None:
        said = (
            str(failure) if isinstance(failure, EncoderFailure) else f"The encoder failed ({type(failure).__name__})."
        )
        super().__init__("embedding_failed", f"One of its {texts} got no vector, so none was stored. {said}")


class Encoding:
    """The worker's computing: one thread that feeds the encoder, and one for what is computed beside it."""

    def __init__(
        self,
        encoder: Encoder,
        metrics: WorkerMetrics,
        progress: Progress,
        *,
        retry_seconds: Sequence[float] = RETRY_SECONDS,
        first_wait_seconds: float = _FIRST_WAIT_SECONDS,
    ) -> None:
        self._encoder = encoder
        self._retry_seconds = retry_seconds
        self._retrier = Retrier(
            "encoder", (EncoderBroken, EncoderBusy), metrics, progress, first_wait_seconds=first_wait_seconds
        )
        self._feeding = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="compute")

    async def encode(self, texts: Sequence[str]) -> list[NDArray[np.float32] | Exception]:
        """For each text its vector, (dimension,) float32, or what the encoder raised for it alone.

        1. A batch fails for what passes: it is tried again, three times.
        2. It fails still, and a probe of a few plain words too: this waits until the probe succeeds, for ever if need
           be, and goes back to 1. So nothing is blamed while the encoder is away. An encoder that goes away with the
           same batch again and again is taken for one that the batch brings down.
        3. The probe succeeds: the batch is halved until the texts to blame stand alone.
        4. A text that fails alone is given up; but while the encoder is only busy, this waits and tries again.
        """
        size = self._encoder.batch_texts or max(1, len(texts))
        encoded: list[NDArray[np.float32] | Exception] = []
        for start in range(0, len(texts), size):
            encoded += await self._isolating(list(texts[start : start + size]), is_half=False)
        return encoded

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Run a computation, after those before it; the encoder goes on meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._beside, work)

    def close(self) -> None:
        """Let the calls under way end, start no other."""
        self._beside.shutdown(cancel_futures=True)
        self._feeding.shutdown(cancel_futures=True)

    async def _isolating(self, texts: list[str], *, is_half: bool) -> list[NDArray[np.float32] | Exception]:
        is_one = len(texts) == 1
        passing = EncoderBusy if is_half and not is_one else EncoderUnavailable  # a half fails fast: it is halved

        def attempt() -> Awaitable[NDArray[np.float32]]:
            return self._retrier.retry(lambda: self._encode(texts), (passing,), self._retry_seconds)  # 1

        failure: Exception | None = None
        for _ in range(_MOST_TIMES_AWAY):
            try:
                return list(await (self._retrier.retry_forever(attempt) if is_one else attempt()))
            except Exception as error:  # noqa: BLE001 -- whatever a model may raise
                failure = error
            if not await self._was_away():  # 2
                break
        if is_one and failure is not None:
            return [failure]  # 4
        half = len(texts) // 2  # 3
        first = await self._isolating(texts[:half], is_half=True)
        return [*first, *await self._isolating(texts[half:], is_half=True)]

    async def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        return await asyncio.get_running_loop().run_in_executor(self._feeding, self._encoder.encode, texts)

    async def _was_away(self) -> bool:
        """Whether the encoder took nothing at all. If so, this ends when it does again."""
        failures = 0

        async def probe() -> None:
            nonlocal failures
            try:
                await self._encode([PROBE])
            except Exception as error:
                failures += 1
                said = str(error) if isinstance(error, EncoderFailure) else f"{type(error).__name__}: {error}"
                asked = error.retry_after_seconds if isinstance(error, EncoderUnavailable) else None
                raise EncoderBroken(said, asked) from error

        await self._retrier.retry_forever(probe)
        return failures > 0
