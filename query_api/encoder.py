"""The encoder of questions, spared while it is away: searches that find it so fail their vector channel at once."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from indexer.errors import EncoderFailure, EncoderUnavailable, TextNotEncoded
from query_api.circuit_breaker import REST_SECONDS, Rest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from indexer.embedding.encoder import PromptedEncoder

PROBE = "Is the encoder there?"


class NotLoaded:
    """Stands in before there is a model, for searches that need no vector."""

    provider = "none"

    def encode_queries(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Raises EncoderUnavailable."""
        del texts
        raise EncoderUnavailable("The model is not loaded yet.")


class RestingEncoder:
    """After a failure that no text is to blame for, the encoder is asked again only once in `rest_seconds`, or when it
    said, within five minutes.

    Else each search would hold one of the few threads until its time is up, and those that need no vector would wait
    for a thread. Used from several threads.
    """

    def __init__(
        self,
        encoder: "PromptedEncoder",
        *,
        rest_seconds: float = REST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.provider = encoder.provider
        self.model = encoder.model
        self.digest = encoder.digest
        self.dimension = encoder.dimension
        self._encoder = encoder
        self._rest = Rest(rest_seconds, clock)

    @property
    def problem(self) -> str | None:
        """Why it does not answer; None while it does."""
        return self._rest.problem

    def encode_queries(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """(n_texts, dimension) float32, each row of L2 norm 1. Raises EncoderFailure, while it rests at once."""
        if rests := self._rest.reason():
            raise EncoderUnavailable(rests[0])
        try:
            vectors = self._encoder.encode_queries(texts)
        except TextNotEncoded:
            raise
        except EncoderFailure as failure:
            asked = failure.retry_after_seconds if isinstance(failure, EncoderUnavailable) else None
            self._rest.begin(str(failure), asked)
            raise
        self._rest.end()
        return vectors

    def look_again(self) -> None:
        """Ask a few words of it; `problem` then tells how it went. May block as long as the encoder's time-out."""
        try:
            self.encode_queries([PROBE])
        except EncoderFailure:
            return


ServedEncoder = RestingEncoder | NotLoaded
