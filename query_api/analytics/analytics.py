"""What the recorded retrievals tell: which chunks are shown, what is asked, how long it takes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from query_api.analytics.frequent_items import MOST_COUNTED, Tally
from query_api.analytics.latencies import Latencies
from query_api.analytics.views import chunk_use, feedback_counts
from schemas.analytics import PopularChunk, PopularChunks, QueryAnalytics, QueryCount
from schemas.clock import rfc3339
from schemas.provenance import Feedback

if TYPE_CHECKING:
    from indexer.read.rows import ChunkRow
    from indexer.read.usage import LoggedSearch, ShownChunk
    from indexer.schema import DocumentRow
    from schemas.ids import DocumentKey

LOOKED_UP = 500  # chunks at once, when the shown ones are looked for in the index
MOST_QUERIES = 20_000
COMPARED_CHARACTERS = 500


class Usage(Protocol):
    """What is read of the recorded retrievals, batch by batch, and of the feedback."""

    def shown_chunks(self, since_ms: int | None, chunk_id: str | None = None) -> Iterable[Sequence["ShownChunk"]]: ...
    def searches(self, collection: str | None, since_ms: int | None) -> Iterable[Sequence["LoggedSearch"]]: ...
    def feedback_on_chunks(self, chunk_ids: Sequence[str]) -> Sequence[Feedback]: ...


class LiveChunks(Protocol):
    """The index at one snapshot."""

    def chunks(self, ids: Iterable[str]) -> "dict[str, ChunkRow]": ...
    def documents(self, keys: "Iterable[DocumentKey]") -> "dict[DocumentKey, DocumentRow]": ...


@dataclass
class Shown:
    """How often a chunk was a hit, and where it stood where that is known."""

    count: int = 0
    ranked: int = 0
    rank_sum: int = 0
    last_ms: int = 0

    def add(self, more: "ShownChunk") -> None:
        self.count += more.count
        self.ranked += more.ranked
        self.rank_sum += more.rank_sum
        self.last_ms = max(self.last_ms, more.last_ms)


@dataclass
class _Asked:
    count: int = 0
    without_hits: int = 0
    last_ms: int = 0
    text: str = ""


@dataclass
class _Totals:
    searches: int = 0
    without_hits: int = 0
    cached: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)


def popular_chunks(
    usage: Usage,
    live: LiveChunks,
    collection: str | None,
    since_ms: int | None,
    limit: int,
    most_counted: int = MOST_COUNTED,
) -> PopularChunks:
    """The chunks shown most often, of documents that are still in the index, in this collection or in any."""
    tally = Tally(Shown, most_counted)
    for batch in usage.shown_chunks(since_ms):
        for each in batch:
            tally.of(each.chunk_id).add(each)
    found = list(islice(_in_index(tally.items(), live, collection), limit))
    said = _by_chunk(usage.feedback_on_chunks([chunk.id for chunk, _, _ in found]))
    return PopularChunks(
        since=None if since_ms is None else rfc3339(since_ms),
        chunks=[
            PopularChunk(
                **chunk_use(chunk.id, shown),
                feedback=feedback_counts(said.get(chunk.id, [])),
                document_id=chunk.key.document_id,
                collection=chunk.key.collection,
                title=title,
                text=chunk.text,
            )
            for chunk, shown, title in found
        ],
        approximate=tally.approximate,
    )


def chunk_shown(usage: Usage, chunk_id: str) -> Shown:
    """The use of one chunk."""
    shown = Shown()
    for batch in usage.shown_chunks(None, chunk_id):
        for each in batch:
            shown.add(each)
    return shown


def query_analytics(usage: Usage, collection: str | None, since_ms: int | None, limit: int) -> QueryAnalytics:
    """What was asked most, what was asked in vain, and percentiles of latency by mode. Questions that differ by
    capitals and blanks only are one."""
    totals, latencies = _Totals(), dict[str, Latencies]()
    asked, in_vain = Tally(_Asked, MOST_QUERIES), Tally(_Asked, MOST_QUERIES)
    for search in (each for batch in usage.searches(collection, since_ms) for each in batch):
        empty = search.outcome == "done" and search.hits == search.offset == 0
        totals.searches += 1
        totals.without_hits += empty
        totals.cached += search.cached
        totals.outcomes[search.outcome] = totals.outcomes.get(search.outcome, 0) + 1
        for tally in (asked, in_vain) if empty else (asked,):
            _count(tally, search, empty=empty)
        if search.outcome == "done" and not search.cached and search.seconds is not None:
            latencies.setdefault(search.mode, Latencies()).add(search.seconds)
    return QueryAnalytics(
        since=None if since_ms is None else rfc3339(since_ms),
        searches=totals.searches,
        without_hits=totals.without_hits,
        failed=totals.outcomes.get("failed", 0),
        cancelled=totals.outcomes.get("cancelled", 0),
        cached=totals.cached,
        frequent=_told(asked, limit),
        frequent_without_hits=_told(in_vain, limit),
        latency={mode: of_mode.told() for mode, of_mode in sorted(latencies.items())},
        approximate=asked.approximate or in_vain.approximate,
    )


def _count(tally: Tally[_Asked], search: "LoggedSearch", *, empty: bool) -> None:
    entry = tally.of(" ".join(search.query.casefold().split())[:COMPARED_CHARACTERS])
    entry.count += 1
    entry.without_hits += empty
    if search.at_ms >= entry.last_ms:
        entry.last_ms, entry.text = search.at_ms, search.query[:COMPARED_CHARACTERS]


def _told(tally: Tally[_Asked], limit: int) -> list[QueryCount]:
    return [
        QueryCount(
            query=entry.text, count=entry.count, without_hits=entry.without_hits, last_seen=rfc3339(entry.last_ms)
        )
        for _, entry in islice(tally.items(), limit)
    ]


def _in_index(
    shown: Iterator[tuple[str, Shown]], live: LiveChunks, collection: str | None
) -> "Iterator[tuple[ChunkRow, Shown, str]]":
    """Those that are still there, in the same order, each with its document's title."""
    while some := dict(islice(shown, LOOKED_UP)):
        rows = live.chunks(some)
        documents = live.documents({row.key for row in rows.values()})
        for chunk_id, use in some.items():
            row = rows.get(chunk_id)
            if row is not None and collection in (None, row.key.collection) and row.key in documents:
                yield row, use, documents[row.key].title


def _by_chunk(said: Iterable[Feedback]) -> dict[str, list[Feedback]]:
    grouped: dict[str, list[Feedback]] = {}
    for each in said:
        grouped.setdefault(each.chunk_id, []).append(each)
    return grouped
