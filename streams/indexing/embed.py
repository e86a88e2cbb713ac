"""Step 4 of the commit: texts to vectors in a thread; a text that the model cannot take is found by bisection."""

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
from streams.runtime.retry import Retrier, bisect

Result = TypeVar("Result")

PROBE = "a probe of the encoder"
RETRY_SECONDS = (1.0, 2.0, 4.0)
_FIRST_WAIT_SECONDS = 0.2
_MOST_TIMES_AWAY = 3


class EncoderBroken(EncoderUnavailable):
    """The encoder cannot even encode a few plain words."""


class WithoutVector(MalformedEvent):
    """A document is refused: one of its texts got no vector."""

    def __init__(self, texts: str, failure: Exception) -> None:
        """Of foreign errors only the type is shown: their messages may quote the text."""
        is_ours = isinstance(failure, EncoderFailure)
        reason = str(failure) if is_ours else f"The encoder failed ({type(failure).__name__})."
        super().__init__("embedding_failed", f"One of its {texts} got no vector, so none was stored. {reason}")


class EncoderThread:
    """One thread that feeds the encoder, and one for other computations beside it."""

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
        self._encoder_thread = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self._compute_thread = ThreadPoolExecutor(1, thread_name_prefix="compute")

    async def encode(self, texts: Sequence[str]) -> list[NDArray[np.float32] | Exception]:
        """For each text its vector, (dimension,) float32, or what the encoder raised for it alone.

        1. A batch that fails with a transient error is retried three times.
        2. Where it still fails, a probe of a few plain words is encoded, until it succeeds. If the probe failed at
           first, the encoder was away: back to 1. An encoder that goes away with the same batch three times is taken
           for one that the batch brings down.
        3. Where the probe succeeds at once, the batch is bisected.
        4. A text that fails alone gets its error; but while the encoder is only busy, it is retried without limit.
        """
        size = self._encoder.batch_texts or max(1, len(texts))
        encoded: list[NDArray[np.float32] | Exception] = []
        for start in range(0, len(texts), size):
            encoded += await self._encode_or_bisect(texts[start : start + size])
        return encoded

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Run a computation beside the encoder, after those before it."""
        return await asyncio.get_running_loop().run_in_executor(self._compute_thread, work)

    def close(self) -> None:
        """Let running calls end, start no others."""
        self._compute_thread.shutdown(cancel_futures=True)
        self._encoder_thread.shutdown(cancel_futures=True)

    async def _encode_or_bisect(self, texts: Sequence[str]) -> list[NDArray[np.float32] | Exception]:
        async def encode(part: Sequence[str]) -> Sequence[NDArray[np.float32] | Exception]:
            return await self._attempt(part, is_half=len(part) < len(texts))

        async def give_up(_text: str, error: Exception) -> Exception:
            return error  # 4

        return await bisect(texts, encode, give_up, name="texts", log_traceback=False)  # 3

    async def _attempt(self, texts: Sequence[str], *, is_half: bool) -> list[NDArray[np.float32]]:
        is_one = len(texts) == 1
        passing = EncoderBusy if is_half and not is_one else EncoderUnavailable  # a half fails fast: it is bisected

        def attempt() -> Awaitable[NDArray[np.float32]]:
            return self._retrier.retry(lambda: self._encode(list(texts)), (passing,), self._retry_seconds)  # 1

        times_away = 0
        while True:
            try:
                return list(await (self._retrier.retry_forever(attempt) if is_one else attempt()))
            except Exception:
                times_away += 1
                if not await self._was_away() or times_away == _MOST_TIMES_AWAY:  # 2
                    raise

    async def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        return await asyncio.get_running_loop().run_in_executor(self._encoder_thread, self._encoder.encode, texts)

    async def _was_away(self) -> bool:
        """Whether the encoder encoded nothing at all. If so, this returns when it does again."""
        failures = 0

        async def probe() -> None:
            nonlocal failures
            try:
                await self._encode([PROBE])
            except Exception as error:
                failures += 1
                message = str(error) if isinstance(error, EncoderFailure) else f"{type(error).__name__}: {error}"
                retry_after = error.retry_after_seconds if isinstance(error, EncoderUnavailable) else None
                raise EncoderBroken(message, retry_after) from error

        await self._retrier.retry_forever(probe)
        return failures > 0
