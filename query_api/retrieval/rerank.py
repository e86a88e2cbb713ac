"""The first places put into another order by a model that reads the question with each of their texts.

Not the mode `graph_rerank`, in which the graph re-orders what the vector channel finds. The model reads the same places
whatever the page, so pages agree; what stands behind them stays where it was. A model that is late or broken leaves the
order as it was, and the answer says why.
"""

from collections.abc import Mapping, Sequence

from query_api.rerankers.served import ServedReranker
from query_api.retrieval.fusion import RankedPassage
from query_api.retrieval.stages import Outcome, SearchContext, within
from schemas.search import RERANKED_MODES, SearchRequest

STEP = "rerank"


def asks_reranker(request: SearchRequest) -> bool:
    """Whether a re-ranker is to re-order this search, where there is one."""
    return request.mode in RERANKED_MODES and request.reranker is not False


async def scored(
    context: SearchContext, reranker: ServedReranker, order: Sequence[RankedPassage]
) -> Outcome[Mapping[str, float]]:
    """The model's scores by the ids of what stands at the first places, without what the text stores do not hold."""

    async def score() -> Mapping[str, float]:
        texts = await _texts(context, order[: reranker.depth])
        scores = await reranker.scores(context.request.q, list(texts.values()))
        return dict(zip(texts, scores.tolist(), strict=True))

    return await within(STEP, reranker.budget_seconds, score())


def reranked(
    context: SearchContext, order: Sequence[RankedPassage], scores: Mapping[str, float], depth: int
) -> list[RankedPassage]:
    """The first `depth` places sorted by the model's scores, ties and what has no text as before."""
    first = [(place, scores.get(_unit(context, place))) for place in order[:depth]]
    read = sorted(((place, score) for place, score in first if score is not None), key=lambda each: -each[1])
    unread = [place for place, score in first if score is None]
    return [
        *(place._replace(scores=place.scores | {STEP: score}) for place, score in read),
        *unread,
        *order[depth:],
    ]


async def _texts(context: SearchContext, order: Sequence[RankedPassage]) -> dict[str, str]:
    """What the model reads of each place: the title with the passage, or with the chunk where hits are chunks."""
    wanted = list(dict.fromkeys(place.passage_id for place in order))
    passages = await context.run(lambda: context.passages.read(wanted))
    chunks: dict[str, str] = {}
    if context.request.group == "chunk":
        held = await context.run(lambda: context.snapshot.text.chunks_of_passages(wanted))
        chunks = {chunk.id: chunk.text for of_passage in held.values() for chunk in of_passage}
    texts: dict[str, str] = {}
    for place in order:
        if passage := passages.get(place.passage_id):
            unit = _unit(context, place)
            text = chunks.get(unit, passage.text)
            texts[unit] = f"{passage.title}. {text}" if passage.title else text
    return texts


def _unit(context: SearchContext, place: RankedPassage) -> str:
    """The id of what stands at a place."""
    return (place.chunk_id if context.request.group == "chunk" else None) or place.passage_id
