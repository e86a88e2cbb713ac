"""One search, from the question to its hits: channels in parallel within their budgets, fused, assembled, streamed.

1. Embed the question; meanwhile ask the keyword index, and which documents have what the question names.
2. Ask the vector index.
3. Compare what was found with the question, whichever channel found it; follow the graph from there and from what the
   question names.
4. Fuse the channels into one order.
5. Read the texts of a page of it, and hand out its hits, best first.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.errors import EncoderFailure, TransientStoreError
from query_api.channels.findings import NOTHING, Findings
from query_api.channels.graph import TermWeights, graph_channel
from query_api.channels.keyword import keyword_channel
from query_api.channels.query_links import Names, names_in
from query_api.channels.question import Question
from query_api.channels.structured.channel import NOTHING_ASKED, Structured, structured_channel
from query_api.channels.understanding import understood
from query_api.channels.vector import vector_channel
from query_api.reading.comparing import Compared, Comparer, best_scores
from query_api.reading.passages import PassageReader
from query_api.reading.snapshot import Candidate, QueryEncoder, Snapshot
from query_api.searching.choosing import FLOOR_PLACES, distinct, likely_enough
from query_api.searching.confidence import Evidence, Judge, fitted_judge, with_confidence
from query_api.searching.contexts import span_of, with_contexts
from query_api.searching.explaining import factors_of
from query_api.searching.fusing import DEEPER, DEPTH, Found, FusionWeights, Place, places
from query_api.searching.hits import Texts, hits_of
from query_api.searching.paths import Trail
from schemas.api import MAX_HITS, Channel, Hit, Mode, SearchRequest
from schemas.frames import Done, Meta, Stage

MAX_DEPTH = 16_384
FIRST_HITS = 20  # read and sent before the rest of a long page
BATCH_HITS = 200
LIKELY_PARENTS = 4
SEEDING_MODES: frozenset[Mode] = frozenset({"hybrid", "graph", "rerank"})
ALL_CHANNELS: tuple[Channel, ...] = ("vector", "keyword", "structured", "graph")
MAX_REASON_CHARACTERS = 300

Value = TypeVar("Value")


class SearchFailed(Exception):
    """No channel could answer: the stores cannot be read just now. Trying again may help."""


@dataclass(frozen=True)
class SearchBudgets:
    """How long each step may take; a channel that takes longer is left out of the answer, and the answer says so."""

    embed_seconds: float = 2.0
    vector_seconds: float = 2.0
    keyword_seconds: float = 2.0
    structured_seconds: float = 1.0
    graph_seconds: float = 2.0
    texts_seconds: float = 5.0

    @property
    def total_seconds(self) -> float:
        """The longest a first page can take; comparing has as long as the graph."""
        beside = max(self.keyword_seconds, self.structured_seconds, self.embed_seconds + self.vector_seconds)
        return beside + 2 * self.graph_seconds + self.texts_seconds


@dataclass(frozen=True)
class SearchSettings:
    """All a search can be tuned by."""

    budgets: SearchBudgets = field(default_factory=SearchBudgets)
    fusion: FusionWeights = field(default_factory=FusionWeights)
    terms: TermWeights = field(default_factory=TermWeights)
    judge: Judge | None = field(default_factory=fitted_judge)


class _Outcome(NamedTuple, Generic[Value]):
    """How a step ended: with a value, or with the reason why not."""

    name: str
    seconds: float
    value: Value | None
    error: str | None


class _Found(NamedTuple):
    """What the channels found, each list best first; None for a channel that was not asked or did not answer."""

    vector: Sequence[Candidate] | None
    keyword: Sequence[Candidate] | None
    graph: Findings
    structured: Structured = NOTHING_ASKED


async def search(
    request: SearchRequest,
    retrieval_id: str,
    snapshot: Snapshot,
    encoder: QueryEncoder,
    executor: Executor,
    settings: SearchSettings,
) -> AsyncIterator[Meta | Stage | Hit | Done]:
    """The parts of an answer, as each is final: Meta, Stages, Hits in rank order, Done.

    Everything is read from `snapshot`, so the same request gives the same hits as long as the snapshot is kept, and
    the hits of two pages are those of one page of both lengths. Closing the iterator ends the work that waits; a
    thread that has begun a store call finishes it unheard. Raises SearchFailed when no channel could answer,
    MalformedFilter for filters that this snapshot's documents cannot answer.
    """
    searching = _Search(request, snapshot, encoder, executor, settings)
    yield Meta(
        retrieval_id=retrieval_id,
        query=request.q,
        mode=request.mode,
        collection=request.collection,
        understanding=understood(request.q, request.intent),
        snapshot=snapshot.info(),
        budget_seconds=settings.budgets.total_seconds,
    )
    async with aclosing(searching.stages()) as stages:  # 1, 2, 3
        async for stage in stages:
            yield stage
    order = await searching.order()  # 4
    page = order[request.offset : request.offset + request.k]
    hits = 0
    for start, end in _batches(len(page)):
        for hit in await searching.hits(page[start:end], request.offset + start + 1):  # 5
            hits += 1
            yield hit
    following = request.offset + len(page)
    yield Done(
        retrieval_id=retrieval_id,
        hits=hits,
        timings=searching.timings,
        failed_channels=searching.failed,
        next_offset=following if len(order) > following else None,
    )


class _Search:
    """What one search knows so far."""

    def __init__(
        self,
        request: SearchRequest,
        snapshot: Snapshot,
        encoder: QueryEncoder,
        executor: Executor,
        settings: SearchSettings,
    ) -> None:
        self.failed: dict[str, str] = {}
        self.timings: dict[str, float] = {}
        self._request = request
        self._snapshot = snapshot
        self._encoder = encoder
        self._executor = executor
        self._settings = settings
        self._question = Question(request.q)
        self._scope = snapshot.text.fields.scope(request.collection, request.conditions)
        self._passages = PassageReader(snapshot.text)
        self._vector: NDArray[np.float32] | None = None
        self._depth = DEPTH
        while self._depth < min(request.offset + request.k, MAX_DEPTH):
            self._depth *= DEEPER
        self._found = _Found(None, None, NOTHING)
        self._asked = _asked(request)
        self._comparer: Comparer | None = None
        self._compared: Compared | None = None
        self._trail: Trail | None = None
        self._names: asyncio.Future[Names] | None = None
        self._ahead: asyncio.Task[_Outcome[None]] | None = None

    async def stages(self) -> AsyncGenerator[Stage]:
        """Run the channels the mode asks for; a stage as each ends. Raises SearchFailed when none has an answer."""
        async with aclosing(self._text_channels()) as outcomes:
            async for outcome in outcomes:
                yield self._noted(outcome, _found_by(outcome))
        if "embed" in self.failed:
            self.failed["vector"] = f"The question was not embedded: {self.failed.pop('embed')}"
        if self._request.mode != "structured":
            await self._compare()
        if "graph" in self._asked:
            followed = await self._by_graph()
            yield self._noted(followed, len(self._found.graph.scores))
        needed = self._asked - {"graph", "structured"} or self._asked - {"graph"} or self._asked
        reached = self._found.graph.scores if self._request.mode != "rerank" else {}
        if needed <= self.failed.keys() and not reached:
            raise SearchFailed(" ".join(f"{name}: {reason}." for name, reason in sorted(self.failed.items())))

    async def _text_channels(self) -> AsyncGenerator[_Outcome[Any]]:
        """Steps 1 and 2; what the channels find is kept, how they ended is handed out as it happens."""
        budgets, seeding = self._settings.budgets, self._request.mode == "graph"
        running: set[asyncio.Task[_Outcome[Any]]] = set()
        if "graph" in self._asked:
            self._names = asyncio.ensure_future(self._run(self._look_up_names))
        if "structured" in self._asked:
            running.add(_begin("structured", budgets.structured_seconds, self._by_fields()))
        if "keyword" in self._asked or seeding:
            running.add(_begin("keyword", budgets.keyword_seconds, self._by_words()))
        if "vector" in self._asked or seeding:
            running.add(_begin("embed", budgets.embed_seconds, self._run(self._embed)))
        try:
            while running:
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for outcome in sorted((task.result() for task in ended), key=lambda outcome: outcome.name):
                    running |= self._continued(outcome)
                    yield outcome
        finally:
            for task in running:
                task.cancel()

    def _continued(self, outcome: _Outcome[Any]) -> set[asyncio.Task[_Outcome[Any]]]:
        """Keep what a channel found, and begin what waited for it."""
        budgets = self._settings.budgets
        match outcome:
            case _Outcome("embed", _, np.ndarray() as vector):
                return {_begin("vector", budgets.vector_seconds, self._by_vector(vector))}
            case _Outcome("vector", _, list() as found):
                self._found = self._found._replace(vector=found)
            case _Outcome("structured", _, Structured() as structured):
                self._found = self._found._replace(structured=structured)
            case _Outcome("keyword", _, list() as found):
                self._found = self._found._replace(keyword=found)
                if self._names is not None:
                    self._ahead = _begin("ahead", budgets.graph_seconds, self._read_ahead(self._names, found))
        return set()

    async def order(self) -> list[Place]:
        """Every place up to the end of the page, and at least one more if there is one."""
        needed = self._request.offset + self._request.k + 1
        floor = self._request.min_confidence
        wanted = needed if floor is None else FLOOR_PLACES
        while True:
            await self._compare_rest()
            found = self._places(wanted)
            chosen = await self._chosen(found)
            if len(chosen) >= needed or floor is not None:
                return chosen
            if len(found) >= wanted:  # what is left out makes room for as many more
                wanted *= 2
                continue
            full = any(len(given or ()) >= self._depth for given in (self._found.vector, self._found.keyword))
            if not full or self._depth >= MAX_DEPTH or self._request.mode == "graph":
                return chosen
            self._depth *= DEEPER
            await self._deepen()

    async def hits(self, page: Sequence[Place], first_rank: int) -> list[Hit]:
        """The hits at these places, with all their texts."""
        snapshot, trail = self._snapshot, self._trail
        wanted = list(dict.fromkeys(place.passage_id for place in page))
        evidence = trail.passages_of_evidence(wanted) if trail else set()
        outcome = await _within("texts", self._settings.budgets.texts_seconds, self._texts(wanted, evidence))
        self.timings["texts"] = round(self.timings.get("texts", 0.0) + outcome.seconds, 6)
        if outcome.value is None:
            raise SearchFailed(f"The texts of the hits: {outcome.error}")
        found = hits_of(page, first_rank, outcome.value, self._question, trail, snapshot.documents_topic)
        matches = self._found.structured.matches
        matched = [hit.model_copy(update={"matches": list(matches.get(hit.passage_id, ()))}) for hit in found]
        return await self._told_more(matched, outcome.value)

    async def _chosen(self, found: list[Place]) -> list[Place]:
        """The places with their confidence, without those that the request leaves out."""
        evidence = self._evidence()
        if evidence is not None and self._settings.judge is not None:
            found = with_confidence(found, self._request.mode, evidence, self._settings.judge)
        found = likely_enough(found, self._request.min_confidence)
        if self._request.duplicates == "keep":
            return found
        outcome = await _within(
            "texts",
            self._settings.budgets.texts_seconds,
            self._run(lambda: distinct(found, self._request, self._question, self._snapshot.text, self._passages)),
        )
        if outcome.value is None:
            raise SearchFailed(f"The texts of the hits: {outcome.error}")
        return outcome.value

    def _evidence(self) -> Evidence | None:
        """How what was found compares with the question; None in a mode that does not compare, or where it failed."""
        found, compared = self._found, self._compared
        if compared is None or self._comparer is None:
            return None
        decided = found.structured.candidates if found.structured.conclusiveness else ()
        return Evidence(
            compared,
            self._comparer.idf,
            found.graph.gate,
            found.graph.scores,
            meaning=self._vector is not None,
            decided=frozenset(candidate.passage_id for candidate in decided),
        )

    async def _told_more(self, hits: list[Hit], texts: Texts) -> list[Hit]:
        """The hits with what was asked for beside them: factors, contexts."""
        request, snapshot = self._request, self._snapshot
        if request.explain:
            names = None if self._names is None else await self._names
            evidence = self._evidence()
            found, opened_at = self._found.graph, snapshot.text.opened_at
            factors = await self._run(
                lambda: factors_of(hits, texts, snapshot.graph, names, found, evidence, opened_at)
            )
            hits = [hit.model_copy(update={"factors": each}) for hit, each in zip(hits, factors, strict=True)]
        if request.context != "parent":
            chunks = {chunk.id: chunk for of_passage in texts.chunks.values() for chunk in of_passage}
            spans = [span_of(request, chunks[hit.chunk_id]) for hit in hits]
            read = await _within(
                "texts", self._settings.budgets.texts_seconds, self._run(lambda: snapshot.text.chunks_in(spans))
            )
            if read.value is None:
                raise SearchFailed(f"The texts around the hits: {read.error}")
            hits = with_contexts(hits, request, chunks, read.value)
        return hits

    async def _texts(self, wanted: Sequence[str], evidence: set[str]) -> Texts:
        """The passages, the chunks of these and of those that hold evidence, the documents they are of."""
        text = self._snapshot.text
        parents = list(dict.fromkeys([*wanted, *sorted(evidence)]))
        passages, chunks = await asyncio.gather(
            self._run(lambda: self._passages.read(wanted)), self._run(lambda: text.chunks_of_passages(parents))
        )
        keys = list(dict.fromkeys(passage.key for passage in passages.values()))
        return Texts(passages, chunks, await self._run(lambda: text.documents(keys)))

    # Channels.

    def _embed(self) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._encoder.encode([self._request.q])[0]
        return vector

    def _by_words(self) -> Awaitable[list[Candidate]]:
        q, text, depth, scope = self._request.q, self._snapshot.text, self._depth, self._scope
        return self._run(lambda: keyword_channel(text, q, depth, scope))

    def _by_fields(self) -> Awaitable[Structured]:
        """As many whatever the page, so that a deeper one begins with the same."""
        q, text, scope = self._request.q, self._snapshot.text, self._scope
        limit = MAX_HITS if self._request.mode == "structured" else DEPTH
        return self._run(lambda: structured_channel(text, q, limit, scope))

    def _by_vector(self, vector: NDArray[np.float32]) -> Awaitable[list[Candidate]]:
        self._vector = vector
        text, depth, scope = self._snapshot.text, self._depth, self._scope
        return self._run(lambda: vector_channel(text, vector, depth, scope))

    def _look_up_names(self) -> Names:
        return names_in(self._question, self._snapshot.graph, self._request.collection)

    async def _read_ahead(self, naming: Awaitable[Names], keyword: Sequence[Candidate]) -> None:
        """While the question is embedded, read what the graph channel will most likely ask for."""
        graph = self._snapshot.graph
        names = await asyncio.shield(naming)
        leads = (graph.passages_of_document(link.document)[:1] for link in names.links)
        likely = (candidate.passage_id for candidate in keyword[:LIKELY_PARENTS])
        wanted = [*likely, *(graph.passage_id(passage) for lead in leads for passage in lead)]
        await self._run(lambda: self._passages.read(wanted))

    async def _reach(self) -> Findings:
        """The graph starts from the first candidates only, so that a deeper page starts it from the same."""
        snapshot, comparer, compared = self._snapshot, self._comparer, self._compared
        if self._names is None:
            return NOTHING
        if comparer is None or compared is None:
            raise TransientStoreError(
                f"What was found was not compared with the question: {self.failed.get('compare', 'it was not tried')}"
            )
        names = await self._names
        return await self._run(
            lambda: graph_channel(
                self._question,
                snapshot.graph,
                names,
                snapshot.text,
                self._passages,
                self._scope,
                comparer,
                compared,
                always=self._request.mode == "graph",
                hops="keyword" not in self.failed,
                edges=self._request.edges,
                weights=self._settings.terms,
            )
        )

    async def _by_graph(self) -> _Outcome[Findings]:
        snapshot = self._snapshot
        outcome = await _within("graph", self._settings.budgets.graph_seconds, self._reach())
        if outcome.value is not None:
            self._found = self._found._replace(graph=outcome.value)
            self._compared = outcome.value.compared or self._compared
            self._trail = Trail(self._question, snapshot.graph, outcome.value)
        return outcome

    async def _compare(self) -> None:
        """Compare the first candidates of every channel with the question: what the graph starts from."""
        text, request, found = self._snapshot.text, self._request, self._found
        known = best_scores((found.vector or ())[:DEPTH])

        def compare() -> tuple[Comparer, Compared]:
            words = found.keyword is not None or request.mode not in SEEDING_MODES
            comparer = Comparer(text, request.q, request.collection, self._vector, known, words=words)
            return comparer, comparer.of(self._candidates(DEPTH))

        outcome = await _within("compare", self._settings.budgets.graph_seconds, self._run(compare))
        self.timings["compare"] = round(outcome.seconds, 6)
        self._note_failure(outcome)
        if outcome.value is not None:
            self._comparer, self._compared = outcome.value

    async def _compare_rest(self) -> None:
        """Compare what deeper lists brought."""
        comparer, compared = self._comparer, self._compared
        if comparer is None or compared is None:
            return
        rest = [name for name in self._candidates(self._depth) if name not in compared.row_of]
        if rest:
            known, seconds = best_scores(self._found.vector or ()), self._settings.budgets.graph_seconds
            more = await _within("compare", seconds, self._run(lambda: comparer.of(rest, known)))
            self._note_failure(more)
            self._compared = compared if more.value is None else compared.followed_by(more.value)

    def _candidates(self, depth: int) -> list[str]:
        """The passages of the first `depth` candidates of the text channels, and of all structured ones."""
        found = self._found
        lists = ((found.vector or ())[:depth], (found.keyword or ())[:depth], found.structured.candidates)
        return list(dict.fromkeys(candidate.passage_id for each in lists for candidate in each))

    async def _deepen(self) -> None:
        """Ask the text channels again, for more. A channel that now fails keeps what it gave before."""
        began = time.perf_counter()
        budgets = self._settings.budgets
        if self._found.vector is not None and self._vector is not None:
            again = await _within("vector", budgets.vector_seconds, self._by_vector(self._vector))
            self._found = self._found._replace(vector=again.value or self._found.vector)
            self._note_failure(again)
        if self._found.keyword is not None:
            again = await _within("keyword", budgets.keyword_seconds, self._by_words())
            self._found = self._found._replace(keyword=again.value or self._found.keyword)
            self._note_failure(again)
        self.timings["deepen"] = round(self.timings.get("deepen", 0.0) + time.perf_counter() - began, 6)

    def _places(self, first: int) -> list[Place]:
        found, graph, request = self._found, self._snapshot.graph, self._request
        return places(
            Found(
                found.vector or [],
                found.keyword or [],
                found.graph.scores,
                found.structured.candidates,
                found.graph.gate,
                1.0 if request.mode == "structured" else found.structured.conclusiveness,
                self._compared,
                np.zeros(0) if self._comparer is None else self._comparer.idf,
            ),
            lambda passage_id: graph.document_key(graph.document_of_passage(found.graph.numbers[passage_id])),
            mode=request.mode,
            group=request.group,
            fusion=request.fusion,
            weights=_weights(self._settings.fusion, request),
            first=first,
            max_per_document=request.max_per_document,
        )

    # Steps.

    def _run(self, function: Callable[[], Value]) -> Awaitable[Value]:
        return asyncio.get_running_loop().run_in_executor(self._executor, function)

    def _noted(self, outcome: _Outcome[Any], candidates: int) -> Stage:
        """Keep how the step went, and say so."""
        self.timings[outcome.name] = round(outcome.seconds, 6)
        self._note_failure(outcome)
        return Stage(name=outcome.name, seconds=round(outcome.seconds, 6), candidates=candidates, error=outcome.error)

    def _note_failure(self, outcome: _Outcome[Any]) -> None:
        if outcome.error is not None:
            self.failed[outcome.name] = outcome.error


def _asked(request: SearchRequest) -> frozenset[Channel]:
    """The channels that this request asks."""
    match request.mode:
        case "hybrid":
            return frozenset(request.channels or ALL_CHANNELS)
        case "rerank":
            return frozenset({"vector", "graph"})
        case mode:
            return frozenset({mode})


def _weights(weights: FusionWeights, request: SearchRequest) -> FusionWeights:
    """The weights, but for those that the request gives."""
    given = {"vector": request.vector_weight, "keyword": request.keyword_weight, "graph": request.graph_weight}
    return replace(weights, **{name: weight for name, weight in given.items() if weight is not None})


def _found_by(outcome: _Outcome[Any]) -> int:
    """How many candidates a step brought; embedding a question brings one vector."""
    match outcome.value:
        case Structured(candidates):
            return len(candidates)
        case np.ndarray():
            return 1
        case found:
            return len(found or ())


def _begin(name: str, seconds: float, step: Awaitable[Any]) -> asyncio.Task[_Outcome[Any]]:
    return asyncio.create_task(_within(name, seconds, step), name=name)


async def _within(name: str, seconds: float, step: Awaitable[Value]) -> _Outcome[Value]:
    """Wait for a step, at most so long. A store that cannot be read, or an encoder that gives no vector, is an outcome;
    a fault of the program is raised."""
    began = time.perf_counter()
    value: Value | None = None
    error: str | None = None
    try:
        async with asyncio.timeout(seconds):
            value = await step
    except TimeoutError:
        error = f"no answer within {seconds:g} s"
    except (TransientStoreError, EncoderFailure) as broken:
        error = str(broken)[:MAX_REASON_CHARACTERS]
    return _Outcome(name, time.perf_counter() - began, value, error)


def _batches(count: int) -> Iterator[tuple[int, int]]:
    """The spans a page is read in: a short one first, so that its first hits come early."""
    start, size = 0, FIRST_HITS
    while start < count:
        yield start, min(start + size, count)
        start, size = start + size, BATCH_HITS
