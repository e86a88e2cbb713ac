"""Hits of a made-up search, for the answers' tests."""

from typing import Any

from indexer.text_analysis import query_terms
from schemas.hits import Hit, HitSource


def hit(rank: int, title: str, text: str, **more: Any) -> Hit:
    given: dict[str, Any] = {
        "rank": rank, "chunk_id": f"c{rank}", "passage_id": f"p{rank}", "document_id": f"d{rank}",
        "collection": "world", "title": title, "text": text, "parent_text": text, "start": 0, "end": len(text),
        "parent_start": 0, "section": [], "score": 1 / rank, "scores": {"vector": 0.5}, "confidence": 0.9,
        "channels": ["vector"], "source": HitSource(topic="documents", partition=0, offset=rank),
    }  # fmt: skip
    return Hit(**(given | more))


def idf_of(question: str) -> dict[int, float]:
    """Every term weighs the same."""
    return dict.fromkeys(query_terms(question), 1.0)


QUESTION = "Where was the director of Alpha Film born?"
HITS = [
    hit(1, "Alpha Film", "Alpha Film is a film of 1950. It was directed by Jane Doe, who also wrote it."),
    hit(2, "Jane Doe", "Jane Doe was a painter before she made pictures. She was born in Lisbon, Portugal."),
    hit(3, "Beta Film", "Beta Film is a film of 1951 about trains. Nobody liked it."),
]
