"""The rounds of a research: searches, each with its answer, and what to search for next.

The first round asks the sub-questions. A later one follows the names that cited sentences brought, each with the words
of the question that nothing found so far holds (as Trivedi et al. 2023, "IRCoT", with sentences in place of thoughts),
and asks what nothing answered once more, through the graph. It ends when all words of the question are held, when a
round brings neither a new sentence nor a new name, or at a bound.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from indexer.text_analysis import query_terms
from query_api.errors import ApiProblem
from query_api.query.analysis import Question, analysed_question, normalise_text
from query_api.research.plan import Plan
from schemas.answers import Citation
from schemas.hits import SearchAnswer
from schemas.research import NOTE_URI, ResearchRequest, ResearchStep, Stopped
from schemas.search import MAX_QUERY_CHARACTERS, SearchRequest

SEARCHES, SECONDS = 12, 30.0  # of a whole research
HITS = 5  # of a search: those that its answer is made of
NAMES_FOLLOWED = 2  # of each search
FOLLOWED = ("person", "work", "organisation", "product", "event", "place")  # types of entities, in this order

Search = Callable[[SearchRequest], Awaitable[SearchAnswer]]


class Query(NamedTuple):
    """`name` where it follows one; `by_graph` where it is asked once more."""

    text: str
    name: str = ""
    by_graph: bool = False


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
    _names: set[str] = field(default_factory=set)  # that were found

    async def run(self) -> AsyncGenerator[ResearchStep]:
        """A step for each search. Raises what the first search raises; what a later one raises ends the rounds."""
        ends = time.monotonic() + SECONDS
        queries, asked = [Query(each) for each in self.plan.questions], set[Query]()
        for number in range(1, self.request.rounds + 1):
            asked |= set(queries)
            names: list[str] = []
            for query in queries:
                if len(self.found) >= SEARCHES or time.monotonic() >= ends:
                    self.stopped = "searches" if len(self.found) >= SEARCHES else "seconds"
                    return
                step = ResearchStep(number=0, action="search", round=number, query=query.text, seconds=0)
                try:
                    async with asyncio.timeout_at(asyncio.get_running_loop().time() + ends - time.monotonic()):
                        answer = await self.search(self._request(query))
                except (ApiProblem, TimeoutError) as error:
                    if not self.found:
                        raise
                    self.stopped = "failed" if isinstance(error, ApiProblem) else "seconds"
                    yield step.model_copy(update={"detail": str(error) or "It was not answered in time."})
                    return
                self._take(query, answer, step)
                names += step.names[:NAMES_FOLLOWED]
                yield step
            rest = self.open_words()
            if not rest and any(each.citations for each in self.found):
                self.stopped = "complete"
                return
            names = [name for name in self._named if not set(rest).isdisjoint(name.split())] + names
            following = [Query(f"{name} {' '.join(rest)}"[:MAX_QUERY_CHARACTERS], name) for name in names]
            following += [each.query._replace(by_graph=True) for each in self.unanswered()]
            queries = [each for each in following if each not in asked]
            if not queries:
                self.stopped = "nothing_new"
                return

    def open_words(self) -> list[str]:
        """The content words of the question that no sentence found and no title of one holds, each once."""
        texts = (f"{one.title}\n{one.text}" for each in self.found for one in each.citations)
        held = {term for text in texts for term in query_terms(text)}
        words = dict.fromkeys(analysed_question(self.plan.topic).words)
        return [word for word in words if (terms := query_terms(word)) and held.isdisjoint(terms)]

    def unanswered(self) -> list[Found]:
        """The sub-questions that no search answered."""
        answered = {each.query.text for each in self.found if not each.reason}
        first = {each.query.text: each for each in reversed(self.found) if not each.query.name}
        return [each for text, each in reversed(first.items()) if text not in answered]

    def _request(self, query: Query) -> SearchRequest:
        parameters = {**self.plan.parameters, **({"graph_method": "pagerank"} if query.by_graph else {})}
        filters = (f"uri!={NOTE_URI}",) if self.notes_left_out else ()
        return SearchRequest(
            q=query.text, k=HITS, collection=self.request.collection, filter=filters, answer=True, explain=True,
            **parameters,
        )  # fmt: skip

    def _take(self, query: Query, answer: SearchAnswer, step: ResearchStep) -> None:
        """Note what a search found; of one that follows a name, the sentences that have it, or of which the title
        is."""
        known = {(one.collection, one.document_id, one.start) for each in self.found for one in each.citations}
        made, name = answer.answer, normalise_text(query.name)
        fresh = [
            one
            for one in (made.citations if made else ())
            if (one.collection, one.document_id, one.start) not in known
            and (not name or f" {name} " in f" {normalise_text(f'{one.title} {one.text}')} ")
        ]
        found = Found(query, answer.retrieval_id, fresh, (made and made.reason) or "")
        self.found.append(found)
        self.positions.add(answer.snapshot.positions)
        if not query.name and answer.understanding:
            self._named |= dict.fromkeys(each.words for each in answer.understanding.names)
        step.names = self._new_names(found, answer)
        step.retrieval_id, step.sentences, step.detail = answer.retrieval_id, len(fresh), found.reason
        step.seconds = answer.timings.get("total", 0.0)

    def _new_names(self, found: Found, answer: SearchAnswer) -> list[str]:
        """The entities in these sentences, and their titles, that neither the question nor a sentence before named."""
        question = analysed_question(self.request.q)
        typed = {each.label: each.type for hit in answer.hits for each in hit.entities if each.type in FOLLOWED}
        by_type = sorted(typed, key=lambda label: FOLLOWED.index(typed[label] or ""))
        names: dict[str, str] = {}
        for one in found.citations:
            sentence = f" {normalise_text(one.text)} "
            for label in (one.title, *by_type):
                name = normalise_text(label)
                if name and (label == one.title or f" {name} " in sentence) and not _has(question, name):
                    names.setdefault(name, label)
        fresh = [label for name, label in names.items() if name not in self._names]
        self._names |= names.keys()
        return fresh


def _has(question: Question, name: str) -> bool:
    """Whether the question has all words of a name."""
    return set(name.split()) <= set(question.normalised.split())
