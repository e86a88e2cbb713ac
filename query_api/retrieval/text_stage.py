"""The text channels of one search, in parallel, each within its budget; asked again for more when a page lies deep."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from query_api.index.snapshot import Candidate
from query_api.query.field_constraints import Recognised
from query_api.retrieval.fusion import DEEPER, DEPTH
from query_api.retrieval.retrievers.keyword import keyword_channel
from query_api.retrieval.retrievers.structured import NOTHING_ASKED, Structured, recognised_fields, structured_channel
from query_api.retrieval.retrievers.vector import vector_channel
from query_api.retrieval.stages import Account, Outcome, Reading, begin, within
from schemas.filters import MAX_HITS

MAX_DEPTH = 16_384


class TextChannels:
    """What the vector, the keyword and the structured channel found, each list best first; None for a channel that was
    not asked or did not answer. `question_vector` is None until the question is embedded.

    Two run at a time: embedding and the vector channel on one core; the keyword, then the structured channel on the
    other. More would wait for each other, one interpreter that they share.
    """

    def __init__(self, reading: Reading, asked: Collection[str]) -> None:
        self.vector: Sequence[Candidate] | None = None
        self.keyword: Sequence[Candidate] | None = None
        self.structured: Structured = NOTHING_ASKED
        self.question_vector: NDArray[np.float32] | None = None
        self._reading = reading
        self._asked = asked
        self._recognised: Recognised | None = None
        self._embedded: asyncio.Future[NDArray[np.float32]] | None = None
        self._nearest: asyncio.Future[list[Candidate]] | None = None
        self._depth = DEPTH
        while self._depth < min(reading.request.offset + reading.request.k, MAX_DEPTH):
            self._depth *= DEEPER

    def embed(self) -> None:
        """Embed the question from now on, beside what is done before `outcomes`."""
        if "vector" in self._asked and self._embedded is None:
            self._embedded = self._embedded_then_searched()

    async def recognised(self) -> Recognised | None:
        """What the structured channel will look for, so that it need not find that out again; None where it is not
        asked, or this took too long."""
        if "structured" in self._asked and self._recognised is None:
            q, text, scope = self._reading.request.q, self._reading.snapshot.text, self._reading.scope
            looking = self._reading.run(lambda: recognised_fields(text, q, scope))
            outcome = await within("fields", self._reading.settings.budgets.structured_seconds, looking)
            self._recognised = outcome.value
        return self._recognised

    async def outcomes(self) -> AsyncGenerator[Outcome[Any]]:
        """What the channels find is kept, how they ended is handed out as it happens. Closing ends what waits."""
        budgets = self._reading.settings.budgets
        running: set[asyncio.Task[Outcome[Any]]] = set()
        self.embed()
        if self._embedded is not None:
            running.add(begin("embed", budgets.embed_seconds, self._embedded))
        if "keyword" in self._asked:
            running.add(begin("keyword", budgets.keyword_seconds, self._by_words()))
        else:
            running |= self._after_words()
        try:
            while running:
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for outcome in sorted((task.result() for task in ended), key=lambda outcome: outcome.name):
                    running |= self._continued(outcome)
                    yield outcome
        finally:
            for task in running:
                task.cancel()
            if self._nearest is not None:
                self._nearest.cancel()

    def candidates(self, depth: int | None = None) -> list[str]:
        """The passages of the first candidates of both lists, of all for None, and of all structured ones."""
        lists = ((self.vector or ())[:depth], (self.keyword or ())[:depth], self.structured.candidates)
        return list(dict.fromkeys(candidate.passage_id for each in lists for candidate in each))

    @property
    def may_give_more(self) -> bool:
        return self._depth < MAX_DEPTH and any(len(given or ()) >= self._depth for given in (self.vector, self.keyword))

    async def deepen(self, account: Account) -> None:
        """Ask the vector and the keyword channel again, for more. One that now fails keeps what it gave before."""
        began = time.perf_counter()
        budgets = self._reading.settings.budgets
        self._depth *= DEEPER
        if self.vector is not None and self.question_vector is not None:
            again = await within("vector", budgets.vector_seconds, self._by_vector(self.question_vector))
            self.vector = again.value or self.vector
            account.note_failure(again)
        if self.keyword is not None:
            again = await within("keyword", budgets.keyword_seconds, self._by_words())
            self.keyword = again.value or self.keyword
            account.note_failure(again)
        account.add("deepen", time.perf_counter() - began)

    def _continued(self, outcome: Outcome[Any]) -> set[asyncio.Task[Outcome[Any]]]:
        """Keep what a channel found, and begin what waited for it."""
        match outcome:
            case Outcome("embed", _, np.ndarray() as vector) if self._nearest is not None:
                self.question_vector = vector
                return {begin("vector", self._reading.settings.budgets.vector_seconds, self._nearest)}
            case Outcome("vector", _, list() as found):
                self.vector = found
            case Outcome("structured", _, Structured() as structured):
                self.structured = structured
            case Outcome("keyword", _, found):
                self.keyword = found
                return self._after_words()
        return set()

    def _after_words(self) -> set[asyncio.Task[Outcome[Any]]]:
        if "structured" not in self._asked:
            return set()
        return {begin("structured", self._reading.settings.budgets.structured_seconds, self._by_fields())}

    def _embedded_then_searched(self) -> asyncio.Future[NDArray[np.float32]]:
        """The question's vector. Its thread goes on to the vector channel by itself: the event loop, which has the
        channels by words to run meanwhile, would let it wait."""
        loop, reading, depth = asyncio.get_running_loop(), self._reading, self._depth
        embedded: asyncio.Future[NDArray[np.float32]] = loop.create_future()

        def run() -> list[Candidate]:
            vector: NDArray[np.float32] = reading.encoder.encode_queries([reading.request.q])[0]
            loop.call_soon_threadsafe(lambda: None if embedded.done() else embedded.set_result(vector))
            unheard = embedded.cancelled()
            return [] if unheard else vector_channel(reading.snapshot.text, vector, depth, reading.scope)

        def ended(nearest: asyncio.Future[list[Candidate]]) -> None:
            if nearest.cancelled():
                embedded.cancel()
            elif (error := nearest.exception()) is not None and not embedded.done():
                embedded.set_exception(error)

        self._nearest = loop.run_in_executor(reading.executor, run)
        self._nearest.add_done_callback(ended)
        return embedded

    def _by_words(self) -> Awaitable[list[Candidate]]:
        q, text, depth, scope = self._reading.request.q, self._reading.snapshot.text, self._depth, self._reading.scope
        return self._reading.run(lambda: keyword_channel(text, q, depth, scope))

    def _by_fields(self) -> Awaitable[Structured]:
        """As many whatever the page, so that a deeper one begins with the same."""
        q, text, scope = self._reading.request.q, self._reading.snapshot.text, self._reading.scope
        limit = MAX_HITS if self._reading.request.mode == "structured" else DEPTH
        known = self._recognised
        return self._reading.run(lambda: structured_channel(text, q, limit, scope, known))

    def _by_vector(self, vector: NDArray[np.float32]) -> Awaitable[list[Candidate]]:
        text, depth, scope = self._reading.snapshot.text, self._depth, self._reading.scope
        return self._reading.run(lambda: vector_channel(text, vector, depth, scope))
