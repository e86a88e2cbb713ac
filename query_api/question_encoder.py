"""The encoder of questions: loaded in the background, then behind a circuit breaker."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import structlog
from cachetools import LRUCache
from numpy.typing import NDArray

from indexer.embedding import backends as embedding
from indexer.embedding.encoder import PromptedEncoder
from indexer.errors import DamagedStore, EncoderFailure, EncoderUnavailable, TextNotEncoded
from indexer.generation_folders import Manifest, current_manifest
from indexer.runtime.circuit_breaker import RESET_SECONDS, CircuitBreaker
from indexer.runtime.resources import tune_gc
from query_api.index.text.vectors import CosineSpread
from schemas.settings import EmbeddingSettings

log = structlog.get_logger(__name__)

EMBED_SECONDS = 2.0  # that a search waits for the vector of its question
PROBES = (
    "Is the encoder there?",
    "The committee agreed to publish the budget for the coming year.",
    "Stir the onions in oil over a low heat until they are soft.",
    "The function returns an empty list when no element matches.",
    "Patients who took the medicine slept longer.",
    "The team won the final by two goals after extra time.",
    "Migrating birds follow the coast in autumn.",
    "The castle was built in the twelfth century and destroyed by fire.",
    "An electric current in a coil produces a magnetic field.",
    "Customers may return unopened goods within thirty days.",
    "Trains to the airport leave every twenty minutes.",
    "She studied law before she became a writer.",
)
BACKGROUND_TEXTS = 256  # that the cosines between these count for: as many as are taken from a large collection
BACKGROUND = CosineSpread(0.05, 0.07, BACKGROUND_TEXTS)  # until they are known
MOST_EARLIER = 2
GC_THRESHOLDS = (10_000, 10, 10)  # a search leaves fewer objects; Python's own 700 cost it .4 ms


class NotLoaded:
    """Stands in before there is a model, for searches that need no vector."""

    provider = "none"
    background = BACKGROUND

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Raises EncoderUnavailable."""
        del texts
        raise EncoderUnavailable("The model is not loaded yet.")


class GuardedEncoder:
    """An encoder that is not asked again for a while after a failure that no text is to blame for.

    Else each search would hold one of the few threads until its time is up, and those that need no vector would wait
    for a thread. Used from several threads.
    """

    def __init__(
        self,
        encoder: PromptedEncoder,
        *,
        reset_seconds: float = RESET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.provider = encoder.provider
        self.model = encoder.model
        self.digest = encoder.digest
        self.dimension = encoder.dimension
        self.background = BACKGROUND
        self._encoder = encoder
        self._breaker = CircuitBreaker(reset_seconds, clock)

    @property
    def problem(self) -> str | None:
        """Why it does not answer; None while it does."""
        return self._breaker.problem

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, dimension) float32, each row of L2 norm 1. Raises EncoderFailure, at once while the breaker is
        open."""
        if refusal := self._breaker.refusal():
            raise EncoderUnavailable(refusal[0])
        try:
            vectors = self._encoder.encode_queries(texts)
        except TextNotEncoded:
            raise
        except EncoderFailure as failure:
            asked = failure.retry_after_seconds if isinstance(failure, EncoderUnavailable) else None
            self._breaker.record_failure(str(failure), asked)
            raise
        self._breaker.record_success()
        return vectors

    def probe(self) -> None:
        """Encode a few sentences; `problem` and `background` are then the outcome. May block as long as the encoder's
        time-out."""
        try:
            vectors = self.encode_queries(PROBES).astype(np.float64)
        except EncoderFailure:
            return
        cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
        self.background = CosineSpread(float(cosines.mean()), float(cosines.std()), BACKGROUND_TEXTS)


ServedEncoder = GuardedEncoder | NotLoaded


LoadEncoder = Callable[[EmbeddingSettings, Path], PromptedEncoder]


def load_encoder(settings: EmbeddingSettings, data_dir: Path) -> PromptedEncoder:
    """That of the current generation, as far as it can be had. Takes seconds: call it in a thread.

    Raises IncompatibleGeneration when there is no such model, EncoderUnavailable when an endpoint has to be asked about
    its model and is away."""
    return embedding.load_matching_encoder(settings, current_manifest(data_dir), request_seconds=EMBED_SECONDS)


class ServedModel:
    """The embedding models of the generations that are searched: `encoder` is that of the live one, None until it is
    loaded. Used on the event loop."""

    def __init__(
        self, settings: EmbeddingSettings, data_dir: Path, load: LoadEncoder, retry_seconds: float = RESET_SECONDS
    ) -> None:
        self.encoder: GuardedEncoder | None = None
        self.loaded = asyncio.Event()
        self._settings = settings
        self._data_dir = data_dir
        self._load = load
        self._retry_seconds = retry_seconds
        self._problem = "The model is being loaded."
        self._earlier: LRUCache[str, GuardedEncoder] = LRUCache(MOST_EARLIER)  # by generation

    def of(self, generation: str) -> GuardedEncoder | None:
        """The encoder for a snapshot of this generation: cursors may still read one that is not live any more."""
        return self._earlier.get(generation, self.encoder)

    async def prepare(self, before: str, manifest: Manifest) -> None:
        """Have the encoder of another generation before it takes the place of `before`."""
        if self.encoder is None or _encodes(self.encoder, manifest):
            return
        try:
            encoder = await asyncio.to_thread(self._load_and_probe)
        except Exception:  # edge of a background task: `problem` says why vectors are not searched
            log.exception("the model of a generation cannot be loaded", generation=manifest.generation)
            return
        self._earlier[before], self.encoder = self.encoder, encoder
        log.info("model loaded", model=encoder.model, generation=manifest.generation)

    def problem(self, manifest: Manifest | None) -> str | None:
        """Why it cannot answer questions to a generation with this manifest; None where it can."""
        encoder = self.encoder if manifest is None else self.of(manifest.generation)
        if encoder is None:
            return self._problem
        if manifest is None or _encodes(encoder, manifest):
            return None
        return (
            f"Generation {manifest.generation} was made by {manifest.embedding_provider} with "
            f"{manifest.embedding_model!r} ({manifest.embedding_digest[-12:]}, {manifest.dimension} numbers each), "
            f"not with {encoder.model!r} ({encoder.digest[-12:]}, {encoder.dimension}): set "
            "THALWEG_EMBEDDING__PROVIDER, THALWEG_EMBEDDING__MODEL, THALWEG_EMBEDDING__DIMENSION, __QUERY_PREFIX and "
            "__PASSAGE_PREFIX as the worker has them. If they are, another version made it: 'thalweg worker' on this "
            "data directory shows how to continue."
        )

    async def run(self) -> None:
        """Load it, trying again while an endpoint is away or the generation is damaged; then probe it while it does not
        answer; for ever."""
        started = time.perf_counter()
        encoder = await self._loaded()
        if encoder is None:
            return
        self.encoder = encoder
        self.loaded.set()
        log.info("model loaded", model=encoder.model, seconds=round(time.perf_counter() - started, 2))
        reported: str | None = None
        while True:
            encoder = self.encoder
            if encoder.problem is not None:
                await asyncio.to_thread(encoder.probe)
            if encoder.problem != reported:
                reported = encoder.problem
                if reported is None:
                    log.info("the encoder answers again")
                else:
                    log.warning("the encoder does not answer; searches continue by words and graph", error=reported)
            await asyncio.sleep(self._retry_seconds)

    async def _loaded(self) -> GuardedEncoder | None:
        while True:
            try:
                return await asyncio.to_thread(self._load_and_probe)
            except (EncoderUnavailable, DamagedStore) as error:  # a damaged generation is replaced by another one
                self._problem = str(error)
                await asyncio.sleep(self._retry_seconds)
            except Exception as error:  # edge of a background task: readiness reports it, the service stays up
                self._problem = f"The model cannot be loaded: {error}"
                log.exception("model cannot be loaded")
                return None

    def _load_and_probe(self) -> GuardedEncoder:
        encoder = GuardedEncoder(self._load(self._settings, self._data_dir), reset_seconds=self._retry_seconds)
        encoder.probe()  # also because the first text takes longest
        tune_gc(GC_THRESHOLDS)  # pauses are paid by searches
        return encoder


def _encodes(encoder: GuardedEncoder, manifest: Manifest) -> bool:
    """Whether its vectors compare with those that are stored."""
    return (manifest.embedding_digest, manifest.dimension) == (encoder.digest, encoder.dimension)
