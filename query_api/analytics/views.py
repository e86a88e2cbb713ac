"""Records of retrievals and feedback as the interface shows them."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from schemas.analytics import FeedbackCounts, FeedbackShown, RetrievalDetail, RetrievalSummary, RetrievedHitShown
from schemas.clock import rfc3339
from schemas.provenance import Feedback, Retrieval


class Counts(Protocol):
    """`rank_sum` is that of the `ranked` ones among `count`."""

    count: int
    ranked: int
    rank_sum: int
    last_ms: int


def summary(retrieval: Retrieval) -> RetrievalSummary:
    return RetrievalSummary(
        retrieval_id=retrieval.retrieval_id,
        at=rfc3339(retrieval.at_ms),
        query=retrieval.query,
        collection=retrieval.collection,
        mode=retrieval.mode,
        hits=len(retrieval.hits),
        seconds=retrieval.seconds,
        outcome=retrieval.outcome,
        cached=retrieval.cached,
    )


def detail(retrieval: Retrieval, said: Sequence[Feedback]) -> RetrievalDetail:
    fields = {name: getattr(retrieval, name) for name in Retrieval.__struct_fields__ if name != "hits"}
    return RetrievalDetail(
        **fields,
        at=rfc3339(retrieval.at_ms),
        hits=[RetrievedHitShown(**msgspec.structs.asdict(hit)) for hit in retrieval.hits],
        feedback=[feedback_shown(each) for each in said],
    )


def feedback_shown(feedback: Feedback) -> FeedbackShown:
    return FeedbackShown(
        retrieval_id=feedback.retrieval_id,
        chunk_id=feedback.chunk_id,
        rating=feedback.rating,
        comment=feedback.comment,
        caller=feedback.caller,
        at=rfc3339(feedback.at_ms),
    )


def feedback_counts(said: Sequence[Feedback]) -> FeedbackCounts:
    if not said:
        return FeedbackCounts()
    ratings = [each.rating for each in said]
    return FeedbackCounts(
        helpful=sum(rating > 0 for rating in ratings),
        unhelpful=sum(rating < 0 for rating in ratings),
        mean_rating=round(sum(ratings) / len(ratings), 4),
    )


def chunk_use(chunk_id: str, shown: Counts) -> dict[str, Any]:
    """The fields of a ChunkUse, feedback apart."""
    return {
        "chunk_id": chunk_id,
        "count": shown.count,
        "mean_rank": round(shown.rank_sum / shown.ranked, 4) if shown.ranked else None,
        "last_seen": rfc3339(shown.last_ms) if shown.count else None,
    }
