"""The stages of a search, each within its budget: analyse, embed, text channels, exact scores, graph, re-rank, answer.

Times and fields of a question are looked up only for the structured channel, which is the one that reads documents'
fields.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.errors import TransientStoreError
from query_api.answers.answer import compose
from query_api.answers.related_concepts import related_concepts
from query_api.answers.sentences import Texts
from query_api.index.text.field_index import Span, words_of
from query_api.index.text.text_segments import Candidate
from query_api.query.analysis import topic_of
from query_api.query.dates import (
    EARLIEST,
    LATEST,
    RelativeTime,
    asks_for_documents,
    asks_for_newest,
    relative_time,
    to_milliseconds,
)
from query_api.query.entity_linking import LinkedNames, link_names, shown_names
from query_api.query.field_constraints import FieldCues, Phrase, Recognised, shown_fields
from query_api.query.phrases import unquoted
from query_api.query.suggestions import suggested
from query_api.rerankers.reranker import ServedReranker
from query_api.retrieval.exact_scores import ExactScorer, ScoredCandidates, best_scores, term_idf
from query_api.retrieval.fusion import DEEPER, DEPTH, RankedPassage
from query_api.retrieval.graph_channel import search_graph
from query_api.retrieval.retrievers.community_retriever import NO_COMMUNITIES, CommunityResults, search_communities
from query_api.retrieval.retrievers.graph_scoring import GraphResults
from query_api.retrieval.retrievers.structured import NO_CONSTRAINTS, Structured, recognised_fields, structured_search
from query_api.retrieval.search_context import Diagnostics, Outcome, SearchContext, run_with_timeout
from schemas.answers import Answer
from schemas.filters import MAX_HITS
from schemas.hits import FieldInQuestion, Hit, NamedInQuestion, PeriodInQuestion

MAX_DEPTH = 16_384
RERANK = "rerank"
Embedding = asyncio.Task[Outcome[NDArray[np.float32]]]
_NEXT = {"embed": ("vector", "global"), "keyword": ("structured",)}


class Analysis(NamedTuple):
    """What a question names in the graph, and what it asks of documents' fields; None for what was not looked up or
    took too long."""

    names: LinkedNames | None
    fields: Recognised | None

    def shown(self, context: SearchContext) -> tuple[tuple[NamedInQuestion, ...], tuple[FieldInQuestion, ...]]:
        """Names and fields for a person to read."""
        names = () if self.names is None else shown_names(self.names, context.snapshot.graph)
        return names, () if self.fields is None else shown_fields(self.fields)


async def filter_by_query_date(context: SearchContext) -> tuple[SearchContext, PeriodInQuestion | None]:
    """The context with the scope narrowed to the time that the question asks for documents by, and that time. Where no
    document is from it, all are searched; where it may be what the question is about, its documents are raised and none
    is left out."""
    if "structured" not in context.channels:
        return context, None
    question = unquoted(context.request.q)
    context = replace(context, newest_first=asks_for_newest(question))
    time = relative_time(question, context.now)
    if time is None:
        return context, None
    fields, words, scope = context.snapshot.text.fields, words_of(question), context.scope
    inside = [at for at, word in enumerate(words) if time.start <= word.start < time.end]
    is_cued = Phrase(FieldCues(question, words), inside[0], inside[-1] + 1).cued
    narrowed, used_fields = await context.run(lambda: fields.within(_span(time), scope, is_cued))
    period = PeriodInQuestion(
        words=question[time.start : time.end],
        since=None if time.since is None else time.since.isoformat(),
        before=None if time.until is None else time.until.isoformat(),
        fields=used_fields,
        documents=len(narrowed.documents or ()),
        filters=bool(narrowed.documents)
        and asks_for_documents(question, time, of_field=any(map(is_cued, used_fields))),
    )
    if period.filters:
        return replace(context, scope=narrowed), period
    return replace(context, raised=narrowed.documents or frozenset()), period


def _span(time: RelativeTime) -> Span:
    def limit(moment: datetime | None, unbounded: int) -> int:
        return unbounded if moment is None else to_milliseconds(moment)

    return Span(limit(time.since, EARLIEST), limit(time.until, LATEST))


async def analyse(context: SearchContext) -> Analysis:
    """The names and fields of a question, each within the budget of the channel that uses them."""
    request, snapshot, budgets = context.request, context.snapshot, context.settings.budgets
    names: LinkedNames | None = None
    fields: Recognised | None = None
    if {"graph", "global"} & context.channels:
        linking = context.run(lambda: linked_names(context))
        names = (await run_with_timeout("names", budgets.graph_seconds, linking)).value
    if "structured" in context.channels:
        recognising = context.run(lambda: recognised_fields(snapshot.text, request.q, context.scope))
        fields = (await run_with_timeout("fields", budgets.structured_seconds, recognising)).value
    return Analysis(names, fields)


def linked_names(context: SearchContext) -> LinkedNames:
    """What the question names in the graph, its topic alone in mode `global`; or what the request says that it does.
    Blocks."""
    request, snapshot = context.request, context.snapshot
    aliases = snapshot.curation.aliases
    question = topic_of(context.question) if request.mode == "global" else context.question
    return link_names(question, snapshot.graph, request.collection, request.names, aliases)


def embed(context: SearchContext) -> Embedding | None:
    """Begin to embed the question, beside its analysis; None where no vector is needed."""
    if not {"vector", "global"} & context.text_channels:
        return None

    async def embedded() -> NDArray[np.float32]:
        vectors = await context.run(lambda: context.encoder.encode_queries([context.request.q]))
        vector: NDArray[np.float32] = vectors[0]
        return vector

    seconds = context.settings.budgets.embed_seconds
    return asyncio.create_task(run_with_timeout("embed", seconds, embedded()), name="embed")


class TextResults(NamedTuple):
    """What the text channels found, best first; None for a channel that was not searched or failed. `depth` is the
    limit of the vector and the keyword channel."""

    vector: Sequence[Candidate] | None
    keyword: Sequence[Candidate] | None
    structured: Structured
    communities: CommunityResults
    question_vector: NDArray[np.float32] | None
    depth: int

    @classmethod
    def from_outcomes(cls, outcomes: Sequence[Outcome[Any]], context: SearchContext) -> "TextResults":
        found = {outcome.name: outcome.value for outcome in outcomes}
        structured = found.get("structured") or NO_CONSTRAINTS
        communities = found.get("global") or NO_COMMUNITIES
        depth = _first_depth(context)
        return cls(found.get("vector"), found.get("keyword"), structured, communities, found.get("embed"), depth)

    def candidates(self, depth: int | None = None) -> list[str]:
        """The passages of the first candidates of both lists, of all for None, and of all structured ones."""
        lists = ((self.vector or ())[:depth], (self.keyword or ())[:depth], self.structured.candidates)
        return list(dict.fromkeys(candidate.passage_id for each in lists for candidate in each))

    @property
    def may_give_more(self) -> bool:
        return self.depth < MAX_DEPTH and any(len(found or ()) >= self.depth for found in (self.vector, self.keyword))


async def search_texts(
    context: SearchContext, analysis: Analysis, embedding: Embedding | None
) -> AsyncGenerator[Outcome[Any]]:
    """The outcome of each text channel, as it ends; closing cancels what waits.

    Two run at a time: vector after embedding, structured after keyword. More would wait for each other's interpreter.
    """
    budgets, q, text, scope = context.settings.budgets, context.request.q, context.snapshot.text, context.scope
    depth = _first_depth(context)
    limit = MAX_HITS if context.request.mode == "structured" else DEPTH  # whatever the page
    steps: Mapping[str, tuple[float, Callable[[Any], Awaitable[Any]]]] = {
        "vector": (
            budgets.vector_seconds,
            lambda vector: context.run(lambda: text.vector_search(vector, depth, scope)),
        ),
        "keyword": (budgets.keyword_seconds, lambda _: context.run(lambda: context.search_words(depth))),
        "structured": (
            budgets.structured_seconds,
            lambda _: context.run(lambda: structured_search(text, q, limit, scope, analysis.fields)),
        ),
        "global": (
            budgets.graph_seconds,
            lambda vector: context.run(
                lambda: search_communities(context.snapshot, context.question, analysis.names, vector, scope)
            ),
        ),
    }

    def begin(name: str, value: Any = None) -> set[asyncio.Task[Outcome[Any]]]:
        if name not in context.text_channels:
            return set()
        seconds, step = steps[name]
        return {asyncio.create_task(run_with_timeout(name, seconds, step(value)), name=name)}

    running = begin("keyword") or begin("structured")
    if embedding is not None:
        running.add(embedding)
    try:
        while running:
            ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for outcome in sorted((task.result() for task in ended), key=lambda outcome: outcome.name):
                for following in _NEXT.get(outcome.name, ()):
                    if following != "vector" or outcome.value is not None:
                        running |= begin(following, outcome.value)
                yield outcome
    finally:
        for task in running:
            task.cancel()


async def deepen(context: SearchContext, text: TextResults, diagnostics: Diagnostics) -> TextResults:
    """Ask the vector and the keyword channel again, for more. One that now fails keeps its earlier candidates."""
    began = time.perf_counter()
    budgets, tables, scope, depth = context.settings.budgets, context.snapshot.text, context.scope, text.depth * DEEPER
    vector = text.question_vector
    if text.vector is not None and vector is not None:
        searching = context.run(lambda: tables.vector_search(vector, depth, scope))
        outcome = await run_with_timeout("vector", budgets.vector_seconds, searching)
        text = text._replace(vector=outcome.value or text.vector)
        diagnostics.note_failure(outcome)
    if text.keyword is not None:
        searching = context.run(lambda: context.search_words(depth))
        outcome = await run_with_timeout("keyword", budgets.keyword_seconds, searching)
        text = text._replace(keyword=outcome.value or text.keyword)
        diagnostics.note_failure(outcome)
    diagnostics.add("deepen", time.perf_counter() - began)
    return text._replace(depth=depth)


def _first_depth(context: SearchContext) -> int:
    """How many candidates the page of the request needs."""
    depth = DEPTH
    while depth < min(context.request.offset + context.request.k, MAX_DEPTH):
        depth *= DEEPER
    return depth


async def compare(context: SearchContext, text: TextResults, diagnostics: Diagnostics) -> ScoredCandidates | None:
    """Score the first candidates of every channel exactly; the same ones whatever the page. None where that fails."""
    request, tables = context.request, context.snapshot.text
    known = best_scores((text.vector or ())[:DEPTH])
    with_words = text.keyword is not None or request.mode == "vector"  # which scores for confidence only

    def scored() -> ScoredCandidates:
        scorer = ExactScorer(tables, request.q, request.collection, text.question_vector, known, with_words=with_words)
        return ScoredCandidates(scorer, scorer.score(text.candidates(DEPTH)))

    outcome = await run_with_timeout("compare", context.settings.budgets.graph_seconds, context.run(scored))
    diagnostics.stage(outcome, 0)
    return outcome.value


async def compare_rest(
    context: SearchContext, text: TextResults, candidates: ScoredCandidates, diagnostics: Diagnostics
) -> ScoredCandidates:
    """Score what deeper lists brought."""
    rest = [name for name in text.candidates() if name not in candidates.scores.row_of]
    if not rest:
        return candidates
    known = best_scores(text.vector or ())
    scoring = context.run(lambda: candidates.scorer.score(rest, known))
    outcome = await run_with_timeout("compare", context.settings.budgets.graph_seconds, scoring)
    diagnostics.note_failure(outcome)
    if outcome.value is None:
        return candidates
    return candidates._replace(scores=candidates.scores.concat(outcome.value))


async def follow_graph(
    context: SearchContext, analysis: Analysis, candidates: ScoredCandidates | None, diagnostics: Diagnostics
) -> Outcome[GraphResults]:
    """What the graph reaches from the names in the question and from the candidates. The keyword index is not
    searched again where it has failed before."""

    def follow() -> GraphResults:
        if candidates is None:
            reason = diagnostics.failed.get("compare", "it was not tried")
            raise TransientStoreError(f"What was found was not compared with the question: {reason}")
        names = analysis.names or linked_names(context)
        return search_graph(context, names, candidates, with_residuals="keyword" not in diagnostics.failed)

    return await run_with_timeout("graph", context.settings.budgets.graph_seconds, context.run(follow))


async def rerank(
    context: SearchContext, reranker: ServedReranker, order: Sequence[RankedPassage]
) -> tuple[list[RankedPassage], Outcome[Mapping[str, float]]]:
    """The first `reranker.depth` sorted by the scores of a model that reads the question with each of their texts; ties
    and what has no text as before. Where the model is late or broken the order stays.

    The model reads the same passages whatever the page. Not the mode `graph_rerank`, in which the graph re-orders what
    the vector channel finds.
    """
    first = order[: reranker.depth]

    def unit_of(passage: RankedPassage) -> str:
        return (passage.chunk_id if context.request.group == "chunk" else None) or passage.passage_id

    async def score() -> Mapping[str, float]:
        texts = await _texts_to_rerank(context, [(passage.passage_id, unit_of(passage)) for passage in first])
        scores = await reranker.scores(context.request.q, list(texts.values()))
        return dict(zip(texts, scores.tolist(), strict=True))

    outcome = await run_with_timeout(RERANK, reranker.budget_seconds, score())
    scores = outcome.value or {}
    scored = [passage for passage in first if unit_of(passage) in scores]
    unscored = [passage for passage in first if unit_of(passage) not in scores]
    reordered = sorted(scored, key=lambda passage: -scores[unit_of(passage)])
    with_scores = (each._replace(scores=each.scores | {RERANK: scores[unit_of(each)]}) for each in reordered)
    return [*with_scores, *unscored, *order[reranker.depth :]], outcome


async def _texts_to_rerank(context: SearchContext, units: Sequence[tuple[str, str]]) -> dict[str, str]:
    """{id of the hit: the title with the text of the passage, or of the chunk where hits are chunks}, from pairs of
    passage id and hit id; without those that the text stores do not hold."""
    wanted = list(dict.fromkeys(passage_id for passage_id, _ in units))
    passages = await context.run(lambda: context.passages.read(wanted))
    chunks: dict[str, str] = {}
    if context.request.group == "chunk":
        of_passages = await context.run(lambda: context.snapshot.text.chunks_of_passages(wanted))
        chunks = {chunk.id: chunk.text for of_passage in of_passages.values() for chunk in of_passage}
    texts: dict[str, str] = {}
    for passage_id, unit in units:
        if passage := passages.get(passage_id):
            text = chunks.get(unit, passage.text)
            texts[unit] = f"{passage.title}. {text}" if passage.title else text
    return texts


async def suggest(
    context: SearchContext, query: str, idf: Mapping[int, float], order: Sequence[RankedPassage]
) -> str | None:
    """What the query may have meant, where the collection does not hold a word of it, see `suggested`."""
    if all(idf.values()):
        return None
    found = [passage.passage_id for passage in order[:DEPTH]]
    looking = context.run(lambda: suggested(context.snapshot.text, query, idf, found, context.scope))
    return (await run_with_timeout("suggest", context.settings.budgets.structured_seconds, looking)).value


async def answer(context: SearchContext, hits: Sequence[Hit], diagnostics: Diagnostics) -> Answer:
    """The answer that these hits, the first of the order, hold. A few milliseconds of arithmetic, in a thread."""
    request, text, graph = context.request, context.snapshot.text, context.snapshot.graph
    began = time.perf_counter()

    def composed() -> Answer:
        texts = Texts(text.first_passage, partial(text.repeats, collection=request.collection))
        made = compose(request, hits, term_idf(text, request.q, request.collection), texts)
        concepts = related_concepts(graph, request.q, made.citations) if made.citations else []
        return made.model_copy(update={"query": request.q, "related_concepts": concepts})

    found = await context.run(composed)
    diagnostics.add("answer", time.perf_counter() - began)
    return found
