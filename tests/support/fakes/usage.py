"""Recorded retrievals and feedback in lists, read as the tables are."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from indexer.read.usage import LoggedSearch, ShownChunk
from schemas.provenance import Feedback, Retrieval, RetrievedHit


@dataclass
class InMemoryUsage:
    retrievals: list[Retrieval] = field(default_factory=list)
    feedback: list[Feedback] = field(default_factory=list)

    def newest(
        self,
        collection: str | None,
        since_ms: int | None,
        before: tuple[int, str] | None,
        limit: int,
        *,
        only_counted: bool = False,
    ) -> list[Retrieval]:
        found = self._of(collection, since_ms, only_counted=only_counted)
        ordered = sorted(found, key=lambda each: (each.at_ms, each.retrieval_id), reverse=True)
        return [each for each in ordered if before is None or (each.at_ms, each.retrieval_id) < before][:limit]

    def shown_chunks(self, since_ms: int | None, chunk_id: str | None = None) -> Iterator[list[ShownChunk]]:
        for each in self._of(None, since_ms):
            yield [
                ShownChunk(hit.chunk_id, 1, hit.rank, each.at_ms)
                for hit in each.hits
                if chunk_id in (None, hit.chunk_id)
            ]

    def searches(self, collection: str | None, since_ms: int | None) -> Iterator[list[LoggedSearch]]:
        for each in self._of(collection, since_ms):
            offset = each.parameters.get("offset", 0)
            best = max((hit.confidence for hit in each.hits if hit.confidence is not None), default=None)
            how = (each.seconds, each.outcome, each.cached, best)
            yield [LoggedSearch(each.query, each.mode, each.at_ms, len(each.hits), offset, *how)]

    def feedback_on_retrieval(self, retrieval_id: str) -> list[Feedback]:
        return [each for each in self.feedback if each.retrieval_id == retrieval_id]

    def feedback_on_chunks(self, chunk_ids: Sequence[str]) -> list[Feedback]:
        return [each for each in self.feedback if each.chunk_id in chunk_ids]

    def _of(self, collection: str | None, since_ms: int | None, *, only_counted: bool = True) -> list[Retrieval]:
        return [
            each
            for each in self.retrievals
            if (each.counted or not only_counted)
            and collection in (None, each.collection)
            and (since_ms is None or each.at_ms >= since_ms)
        ]


_made = Counter[str]()


def made_retrieval(
    query: str = "who?",
    chunk_ids: Sequence[str] = (),
    at_ms: int = 0,
    *,
    first_rank: int = 1,
    confidence: float = 0.7,
    **more: object,
) -> Retrieval:
    """A retrieval whose hits are these chunks, in this order, from this rank on."""
    _made["retrieval"] += 1
    fields: dict[str, object] = {
        "retrieval_id": f"r_{_made['retrieval']:04}",
        "query": query,
        "collection": None,
        "mode": "hybrid",
        "at_ms": at_ms,
        "snapshot": {"generation": "g0001", "positions": "0:7"},
        "parameters": {"k": 10, "offset": first_rank - 1},
        "seconds": 0.02,
        "hits": [
            RetrievedHit(
                rank=rank,
                chunk_id=chunk_id,
                passage_id=f"p-{chunk_id}",
                document_id="river.md",
                collection="a",
                score=1 / rank,
                scores={"vector": 0.5},
                ranks={"vector": rank},
                confidence=confidence,
            )
            for rank, chunk_id in enumerate(chunk_ids, first_rank)
        ],
    }
    return Retrieval(**{**fields, **more})  # type: ignore[arg-type]


def made_feedback(retrieval: Retrieval, chunk_id: str, rating: float, caller: str = "", at_ms: int = 0) -> Feedback:
    return Feedback(
        retrieval_id=retrieval.retrieval_id,
        chunk_id=chunk_id,
        collection="a",
        document_id="river.md",
        rank=1,
        rating=rating,
        at_ms=at_ms,
        caller=caller,
    )
