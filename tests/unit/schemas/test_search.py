"""Which options of a search go together."""

import pytest
from pydantic import ValidationError

from schemas.search import SearchRequest


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
        ({"reranker": True, "mode": "graph_rerank"}, "for hybrid, vector, keyword and graph"),
        ({"mode": "rerank"}, "'graph_rerank'"),
        ({"max_per_document": 0}, "greater than or equal to 1"),
    ],
)
def test_nonsense_is_refused_with_what_to_do(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SearchRequest.model_validate({"q": "rivers"} | options)


@pytest.mark.parametrize("fusion", ["adaptive", "rrf", "weighted"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"vector_weight": 0, "keyword_weight": 0, "graph_weight": 0}, "All weights are 0"),
        ({"channels": "vector", "vector_weight": 0}, "of the channels asked, vector has the weight 0. Give one"),
        ({"channels": "keyword", "keyword_weight": 0, "vector_weight": 1}, "keyword has the weight 0"),
        ({"channels": "graph,structured", "graph_weight": 0}, "graph has the weight 0"),
        ({"channels": "vector,keyword", "vector_weight": 0, "keyword_weight": 0}, "vector and keyword have the weight"),
    ],
)
def test_weights_that_leave_nothing_to_order_by_are_refused(options: dict[str, object], said: str, fusion: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SearchRequest.model_validate({"q": "rivers", "fusion": fusion} | options)


def test_a_weight_of_0_beside_what_counts_is_taken() -> None:
    SearchRequest(q="rivers", fusion="weighted", vector_weight=0, keyword_weight=0)
    SearchRequest(q="rivers", fusion="weighted", channels=("vector", "keyword"), vector_weight=0)
    SearchRequest(q="rivers", channels=("structured",), vector_weight=0)


def test_what_goes_together_is_taken() -> None:
    SearchRequest(q="rivers", duplicates="semantic", duplicate_threshold=0.9, max_per_document=1, group="document")
    SearchRequest(q="rivers", reranker=False, mode="structured")
    SearchRequest(q="rivers", context="window", context_chunks=10, min_confidence=0.25, explain=True)
