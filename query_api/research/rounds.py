"""The rounds of a research: searches, each with its answer, and what to search for next.

The first round asks the sub-questions. A later one follows the names that cited sentences brought, each with the words
of the question that nothing found so far holds (as Trivedi et al. 2023, "IRCoT", with sentences in place of thoughts),
and asks what nothing answered once more, through the graph. It ends when all words of the question are held, when a
round brings neither a new sentence nor a new name, or at a bound.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from indexer.text_analysis import query_terms
from query_api.errors import ApiProblem
from query_api.query.analysis import analysed_question, has_words, normalise_text
from query_api.research.plan import Plan
from schemas.answers import Citation
from schemas.hits import SearchAnswer
from schemas.research import NOTE_URI, ResearchRequest, ResearchStep, Stopped
from schemas.search import MAX_QUERY_CHARACTERS, SearchRequest

SEARCHES, SECONDS = 12, 30.0  # of a whole research
HITS = 5  # of a search: those that its answer is made of
FIRST, FOLLOWING = 6, 2  # sentences of a search in the first round, and in later ones
NAMES_FOLLOWED = 2  # of each search
FOLLOWED = ("person", "work", "organisation", "product", "event", "place")  # types of entities, in this order

Search = Callable[[SearchRequest], Awaitable[SearchAnswer]]


class Query(NamedTuple):
    """`rest` are the words of the question that it asks for still. `name` is that which it follows; `by_graph` where
    it is asked once more."""

    text: str
    rest: tuple[str, ...]
    name: str = ""
    by_graph: bool = False

    @classmethod
    def following(cls, name: str, rest: Iterable[str]) -> Self:
        rest = tuple(rest)
        return cls(f"{name} {' '.join(rest)}"[:MAX_QUERY_CHARACTERS], rest, name)


class Found(NamedTuple):
    """What a search gave: the sentences that none before it gave; where nothing answers, the reason."""

    query: Query
    retrieval_id: str
    citations: list[Citation]
    reason: str


@dataclass
class Rounds:
    """With `notes_left_out` no search finds saved notes."""

    request: ResearchRequest
    plan: Plan
    search: Search
    notes_left_out: bool
    found: list[Found] = field(default_factory=list)
    positions: set[str] = field(default_factory=set)
    stopped: Stopped = "rounds"
    _named: dict[str, None] = field(default_factory=dict)  # by the question
    _followed: set[str] = field(default_factory=set)

    async def run(self) -> AsyncGenerator[ResearchStep]:
        """A step for each search. Raises ApiProblem where the first search does; a later one ends the rounds by it."""
        ends = time.monotonic() + SECONDS
        parts = self.plan.questions
        queries = [Query(each, content_words(each if len(parts) > 1 else self.plan.topic)) for each in parts]
        for number in range(1, self.request.rounds + 1):
            following: list[Query] = []
            for query in queries:
                if len(self.found) >= SEARCHES or time.monotonic() >= ends:
                    self.stopped = "searches" if len(self.found) >= SEARCHES else "seconds"
                    return
                step = ResearchStep(number=0, action="search", round=number, query=query.text, seconds=0)
                try:
                    async with asyncio.timeout_at(asyncio.get_running_loop().time() + ends - time.monotonic()):
                        answer = await self.search(self._request(query))
                except (ApiProblem, TimeoutError) as error:
                    if not self.found and isinstance(error, ApiProblem):
                        raise
                    self.stopped = "failed" if isinstance(error, ApiProblem) else "seconds"
                    yield step.model_copy(update={"detail": str(error) or "It was not answered in time."})
                    return
                following += self._take(query, answer, step)
                yield step
            rest = self.open_words()
            if not rest and any(each.citations for each in self.found):
                self.stopped = "complete"
                return
            named = [name for name in self._named if not set(rest).isdisjoint(name.split())]
            again = [each.query._replace(by_graph=True) for each in self.unanswered() if number == 1]
            queries = [*(Query.following(name, rest) for name in named), *following, *again]
            self._named.clear()
            if not queries:
                self.stopped = "nothing_new"
                return

    def open_words(self) -> list[str]:
        """The content words of the question that no sentence found and no title of one holds, each once."""
        texts = (f"{one.title}\n{one.text}" for each in self.found for one in each.citations)
        return without(content_words(self.plan.topic), *texts)

    def unanswered(self) -> list[Found]:
        """The sub-questions that no search answered."""
        answered = {each.query.text for each in self.found if not each.reason}
        return [each for each in self.found if not each.query.name and each.query.text not in answered]

    def _request(self, query: Query) -> SearchRequest:
        sentences = FOLLOWING if query.name else max(FOLLOWING, min(FIRST, self.request.sentences))
        by_graph = {"graph_method": "pagerank"} if query.by_graph else {}
        parameters = {"answer_sentences": sentences, **self.plan.parameters, **by_graph}
        filters = (f"uri!={NOTE_URI}",) if self.notes_left_out else ()
        return SearchRequest(
            q=query.text, k=HITS, collection=self.request.collection, filter=filters, answer=True, explain=True,
            **parameters,
        )  # fmt: skip

    def _take(self, query: Query, answer: SearchAnswer, step: ResearchStep) -> list[Query]:
        """Note what a search found; of one that follows a name, the sentences that have it, or that are of what is
        called so. What to search for next: other names in these sentences, each with what its sentence leaves open."""
        known = {(one.collection, one.document_id, one.start) for each in self.found for one in each.citations}
        made, name = answer.answer, normalise_text(query.name)
        citations = [
            one
            for one in (made.citations if made else ())
            if (one.collection, one.document_id, one.start) not in known
            and (not name or has_words(f"{one.title} {one.text}", name))
        ]
        self.found.append(Found(query, answer.retrieval_id, citations, (made and made.reason) or ""))
        self.positions.add(answer.snapshot.positions)
        if not query.name and answer.understanding:
            self._named |= dict.fromkeys(each.words for each in answer.understanding.names)
        typed = {each.label: each.type for hit in answer.hits for each in hit.entities if each.type in FOLLOWED}
        by_type = sorted(typed, key=lambda label: FOLLOWED.index(typed[label] or ""))
        question = set(analysed_question(self.request.q).normalised.split())
        following: list[Query] = []
        for one in citations:
            rest = without(query.rest, f"{one.title}\n{one.text}")
            for label in (one.title, *(each for each in by_type if has_words(one.text, normalise_text(each)))):
                words = normalise_text(label)
                is_new = words not in self._followed and not set(words.split()) <= question
                if rest and is_new and len(following) < NAMES_FOLLOWED:
                    self._followed.add(words)
                    following.append(Query.following(label, rest))
        step.names = [each.name for each in following]
        step.retrieval_id, step.sentences, step.detail = answer.retrieval_id, len(citations), self.found[-1].reason
        step.seconds = answer.timings.get("total", 0.0)
        return following


def content_words(text: str) -> tuple[str, ...]:
    return tuple(word for word in dict.fromkeys(analysed_question(text).words) if query_terms(word))


def without(words: Iterable[str], *texts: str) -> list[str]:
    """Those that none of the texts holds."""
    held = {term for text in texts for term in query_terms(text)}
    return [word for word in words if held.isdisjoint(query_terms(word))]
