"""The text channels of one question: embedding, then vectors; beside them words, then fields; each within its budget.

Two run at a time, each pair on one core. More would wait for each other, one interpreter that they share.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.index.snapshot import Candidate
from query_api.retrieval.analysis_stage import Analysis
from query_api.retrieval.fusion import DEEPER, DEPTH
from query_api.retrieval.retrievers.text import (
    NOTHING_ASKED,
    Structured,
    keyword_channel,
    structured_channel,
    vector_channel,
)
from query_api.retrieval.stages import Diagnostics, Outcome, SearchContext, within
from schemas.filters import MAX_HITS

MAX_DEPTH = 16_384
Embedding = asyncio.Task[Outcome[NDArray[np.float32]]]
_AFTER = {"embed": "vector", "keyword": "structured"}


class TextResults(NamedTuple):
    """What the text channels found, best first; None for a channel that was not asked or failed. `depth` is how many
    candidates the vector and the keyword channel were asked for."""

    vector: Sequence[Candidate] | None
    keyword: Sequence[Candidate] | None
    structured: Structured
    question_vector: NDArray[np.float32] | None
    depth: int

    def candidates(self, depth: int | None = None) -> list[str]:
        """The passages of the first candidates of both lists, of all for None, and of all structured ones."""
        lists = ((self.vector or ())[:depth], (self.keyword or ())[:depth], self.structured.candidates)
        return list(dict.fromkeys(candidate.passage_id for each in lists for candidate in each))

    @property
    def may_give_more(self) -> bool:
        return self.depth < MAX_DEPTH and any(len(found or ()) >= self.depth for found in (self.vector, self.keyword))


def embed(context: SearchContext) -> Embedding | None:
    """Embed the question from now on, beside its analysis; None where no vector is needed."""
    if "vector" not in context.text_channels:
        return None

    async def embedded() -> NDArray[np.float32]:
        vectors = await context.run(lambda: context.encoder.encode_queries([context.request.q]))
        vector: NDArray[np.float32] = vectors[0]
        return vector

    seconds = context.settings.budgets.embed_seconds
    return asyncio.create_task(within("embed", seconds, embedded()), name="embed")


async def search_texts(
    context: SearchContext, analysis: Analysis, embedding: Embedding | None
) -> AsyncGenerator[Outcome[Any]]:
    """How each channel ended, as it happens; `collected` makes results of them. Closing ends what waits."""
    budgets, q, text, scope = context.settings.budgets, context.request.q, context.snapshot.text, context.scope
    depth = _first_depth(context)
    limit = MAX_HITS if context.request.mode == "structured" else DEPTH  # whatever the page
    steps: Mapping[str, tuple[float, Callable[[Any], Awaitable[Any]]]] = {
        "vector": (
            budgets.vector_seconds,
            lambda vector: context.run(lambda: vector_channel(text, vector, depth, scope)),
        ),
        "keyword": (budgets.keyword_seconds, lambda _: context.run(lambda: keyword_channel(text, q, depth, scope))),
        "structured": (
            budgets.structured_seconds,
            lambda _: context.run(lambda: structured_channel(text, q, limit, scope, analysis.fields)),
        ),
    }

    def begin(name: str, value: Any = None) -> set[asyncio.Task[Outcome[Any]]]:
        if name not in context.text_channels:
            return set()
        seconds, step = steps[name]
        return {asyncio.create_task(within(name, seconds, step(value)), name=name)}

    running = begin("keyword") or begin("structured")
    if embedding is not None:
        running.add(embedding)
    try:
        while running:
            ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for outcome in sorted((task.result() for task in ended), key=lambda outcome: outcome.name):
                if outcome.name in _AFTER and (outcome.name != "embed" or outcome.value is not None):
                    running |= begin(_AFTER[outcome.name], outcome.value)
                yield outcome
    finally:
        for task in running:
            task.cancel()


def collected(outcomes: Sequence[Outcome[Any]], context: SearchContext) -> TextResults:
    found = {outcome.name: outcome.value for outcome in outcomes}
    structured = found.get("structured") or NOTHING_ASKED
    return TextResults(found.get("vector"), found.get("keyword"), structured, found.get("embed"), _first_depth(context))


async def deepen(context: SearchContext, text: TextResults, diagnostics: Diagnostics) -> TextResults:
    """Ask the vector and the keyword channel again, for more. One that now fails keeps what it gave before."""
    began = time.perf_counter()
    budgets, tables, scope, depth = context.settings.budgets, context.snapshot.text, context.scope, text.depth * DEEPER
    vector = text.question_vector
    if text.vector is not None and vector is not None:
        searching = context.run(lambda: vector_channel(tables, vector, depth, scope))
        again = await within("vector", budgets.vector_seconds, searching)
        text = text._replace(vector=again.value or text.vector)
        diagnostics.note_failure(again)
    if text.keyword is not None:
        searching = context.run(lambda: keyword_channel(tables, context.request.q, depth, scope))
        again = await within("keyword", budgets.keyword_seconds, searching)
        text = text._replace(keyword=again.value or text.keyword)
        diagnostics.note_failure(again)
    diagnostics.add("deepen", time.perf_counter() - began)
    return text._replace(depth=depth)


def _first_depth(context: SearchContext) -> int:
    """How many candidates the page of the request needs."""
    depth = DEPTH
    while depth < min(context.request.offset + context.request.k, MAX_DEPTH):
        depth *= DEEPER
    return depth
