"""Analytics over the recorded retrievals: popular chunks, frequent queries, those that found nothing, latencies.

Counted in one pass and in bounded memory: counters drop their rarer half when they are full, latencies are counted in
buckets that grow geometrically.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from schemas.analytics import (
    FeedbackCounts,
    FeedbackShown,
    Latency,
    PopularChunk,
    PopularChunks,
    QueryAnalytics,
    QueryCount,
)
from schemas.clock import rfc3339
from schemas.hits import is_unlikely
from schemas.provenance import Feedback

if TYPE_CHECKING:
    from indexer.read.rows import ChunkRow
    from indexer.read.usage import LoggedSearch, ShownChunk, UsageTables
    from query_api.index.text.text_snapshot import TextSnapshot

MAX_CHUNKS = 100_000  # counted at once
MAX_QUERIES = 20_000
COMPARED_CHARACTERS = 500  # of a query
LOOKUP_CHUNKS = 500  # in one lookup
MIN_SECONDS = 1e-5
BUCKET_GROWTH = 1.02  # a percentile is within 1 % of the true one


class Counted(Protocol):
    count: int


C = TypeVar("C", bound=Counted)


class BoundedCounter(Generic[C]):
    """One entry for each key, at most `max_entries`: when there are more, the rarer half is dropped, so that frequent
    keys stay and lose little (lossy counting: Manku, Motwani 2002). `approximate` says that this has happened."""

    def __init__(self, new: Callable[[], C], max_entries: int) -> None:
        self.approximate = False
        self._new = new
        self._max_entries = max_entries
        self._entries: dict[str, C] = {}

    def __getitem__(self, key: str) -> C:
        if key not in self._entries:
            if len(self._entries) >= self._max_entries:
                self.approximate = True
                self._entries = dict(islice(self.most_common(), self._max_entries // 2))
            self._entries[key] = self._new()
        return self._entries[key]

    def most_common(self) -> Iterator[tuple[str, C]]:
        """The most frequent first, ties by key."""
        yield from sorted(self._entries.items(), key=lambda item: (-item[1].count, item[0]))


class LatencyHistogram:
    """Counts in buckets that grow geometrically (DDSketch: Masson, Rim, Lee 2019), so that errors are relative."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        self._buckets[math.ceil(math.log(max(seconds, MIN_SECONDS) / MIN_SECONDS, BUCKET_GROWTH))] += 1

    def percentile(self, share: float) -> float | None:
        """The least latency that is at or above `share` (0 to 1) of all; None of none."""
        wanted, reached = max(1, math.ceil(share * self._buckets.total())), 0
        for bucket, count in sorted(self._buckets.items()):
            reached += count
            if reached >= wanted:
                middle: float = MIN_SECONDS * BUCKET_GROWTH**bucket * 2 / (1 + BUCKET_GROWTH)
                return float(f"{middle:.3g}")
        return None

    def summary(self) -> Latency:
        p50, p90, p95, p99 = (self.percentile(share) for share in (0.5, 0.9, 0.95, 0.99))
        return Latency(searches=self._buckets.total(), p50=p50, p90=p90, p95=p95, p99=p99)


@dataclass
class ChunkImpressions:
    """How often a chunk was a hit, and the sum of its ranks."""

    count: int = 0
    rank_sum: int = 0
    last_ms: int = 0

    def add(self, shown: "ShownChunk") -> None:
        self.count += shown.count
        self.rank_sum += shown.rank_sum
        self.last_ms = max(self.last_ms, shown.last_ms)

    def fields(self) -> dict[str, Any]:
        """Those of a ChunkUse, id and feedback apart."""
        return {
            "count": self.count,
            "mean_rank": round(self.rank_sum / self.count, 4) if self.count else None,
            "last_seen": rfc3339(self.last_ms) if self.count else None,
        }


@dataclass
class _QueryUse:
    """How often a query was put; `text` is the latest wording."""

    count: int = 0
    without_hits: int = 0
    unlikely: int = 0
    last_ms: int = 0
    text: str = ""

    def add(self, search: "LoggedSearch", *, empty: bool, unlikely: bool) -> None:
        self.count += 1
        self.without_hits += empty
        self.unlikely += unlikely
        if search.at_ms >= self.last_ms:
            self.last_ms, self.text = search.at_ms, search.query[:COMPARED_CHARACTERS]


def popular_chunks(
    usage: "UsageTables", live: "TextSnapshot", collection: str | None, since_ms: int | None, limit: int
) -> PopularChunks:
    """The chunks shown most often, of documents that are still in the index, in this collection or in any."""
    counts = BoundedCounter(ChunkImpressions, MAX_CHUNKS)
    for batch in usage.shown_chunks(since_ms):
        for each in batch:
            counts[each.chunk_id].add(each)
    found = list(islice(_live(counts.most_common(), live, collection), limit))
    feedback: dict[str, list[Feedback]] = {}
    for said in usage.feedback_on_chunks([chunk.id for chunk, _, _ in found]):
        feedback.setdefault(said.chunk_id, []).append(said)
    return PopularChunks(
        since=None if since_ms is None else rfc3339(since_ms),
        chunks=[
            PopularChunk(
                chunk_id=chunk.id,
                **impressions.fields(),
                feedback=feedback_counts(feedback.get(chunk.id, [])),
                document_id=chunk.key.document_id,
                collection=chunk.key.collection,
                title=title,
                text=chunk.text,
            )
            for chunk, impressions, title in found
        ],
        approximate=counts.approximate,
    )


def _live(
    shown: Iterator[tuple[str, ChunkImpressions]], live: "TextSnapshot", collection: str | None
) -> "Iterator[tuple[ChunkRow, ChunkImpressions, str]]":
    """Those that are still in the index, in the same order, each with its document's title."""
    while some := dict(islice(shown, LOOKUP_CHUNKS)):
        rows = live.chunks(some)
        documents = live.documents({row.key for row in rows.values()})
        for chunk_id, impressions in some.items():
            row = rows.get(chunk_id)
            if row is not None and collection in (None, row.key.collection) and row.key in documents:
                yield row, impressions, documents[row.key].title


def chunk_impressions(usage: "UsageTables", chunk_id: str) -> ChunkImpressions:
    """Those of one chunk."""
    impressions = ChunkImpressions()
    for batch in usage.shown_chunks(None, chunk_id):
        for each in batch:
            impressions.add(each)
    return impressions


def query_analytics(usage: "UsageTables", collection: str | None, since_ms: int | None, limit: int) -> QueryAnalytics:
    """Frequent queries, those without hits, those with unlikely hits alone, and percentiles of latency by mode. Queries
    that differ only by case and blanks are one."""
    totals: Counter[str] = Counter()
    latencies: dict[str, LatencyHistogram] = defaultdict(LatencyHistogram)
    queries = {name: BoundedCounter(_QueryUse, MAX_QUERIES) for name in ("searches", "without_hits", "unlikely")}
    for search in chain.from_iterable(usage.searches(collection, since_ms)):
        is_first_page = search.outcome == "done" and search.offset == 0
        kinds = {
            "searches": True,
            "without_hits": is_first_page and search.hits == 0,
            "unlikely": is_first_page and is_unlikely(search.best_confidence),
        }
        totals.update({**kinds, "cached": search.cached, search.outcome: 1})
        normalised = " ".join(search.query.casefold().split())[:COMPARED_CHARACTERS]
        for name in filter(kinds.get, kinds):
            queries[name][normalised].add(search, empty=kinds["without_hits"], unlikely=kinds["unlikely"])
        if search.outcome == "done" and not search.cached:
            latencies[search.mode].add(search.seconds)
    frequent, zero_result, doubtful = queries.values()
    return QueryAnalytics(
        since=None if since_ms is None else rfc3339(since_ms),
        **{name: totals[name] for name in ("searches", "without_hits", "unlikely", "failed", "cancelled", "cached")},
        frequent=_query_counts(frequent, limit),
        frequent_without_hits=_query_counts(zero_result, limit),
        frequent_unlikely=_query_counts(doubtful, limit),
        latency={mode: of_mode.summary() for mode, of_mode in sorted(latencies.items())},
        approximate=any(counts.approximate for counts in queries.values()),
    )


def _query_counts(counts: BoundedCounter[_QueryUse], limit: int) -> list[QueryCount]:
    return [
        QueryCount(
            query=use.text,
            count=use.count,
            without_hits=use.without_hits,
            unlikely=use.unlikely,
            last_seen=rfc3339(use.last_ms),
        )
        for _, use in islice(counts.most_common(), limit)
    ]


def feedback_shown(feedback: Feedback) -> FeedbackShown:
    return FeedbackShown(**msgspec.structs.asdict(feedback), at=rfc3339(feedback.at_ms))


def feedback_counts(feedback: Sequence[Feedback]) -> FeedbackCounts:
    if not feedback:
        return FeedbackCounts()
    ratings = [each.rating for each in feedback]
    return FeedbackCounts(
        helpful=sum(rating > 0 for rating in ratings),
        unhelpful=sum(rating < 0 for rating in ratings),
        mean_rating=round(sum(ratings) / len(ratings), 4),
    )
