"""One order out of several channels, against numbers worked by hand."""

import pytest

from query_api.reading.snapshot import Candidate
from query_api.searching.fusing import DEPTH, FusionWeights, places
from schemas.api import Group, Mode
from schemas.ids import DocumentKey


def found(passage: str, score: float, chunk: str | None = None, document: str | None = None) -> Candidate:
    key = DocumentKey("c", document or passage)
    return Candidate(passage, score, key, chunk)


def fuse(
    vector: list[Candidate],
    keyword: list[Candidate],
    graph: dict[str, float] | None = None,
    *,
    mode: Mode = "hybrid",
    group: Group = "passage",
    gate: float = 1.0,
    first: int = 1_000,
) -> list[tuple[str, float]]:
    ordered = places(
        vector,
        keyword,
        graph or {},
        lambda passage: DocumentKey("c", passage),
        mode=mode,
        group=group,
        gate=gate,
        weights=FusionWeights(text=0.5),
        first=first,
    )
    return [(place.chunk_id or place.passage_id, place.score) for place in ordered]


def test_text_channels_are_fused_by_reciprocal_ranks_relative_to_the_best() -> None:
    best = 1 / 61 + 1 / 62
    assert fuse([found("a", 0.9), found("b", 0.8)], [found("c", 9.0), found("a", 3.0)]) == [
        ("a", pytest.approx(0.5)),
        ("c", pytest.approx(0.5 * (1 / 61) / best)),
        ("b", pytest.approx(0.5 * (1 / 62) / best)),
    ]


def test_graph_scores_are_added_as_far_as_the_gate_is_open() -> None:
    vector = [found("a", 0.9), found("b", 0.8)]
    b_alone = 0.5 * 61 / 62
    assert fuse(vector, [], {"b": 0.4, "z": 0.7}, gate=0.5) == [
        ("b", pytest.approx(b_alone + 0.2)),
        ("a", pytest.approx(0.5)),
        ("z", pytest.approx(0.35)),
    ]
    assert [name for name, _ in fuse(vector, [], {"b": 0.4, "z": 0.7}, gate=0.0)] == ["a", "b"]


def test_one_channel_alone_keeps_its_order_and_scores() -> None:
    vector, keyword, graph = [found("a", 0.9)], [found("b", 7.5)], {"c": 1.25}
    assert fuse(vector, keyword, graph, mode="vector") == [("a", 0.9)]
    assert fuse(vector, keyword, graph, mode="keyword") == [("b", 7.5)]
    assert fuse(vector, keyword, graph, mode="graph", gate=0.0) == [("c", 1.25)]


def test_a_passage_stands_by_its_best_chunk_and_further_chunks_only_where_chunks_are_asked_for() -> None:
    vector = [found("p", 0.9, "c1"), found("q", 0.8, "c2"), found("p", 0.7, "c3")]
    assert [name for name, _ in fuse(vector, [])] == ["c1", "c2"]
    assert [name for name, _ in fuse(vector, [], group="chunk")] == ["c1", "c2", "c3"]


def test_a_document_stands_by_its_best_passage() -> None:
    vector = [found("p1", 0.9, document="d"), found("p2", 0.8, document="d"), found("q", 0.7)]
    assert [name for name, _ in fuse(vector, [], group="document")] == ["p1", "q"]


def test_deeper_candidates_append_to_the_order_and_scores_never_rise() -> None:
    head = [found(f"h{number:03}", 1 - number / 1000) for number in range(DEPTH)]
    tail = [found(f"t{number:03}", 0.5 - number / 1000) for number in range(50)]
    keyword = [found(candidate.passage_id, 9.0) for candidate in tail[:1]]
    short = fuse(head, keyword)
    long = fuse([*head, *tail], keyword)
    assert [name for name, _ in long[: len(short)]] == [name for name, _ in short]
    assert len(long) == DEPTH + 50
    assert fuse([*head, *tail], keyword, first=7) == long[:7]
    scores = [score for _, score in long]
    assert scores == sorted(scores, reverse=True)


def test_structured_candidates_are_added_as_far_as_the_channel_is_conclusive() -> None:
    def order(conclusiveness: float, mode: Mode = "hybrid") -> list[tuple[str, float, dict[str, int]]]:
        ordered = places(
            [found("a", 0.9), found("b", 0.8)],
            [],
            {},
            lambda passage: DocumentKey("c", passage),
            mode=mode,
            group="passage",
            gate=0.0,
            weights=FusionWeights(text=0.5, structured=4.0),
            first=10,
            structured=[found("z", 1.0), found("b", 0.5)],
            conclusiveness=conclusiveness,
        )
        return [(place.passage_id, place.score, place.ranks) for place in ordered]

    b_alone = 0.5 * 61 / 62
    assert order(1.0) == [
        ("z", pytest.approx(4.0), {"structured": 1}),
        ("b", pytest.approx(2.0 + b_alone), {"vector": 2, "structured": 2}),
        ("a", pytest.approx(0.5), {"vector": 1}),
    ]
    assert [name for name, _, _ in order(0.1)] == ["b", "a", "z"]
    assert [(name, ranks) for name, _, ranks in order(0.0)] == [("a", {"vector": 1}), ("b", {"vector": 2})]
    assert [(name, score) for name, score, _ in order(1.0, "structured")] == [("z", 1.0), ("b", 0.5)]
