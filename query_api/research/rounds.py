"""The rounds of a research: searches, each with its answer, and what to search for next.

A round's searches are the sub-questions, at first; later a name that a cited sentence brings, with the words of the
question that nothing found so far holds (after Trivedi et al. 2023, "IRCoT", with sentences of documents in place of
thoughts), and once more, through the graph, each sub-question that nothing answers. It ends when every word of the
question is held, when a round brings neither a new sentence nor a new name, or at a bound.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from indexer.text_analysis import query_terms
from query_api.errors import ApiProblem
from query_api.query.analysis import Question, analysed_question, normalise_text
from query_api.research.plan import Plan
from schemas.answers import Citation
from schemas.hits import SearchAnswer
from schemas.research import NOTE_URI, ResearchRequest, ResearchStep, Stopped
from schemas.search import SearchRequest

SEARCHES = 12  # of a whole research
NAMES_EACH = 2  # that a search's sentences give to the next round
HITS = 5  # of each search: those that its answer is made of
GRAPH = {"graph_method": "pagerank"}

Search = Callable[[SearchRequest], Awaitable[SearchAnswer]]


class Query(NamedTuple):
    text: str
    about: Literal["question", "entity"]
    heading: str
    by_graph: bool = False


class Found(NamedTuple):
    """What a search gave: the sentences that none before it gave; where nothing answers, the reason."""

    query: Query
    retrieval_id: str
    citations: list[Citation]
    reason: str


@dataclass
class Rounds:
    """`notes_left_out`: whether there are saved notes, which no search is to find. `run` is to be read to its end."""

    request: ResearchRequest
    plan: Plan
    search: Search
    notes_left_out: bool
    clock: Callable[[], float] = time.monotonic
    found: list[Found] = field(default_factory=list)
    stopped: Stopped = "rounds"
    round: int = 0
    positions: set[str] = field(default_factory=set)
    _names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._question = analysed_question(self.request.q)

    async def run(self) -> AsyncGenerator[ResearchStep]:
        """A step for each search. Raises what the first search raises; what a later one raises ends the rounds."""
        queries = [Query(each, "question", each) for each in self.plan.questions]
        asked = set(queries)
        while queries and self.round < self.request.rounds:
            self.round += 1
            following: list[Query] = []
            for query in queries:
                if bound := self._bound():
                    self.stopped = bound
                    return
                step, further = await self._searched(query)
                yield step
                if self.stopped == "overloaded":
                    return
                following += further
            if not self.open_words():
                self.stopped = "complete"
                return
            queries = [each for each in dict.fromkeys(self._next(following)) if each not in asked]
            asked |= set(queries)
        self.stopped = "rounds" if queries else "nothing_new"

    def open_words(self) -> list[str]:
        """The content words of the question that neither a sentence found nor its title holds, each once."""
        held = {
            term for each in self.found for one in each.citations for term in query_terms(f"{one.title}\n{one.text}")
        }
        words = dict.fromkeys(self._question.words)
        return [word for word in words if (terms := query_terms(word)) and held.isdisjoint(terms)]

    def unanswered(self) -> list[Found]:
        """The sub-questions that no search answered."""
        answered = {each.query.heading for each in self.found if not each.reason}
        first = {each.query.heading: each for each in reversed(self.found) if each.query.about == "question"}
        return [each for heading, each in reversed(first.items()) if heading not in answered]

    def _bound(self) -> Stopped | None:
        if len(self.found) >= SEARCHES:
            return "searches"
        return "seconds" if self._left() <= 0 else None

    def _left(self) -> float:
        return self._began + self.request.seconds - self.clock()

    async def _searched(self, query: Query) -> tuple[ResearchStep, list[Query]]:
        began, step = (
            self.clock(),
            ResearchStep(number=0, action="search", round=self.round, query=query.text, seconds=0),
        )
        further: list[Query] = []
        try:
            answer = await asyncio.wait_for(self.search(self._request(query)), max(self._left(), 0.1))
        except (ApiProblem, TimeoutError) as error:
            if not self.found and isinstance(error, ApiProblem):
                raise
            step.detail = str(error) or "It was not answered in time."
            self.stopped = "overloaded" if isinstance(error, ApiProblem) else "seconds"
            self.found.append(Found(query, "", [], step.detail))
        else:
            self.positions.add(answer.snapshot.positions)
            one = self._taken(query, answer)
            names = list(self._new_names(one, answer))
            further = self._following(query, one, names)
            self._names.update(map(normalise_text, names))
            step.retrieval_id, step.hits, step.sentences = answer.retrieval_id, len(answer.hits), len(one.citations)
            step.entities, step.detail = names, one.reason
        step.seconds = round(self.clock() - began, 4)
        return step, further

    def _request(self, query: Query) -> SearchRequest:
        filters = (*self.request.filter, f"uri!={NOTE_URI}") if self.notes_left_out else self.request.filter
        asked = {"k": HITS, **self.plan.parameters, **(GRAPH if query.by_graph else {})}
        return SearchRequest(
            q=query.text, collection=self.request.collection, filter=filters, answer=True, explain=True, **asked
        )

    def _taken(self, query: Query, answer: SearchAnswer) -> Found:
        known = {(one.collection, one.document_id, one.start) for each in self.found for one in each.citations}
        made = answer.answer
        citations = [] if made is None else made.citations
        fresh = [one for one in citations if (one.collection, one.document_id, one.start) not in known]
        found = Found(query, answer.retrieval_id, fresh, (made and made.reason) or "")
        self.found.append(found)
        return found

    def _new_names(self, one: Found, answer: SearchAnswer) -> Iterator[str]:
        """The entities of these sentences, and their titles, that the question does not name and no search followed."""
        entities = {hit.rank: [each.label for each in hit.entities if each.type != "time"] for hit in answer.hits}
        for citation in one.citations:
            sentence = f" {normalise_text(citation.text)} "
            for label in dict.fromkeys([citation.title, *entities.get(citation.hit, ())]):
                name = normalise_text(label)
                is_there = label == citation.title or f" {name} " in sentence
                if name and is_there and name not in self._names and not _names(self._question, name):
                    yield label

    def _following(self, query: Query, one: Found, names: Sequence[str]) -> list[Query]:
        """Texts are completed by `_next`, once the whole round is known."""
        following = [Query(name, "entity", name) for name in names][:NAMES_EACH]
        if one.reason and not query.by_graph and query.about == "question":
            following.append(query._replace(by_graph=True))
        return following

    def _next(self, following: Sequence[Query]) -> Iterator[Query]:
        rest = " ".join(self.open_words())
        for query in following:
            yield query._replace(text=f"{query.text} {rest}") if query.about == "entity" else query


def _names(question: Question, name: str) -> bool:
    """Whether the question holds the name, or all its words."""
    return question.names(name) or set(name.split()) <= set(question.normalised.split())
