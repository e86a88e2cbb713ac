"""Which options of a search go together."""

import pytest
from pydantic import ValidationError

from schemas.search_request import SearchRequest


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"duplicate_threshold": 0.9}, "duplicates=semantic"),
        ({"duplicates": "exact", "duplicate_threshold": 0.9}, "duplicates=semantic"),
        ({"context_chunks": 3}, "context=window"),
        ({"context": "section", "context_chunks": 3}, "context=window"),
        ({"group": "document", "max_per_document": 2}, "one hit a document"),
        ({"mode": "structured", "min_confidence": 0.5}, "no confidence"),
        ({"min_confidence": 1.5}, "less than or equal to 1"),
        ({"min_confidence": "nan"}, "less than or equal to 1"),
        ({"context": "window", "context_chunks": 11}, "less than or equal to 10"),
        ({"context": "page"}, "'parent', 'window' or 'section'"),
        ({"duplicates": "semantic", "duplicate_threshold": 0.1}, "greater than or equal to 0.5"),
        ({"decompose": True, "group": "chunk"}, "merges passages or documents"),
        ({"max_per_value": 2}, "`diversity`"),
        ({"diversity": "by", "max_per_value": 0}, "greater than or equal to 1"),
        ({"reranker": True, "mode": "structured"}, "for hybrid, vector, keyword and graph"),
        ({"reranker": True, "mode": "rerank"}, "for hybrid, vector, keyword and graph"),
        ({"max_per_document": 0}, "greater than or equal to 1"),
    ],
)
def test_nonsense_is_refused_with_what_to_do(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SearchRequest.model_validate({"q": "rivers"} | options)


def test_what_goes_together_is_taken() -> None:
    SearchRequest(q="rivers", duplicates="semantic", duplicate_threshold=0.9, max_per_document=1, group="document")
    SearchRequest(q="rivers", reranker=False, mode="structured")
    SearchRequest(q="rivers", context="window", context_chunks=10, min_confidence=0.25, explain=True)
