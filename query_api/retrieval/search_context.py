"""What every stage of a search works with: the request, its snapshot, the budgets, and how each stage ended."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from indexer.errors import DamagedStore, EncoderFailure, TransientStoreError
from indexer.text_analysis import query_terms
from query_api.index.search_snapshot import PassageReader, QueryEncoder, Snapshot
from query_api.index.text.text_segments import Candidate, Scope
from query_api.query.analysis import Question, analysed_question
from query_api.question_encoder import EMBED_SECONDS
from query_api.rerankers import RerankerFailure
from query_api.rerankers.reranker import ServedReranker
from query_api.retrieval.confidence import FittedCalibration, fitted_calibration
from query_api.retrieval.fusion import FusionWeights, HitLimit
from query_api.retrieval.retrievers.graph_edges import check_edges
from query_api.retrieval.retrievers.graph_scoring import TermWeights
from schemas.choices import Channel
from schemas.frames import Stage
from schemas.ids import DocumentKey
from schemas.search import MAX_PER_VALUE, SearchRequest

MAX_REASON_CHARACTERS = 300
TEXTS_OF_HITS = "The texts of the hits"

Value = TypeVar("Value")


class SearchFailed(Exception):
    """No channel could answer: the stores cannot be read just now. Trying again may help."""


@dataclass(frozen=True)
class SearchBudgets:
    """How long each stage may take; a channel that takes longer is left out of the answer, and the answer says so."""

    embed_seconds: float = EMBED_SECONDS
    vector_seconds: float = 2.0
    keyword_seconds: float = 2.0
    structured_seconds: float = 1.0
    graph_seconds: float = 2.0
    texts_seconds: float = 5.0  # late here fails the search

    @property
    def total_seconds(self) -> float:
        """The longest a first page can take; comparing has as long as the graph."""
        text_channels = max(self.keyword_seconds + self.structured_seconds, self.embed_seconds + self.vector_seconds)
        return text_channels + 2 * self.graph_seconds + self.texts_seconds


@dataclass(frozen=True)
class SearchSettings:
    """All a search can be tuned by. `clock` gives the time that `yesterday` and a document's age are relative to."""

    budgets: SearchBudgets = field(default_factory=SearchBudgets)
    fusion: FusionWeights = field(default_factory=FusionWeights)
    terms: TermWeights = field(default_factory=TermWeights)
    calibration: FittedCalibration | None = field(default_factory=fitted_calibration)
    reranker: ServedReranker | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)


ALL_CHANNELS: tuple[Channel, ...] = ("vector", "keyword", "structured", "graph")


def check_names(request: SearchRequest, snapshot: Snapshot) -> Scope:
    """The scope of the request's collection and filters. Raises MalformedFilter for edges and fields that the snapshot
    does not have."""
    fields = snapshot.text.fields
    check_edges(request, snapshot.graph)
    sort = None if request.sort is None else request.sort.removeprefix("-")
    for name in (request.diversity, sort, *request.facets):
        if name is not None:
            fields.check_field(name, request.collection)
    return fields.scope(request.collection, request.conditions)


@dataclass(frozen=True)
class SearchContext:
    """One question and what it is searched with. `scope` is what the request's collection and filters allow, and the
    time and the phrases that the question asks for documents by; `raised` are the documents of a time that it names
    otherwise; `holding` are the passages that may be hits, any for None; `newest_first` is whether it asks for the
    newest."""

    request: SearchRequest
    snapshot: Snapshot
    encoder: QueryEncoder
    executor: Executor
    settings: SearchSettings
    scope: Scope
    passages: PassageReader
    now: datetime
    newest_first: bool = False
    raised: frozenset[DocumentKey] = frozenset()
    holding: frozenset[str] | None = None

    @classmethod
    def create(
        cls,
        request: SearchRequest,
        snapshot: Snapshot,
        encoder: QueryEncoder,
        executor: Executor,
        settings: SearchSettings,
    ) -> "SearchContext":
        """Raises MalformedFilter, as `check_names` does."""
        scope, passages = check_names(request, snapshot), PassageReader(snapshot.text)
        return cls(request, snapshot, encoder, executor, settings, scope, passages, settings.clock())

    @property
    def question(self) -> Question:
        return analysed_question(self.request.q)

    def search_words(self, depth: int) -> list[Candidate]:
        """The keyword channel; one that asks for a phrase of stop words looks at any passage. Blocks."""
        search, q = self.snapshot.text.keyword_search, self.request.q
        if self.holding is not None and not query_terms(q):
            return search(q, depth, self.scope, of_all=True)
        return search(q, depth, self.scope)

    def kept(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Those that may be hits."""
        holding = self.holding
        return candidates if holding is None else [each for each in candidates if each.passage_id in holding]

    @property
    def channels(self) -> frozenset[Channel | Literal["global"]]:
        """The channels of the request."""
        match self.request.mode:
            case "hybrid":
                return frozenset(self.request.channels or ALL_CHANNELS)
            case "graph_rerank":
                return frozenset({"vector", "graph"})
            case mode:
                return frozenset({mode})

    @property
    def text_channels(self) -> frozenset[Channel | Literal["global"]]:
        """Those that run before the graph, which even alone is seeded by vector and keyword."""
        return frozenset({"vector", "keyword"}) if self.request.mode == "graph" else self.channels - {"graph"}

    @property
    def limits(self) -> tuple[HitLimit, ...]:
        """How many hits may be of one document, and have one value of a field."""
        request, fields = self.request, self.snapshot.text.fields
        most = 1 if request.group == "document" else request.max_per_document
        limits = [] if most is None else [HitLimit.per_document(most)]
        if request.diversity is not None:
            field = request.diversity
            limits.append(HitLimit(request.max_per_value or MAX_PER_VALUE, lambda key: fields.values(field, key)))
        return tuple(limits)

    def run(self, function: Callable[[], Value]) -> Awaitable[Value]:
        """Run a blocking step in a thread."""
        return asyncio.get_running_loop().run_in_executor(self.executor, function)


class Outcome(NamedTuple, Generic[Value]):
    """How a stage ended: with a value, or with the reason why not."""

    name: str
    seconds: float
    value: Value | None
    error: str | None


class Diagnostics:
    """Seconds by stage, and why a stage failed."""

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}
        self.timings: dict[str, float] = {}

    def stage(self, outcome: Outcome[Any], candidates: int) -> Stage:
        """Record how a stage went; its frame."""
        self.timings[outcome.name] = round(outcome.seconds, 6)
        self.note_failure(outcome)
        return Stage(name=outcome.name, seconds=round(outcome.seconds, 6), candidates=candidates, error=outcome.error)

    def add(self, name: str, seconds: float) -> None:
        """Time of a stage that runs more than once."""
        self.timings[name] = round(self.timings.get(name, 0.0) + seconds, 6)

    def note_failure(self, outcome: Outcome[Any]) -> None:
        if outcome.error is not None:
            self.failed[outcome.name] = outcome.error

    def blame_vector_for_embedding(self) -> None:
        """A question that was not embedded is a vector channel that did not answer."""
        if "embed" in self.failed:
            self.failed["vector"] = f"The question was not embedded: {self.failed.pop('embed')}"


async def run_with_timeout(name: str, seconds: float, step: Awaitable[Value]) -> Outcome[Value]:
    """A store that cannot be read, a model without an answer, and a timeout are outcomes; a fault of the program is
    raised."""
    began = time.perf_counter()
    value: Value | None = None
    error: str | None = None
    try:
        async with asyncio.timeout(seconds):
            value = await step
    except TimeoutError:
        error = f"no answer within {seconds:g} s"
    except (TransientStoreError, DamagedStore, EncoderFailure, RerankerFailure) as broken:
        error = str(broken)[:MAX_REASON_CHARACTERS]
    return Outcome(name, time.perf_counter() - began, value, error)


async def read_texts(context: SearchContext, what: str, step: Awaitable[Value], diagnostics: Diagnostics) -> Value:
    """The value of a step within the budget for texts. Raises SearchFailed, naming what was to be read."""
    outcome = await run_with_timeout("texts", context.settings.budgets.texts_seconds, step)
    diagnostics.add("texts", outcome.seconds)
    if outcome.value is None:
        raise SearchFailed(f"{what}: {outcome.error}")
    return outcome.value


async def gather_or_cancel(steps: Iterable[Coroutine[Any, Any, Value]]) -> list[Value]:
    """The results of all, run concurrently; where one fails, or this is cancelled, the others are cancelled."""
    tasks = [asyncio.ensure_future(step) for step in steps]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
