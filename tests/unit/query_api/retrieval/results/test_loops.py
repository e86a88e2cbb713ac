"""A path comes by no document or entity twice, however its name is written."""

import pytest

from query_api.retrieval.results.hit_paths import PathEnd, without_loops
from schemas.hits import PathEdge

Way = list[tuple[str, str]]


def edges(*way: tuple[str, str]) -> list[PathEdge]:
    """(edge, target) one after another, from the question."""
    sources = ["question", *(target for _, target in way)]
    return [
        PathEdge(
            source=source,
            edge=edge,
            target=target,
            inverse=False,
            by="graph",
            evidence=None,
            chunk_id=None,
            source_node=f"node of {source}",
            target_node=f"node of {target}",
        )
        for source, (edge, target) in zip(sources, way, strict=False)
    ]


@pytest.mark.parametrize(
    ("way", "title", "expected"),
    [
        pytest.param(
            [("matches", "Ada Ek-Tarn"), ("mentions", "Ada Ek Tarn"), ("mentioned_in", "Weir")],
            "Weir",
            [("matches", "Ada Ek-Tarn"), ("mentioned_in", "Weir")],
            id="a hyphen",
        ),
        pytest.param(
            [("matches", "Weir"), ("mentions", "Bo"), ("mentioned_in", "WEIR"), ("links_to", "Lock")],
            "Lock",
            [("matches", "Weir"), ("links_to", "Lock")],
            id="a way round",
        ),
        pytest.param(
            [("matches", "Weir"), ("next_to", "Weir")], "Weir", [("matches", "Weir"), ("next_to", "Weir")], id="within"
        ),
        pytest.param(
            [("matches", "Lock"), ("mentions", "weir"), ("mentioned_in", "Weir")],
            "Weir",
            [("matches", "Lock"), ("mentions", "Weir")],
            id="the hit's own name",
        ),
    ],
)
def test_a_path_comes_by_nothing_twice_and_goes_on_from_where_it_is(way: Way, title: str, expected: Way) -> None:
    found = without_loops(edges(*way), PathEnd(title, "wiki/end"))
    assert [(edge.edge, edge.target) for edge in found] == expected
    assert [edge.source for edge in found] == ["question", *(target for _, target in expected[:-1])]
    assert [edge.source_node for edge in found] == [f"node of {source}" for source in ["question", *before_last(found)]]
    assert found[-1].target_node == "wiki/end"


def before_last(path: list[PathEdge]) -> list[str]:
    return [edge.target for edge in path[:-1]]
