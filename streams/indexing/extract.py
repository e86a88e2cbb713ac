"""Extraction by the extractor that a collection chose, after step 4 of the commit. Nothing is stored here."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from functools import partial

import msgspec

from indexer.documents import Chunk, PreparedDocument
from indexer.errors import ExtractorFailure, ExtractorRefused, ExtractorUnavailable, UnusableAnswer
from indexer.extraction.extractor import Extraction, Extractor, known_names, taken
from indexer.extraction.language_model import LANGUAGE_MODEL_VERSION, LanguageModel, version_of
from indexer.extraction.spacy_model import LazyPipeline, SpacyModel, spacy_version
from indexer.runtime.circuit_breaker import CircuitBreaker
from schemas.choices import ExtractorName
from schemas.ids import sha256_hex
from streams.runtime.partition_progress import Progress
from streams.runtime.retry import Retrier
from streams.settings import WorkerSettings
from streams.worker_metrics import WorkerMetrics

RETRY_SECONDS = (1.0, 2.0, 4.0)
RESET_SECONDS = 30.0
EXTRACTING = "extractor"


def versions_of(settings: WorkerSettings) -> dict[ExtractorName, str]:
    """The versions of the extractors that are set up, besides the default ones."""
    found: dict[ExtractorName, str] = {}
    if (version := version_of(settings.language_model)) is not None:
        found["language_model"] = version
    if (version := spacy_version()) is not None:
        found["spacy"] = version
    return found


def outdated_note(stored: Collection[str], settings: WorkerSettings) -> str | None:
    """What the operator should know where statements come from another language model, or another prompt, than is set
    up. `stored` are the extractors of the graph's statements."""
    version = version_of(settings.language_model)
    others = sorted(each for each in stored if each.startswith(LANGUAGE_MODEL_VERSION) and each != version)
    if version is None or not others:
        return None
    return (
        f"Documents were read by {', '.join(others)}; those that are sent from now on are read by {version}: 'thalweg "
        "rebuild' reads all by it."
    )


@dataclass(eq=False)
class ExtractorThreads:
    """Asks one extractor about the chunks of a document, several at once.

    An answer that fails is asked for again, four times in all. If that fails too, the chunk has what the default
    extractors find, and a note on the receipt says so: a document never waits for an extractor for ever, and none is
    lost. One that was away or refuses everything is left alone for 30 seconds (circuit breaker): the chunks that come
    meanwhile have the default ones at once.
    """

    extractor: Extractor
    metrics: WorkerMetrics
    progress: Progress
    _: KW_ONLY
    retry_seconds: Sequence[float] = RETRY_SECONDS
    reset_seconds: float = RESET_SECONDS

    def __post_init__(self) -> None:
        self._retrier = Retrier("extractor answers", (), self.metrics, self.progress, first_wait_seconds=1.0)
        self._breaker = CircuitBreaker(self.reset_seconds)
        self._threads = ThreadPoolExecutor(self.extractor.at_once, thread_name_prefix="extract")
        self._running = 0  # documents
        self._turns = asyncio.Semaphore(self.extractor.at_once)

    @property
    def version(self) -> str:
        return self.extractor.version

    async def extract(self, prepared: PreparedDocument) -> tuple[PreparedDocument, tuple[Extraction | None, ...]]:
        """The document, with notes of what went wrong, and for each chunk what is taken of the answer, or None."""
        names = known_names(prepared)
        self._running += 1
        self.progress.waiting_for[EXTRACTING] = self.version  # for the watchdog: it may take long
        try:
            found = await asyncio.gather(
                *(self._extract_or_fail(prepared, chunk, names) for chunk in prepared.chunked.chunks)
            )
        finally:
            self._running -= 1
            if not self._running:
                self.progress.waiting_for.pop(EXTRACTING, None)
        notes = _notes(found)
        extractions = tuple(each if isinstance(each, Extraction) else None for each in found)
        revision = prepared.revision if None not in extractions else incomplete(prepared.revision)
        return msgspec.structs.replace(prepared, revision=revision, notes=(*prepared.notes, *notes)), extractions

    async def _extract_or_fail(
        self, prepared: PreparedDocument, chunk: Chunk, names: Sequence[str]
    ) -> Extraction | ExtractorFailure:
        async with self._turns:
            if (refusal := self._breaker.refusal()) is not None:
                return ExtractorUnavailable(refusal[0])
            ask = partial(self.extractor.extract, chunk.text, names)
            try:
                answer = await self._retrier.retry(
                    lambda: asyncio.get_running_loop().run_in_executor(self._threads, ask),
                    (ExtractorUnavailable, UnusableAnswer),
                    self.retry_seconds,
                )
            except ExtractorFailure as failure:
                if isinstance(failure, ExtractorUnavailable | ExtractorRefused):
                    self._breaker.record_failure(str(failure), getattr(failure, "retry_after_seconds", None))
                return failure
            self._breaker.record_success()
        return taken(prepared, chunk, answer, self.version)

    def close(self) -> None:
        """Start no other calls; those that run end."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.extractor.close()


def incomplete(revision: str) -> str:
    """The revision of a document of which the extractor did not answer for every chunk: another one, so that it is not
    unchanged when it is sent again."""
    return sha256_hex(f"{revision}/incomplete".encode())[:32]


def _notes(found: Sequence[Extraction | ExtractorFailure]) -> list[str]:
    failures = Counter(str(each) for each in found if isinstance(each, ExtractorFailure))
    notes = [
        f"{count} of {len(found)} chunks have the entities of the default extractor: {message}"
        for message, count in sorted(failures.items())
    ]
    if refused := sum(each.refused for each in found if isinstance(each, Extraction)):
        notes.append(f"{refused} names or statements of the extractor are left out: they are not in the text.")
    return notes


def open_extractors(
    settings: WorkerSettings, metrics: WorkerMetrics, progress: Progress
) -> Mapping[str, ExtractorThreads]:
    """Those that are set up, by version."""
    extractors: list[Extractor] = []
    if "language_model" in versions_of(settings):
        extractors.append(LanguageModel(settings.language_model))
    if (version := spacy_version()) is not None:
        extractors.append(SpacyModel(LazyPipeline(), version))
    return {each.version: ExtractorThreads(each, metrics, progress) for each in extractors}
