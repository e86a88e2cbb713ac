"""The encoder of questions, spared while it is away: searches that find it so fail their vector channel at once."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from indexer.errors import EncoderFailure, EncoderUnavailable, TextNotEncoded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from indexer.embedding import Encoder

REST_SECONDS = 5.0
LONGEST_REST_SECONDS = 300.0
PROBE = "Is the encoder there?"


class RestingEncoder:
    """After a failure that no text is to blame for, the encoder is asked again only once in `rest_seconds`, or when it
    said, within five minutes.

    Else each search would hold one of the few threads until its time is up, and those that need no vector would wait
    for a thread. Used from several threads.
    """

    def __init__(
        self, encoder: "Encoder", *, rest_seconds: float = REST_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.provider = encoder.provider
        self.model = encoder.model
        self.digest = encoder.digest
        self.dimension = encoder.dimension
        self.problem: str | None = None
        self._encoder = encoder
        self._rest_seconds = rest_seconds
        self._clock = clock
        self._rests_until = 0.0
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """(n_texts, dimension) float32, each row of L2 norm 1. Raises EncoderFailure, while it rests at once."""
        with self._lock:
            if self.problem is not None:
                if self._clock() < self._rests_until:
                    raise EncoderUnavailable(self.problem)
                self._rests_until = self._clock() + self._rest_seconds
        try:
            vectors = self._encoder.encode(texts)
        except TextNotEncoded:
            raise
        except EncoderFailure as failure:
            with self._lock:
                self.problem = str(failure)
                asked = failure.retry_after_seconds if isinstance(failure, EncoderUnavailable) else None
                self._rests_until = self._clock() + max(self._rest_seconds, min(asked or 0.0, LONGEST_REST_SECONDS))
            raise
        self.problem = None
        return vectors

    def look_again(self) -> None:
        """Ask a few words of it; `problem` then tells how it went. May block as long as the encoder's time-out."""
        try:
            self.encode([PROBE])
        except EncoderFailure:
            return
