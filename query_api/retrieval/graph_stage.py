"""From what the text channels found into the graph: compared with the question first, then followed."""

import asyncio
from collections.abc import Awaitable
from functools import cached_property

from indexer.errors import TransientStoreError
from indexer.text_analysis import terms_of_question
from query_api.query.entity_linking import Names, names_in
from query_api.query.question import Question, WordWeights
from query_api.query.understanding import hops_of
from query_api.retrieval.comparison import Compared, Comparer, best_scores
from query_api.retrieval.fusion import DEPTH
from query_api.retrieval.retrievers.graph import graph_channel
from query_api.retrieval.retrievers.graph_results import NOTHING, Findings
from query_api.retrieval.retrievers.graph_seeds import ParentReader
from query_api.retrieval.retrievers.residual_queries import Residuals
from query_api.retrieval.stages import Account, Outcome, Reading, Value, within
from query_api.retrieval.text_stage import TextChannels


class Following:
    """How what was found compares with the question, None as long as it has not been; and what the graph reached.

    Both begin from the first candidates only, so that a deeper page begins from the same.
    """

    def __init__(self, reading: Reading, question: Question, account: Account) -> None:
        self.comparer: Comparer | None = None
        self.compared: Compared | None = None
        self.findings: Findings = NOTHING
        self._reading = reading
        self._question = question
        self._account = account
        self._names: asyncio.Future[Names] | None = None
        self._residuals = Residuals(question, reading.snapshot.graph, reading.snapshot.text, reading.scope)

    async def names(self) -> Names | None:
        """What the question names, where that was looked up."""
        return None if self._names is None else await self._names

    @property
    def idf(self) -> dict[int, float]:
        """What each term of the question tells; all the same where nothing was compared."""
        if self.comparer is None:
            return dict.fromkeys(terms_of_question(self._question.text), 1.0)
        return dict(zip(self.comparer.terms, self.comparer.idf.tolist(), strict=True))

    async def compare(self, channels: TextChannels) -> None:
        """Compare the first candidates of every channel with the question."""
        text, request = self._reading.snapshot.text, self._reading.request
        known = best_scores((channels.vector or ())[:DEPTH])

        def first() -> tuple[Comparer, Compared]:
            vector = channels.question_vector
            words = channels.keyword is not None or request.mode == "vector"  # which compares for confidence only
            comparer = Comparer(text, request.q, request.collection, vector, known, words=words)
            return comparer, comparer.of(channels.candidates(DEPTH))

        outcome = await self._within_budget("compare", self._reading.run(first))
        self._account.timings["compare"] = round(outcome.seconds, 6)
        self._account.note_failure(outcome)
        if outcome.value is not None:
            self.comparer, self.compared = outcome.value

    async def compare_rest(self, channels: TextChannels) -> None:
        """Compare what deeper lists brought."""
        comparer, compared = self.comparer, self.compared
        if comparer is None or compared is None:
            return
        rest = [name for name in channels.candidates() if name not in compared.row_of]
        if rest:
            known = best_scores(channels.vector or ())
            more = await self._within_budget("compare", self._reading.run(lambda: comparer.of(rest, known)))
            self._account.note_failure(more)
            self.compared = compared if more.value is None else compared.followed_by(more.value)

    async def follow(self) -> Outcome[Findings]:
        outcome = await self._within_budget("graph", self._reach())
        if outcome.value is not None:
            self.findings = outcome.value
            self.compared = outcome.value.compared or self.compared
        return outcome

    async def _reach(self) -> Findings:
        """Raises TransientStoreError."""
        reading, comparer, compared = self._reading, self.comparer, self.compared
        if comparer is None or compared is None:
            reason = self._account.failed.get("compare", "it was not tried")
            raise TransientStoreError(f"What was found was not compared with the question: {reason}")
        names = await self.looking_up_names()
        return await reading.run(
            lambda: graph_channel(
                self._question,
                reading.snapshot.graph,
                names,
                reading.snapshot.text,
                self._parents,
                self._hops,
                reading.scope,
                comparer,
                compared,
                always=reading.request.mode == "graph",
                edges=reading.request.edges,
                weights=reading.settings.terms,
                method=reading.request.graph_method,
                hops=hops_of(reading.request),
                linking=reading.snapshot.linking,
            )
        )

    def looking_up_names(self) -> asyncio.Future[Names]:
        """What the question names, looked up once."""
        graph, collection = self._reading.snapshot.graph, self._reading.request.collection
        if self._names is None:
            given = self._reading.request.names
            looking = self._reading.run(lambda: names_in(self._question, graph, collection, given))
            self._names = asyncio.ensure_future(looking)
        return self._names

    @property
    def _hops(self) -> Residuals | None:
        """None where the keyword index has failed: it is not asked again."""
        return None if "keyword" in self._account.failed else self._residuals

    @cached_property
    def _parents(self) -> ParentReader:
        reading = self._reading
        words = Comparer(reading.snapshot.text, reading.request.q, reading.request.collection, None, {}, words=True)
        weights = WordWeights.of(self._question, words.weights_of)
        return ParentReader(self._question, reading.snapshot.graph, reading.passages, weights)

    async def _within_budget(self, name: str, step: Awaitable[Value]) -> Outcome[Value]:
        return await within(name, self._reading.settings.budgets.graph_seconds, step)
