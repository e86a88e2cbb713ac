"""What holds of every path, over small graphs of all kinds: it begins with what matched, goes on from where it is,
comes by nothing twice and ends at its hit."""

import asyncio
import itertools
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from query_api.index.graph.builder import CHUNK_EDGE_KINDS
from query_api.query.analysis import analysed_question, normalise_text
from query_api.retrieval.results.hit_paths import WITHIN_DOCUMENT
from schemas.choices import GraphMethod
from schemas.graph_delta import ChunkEdge
from schemas.hits import Hit
from schemas.ids import entity_id
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import ask

NAMES = ("Ada Ek", "Bo Tarn", "Cy Weir", "Di Lock", "Elbe Works", "Question")
PREDICATES = ("requires", "is_a")
COMMON = "Water is held back by stones."
QUESTIONS = (
    "What does Ada Ek require of Bo Tarn?",
    "Who holds back water with stones?",
    "Cy Weir",
    "Question of stones",
)


@st.composite
def pages(draw: st.DrawFn) -> list[Page]:
    """Up to six documents, some of one title, whose passages name each other, with facts and links among them
    and edges between their chunks."""
    titles = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=6))
    keys = [f"wiki/{at}" for at in range(len(titles))]
    texts = st.lists(st.sampled_from(NAMES), max_size=2).map(lambda named: " and ".join([*named, COMMON]))
    facts = st.tuples(st.sampled_from(NAMES), st.sampled_from(PREDICATES), st.sampled_from(NAMES))
    kinds, weights = st.sampled_from(CHUNK_EDGE_KINDS), st.floats(0.01, 1)
    return [
        Page(
            str(at),
            title,
            passages := draw(st.lists(st.lists(texts, min_size=1, max_size=2), min_size=1, max_size=3)),
            NAMES,
            draw(st.lists(facts, max_size=2)),
            draw(st.lists(st.sampled_from(keys), max_size=2)),
            edges=[
                ChunkEdge(draw(kinds), at, at + 1, draw(weights))
                for at in range(sum(map(len, passages)) - 1)
                if draw(st.booleans())
            ],
        )
        for at, title in enumerate(titles)
    ]


@pytest.fixture(scope="module")
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


@pytest.mark.parametrize("method", ["hop", "expansion", "pagerank"])
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=pages(), question=st.sampled_from(QUESTIONS), mode=st.sampled_from(["hybrid", "graph"]))
def test_every_path_holds_what_a_path_promises(
    threads: Executor, method: GraphMethod, made: list[Page], question: str, mode: str
) -> None:
    answer = asyncio.run(ask(world(made), threads, question, graph_method=method, mode=mode, collection="wiki"))
    for hit in answer.hits:
        if hit.path:
            check(hit, question)


def check(hit: Hit, question: str) -> None:
    first = hit.path[0]
    assert first.source == "question"
    assert hit.path[-1].target == hit.title
    visited = [normalise_text(edge.target) for edge in hit.path if edge.edge not in WITHIN_DOCUMENT.values()]
    assert all(edge.source == edge.target for edge in hit.path if edge.edge in WITHIN_DOCUMENT.values())
    assert len(set(visited)) == len(visited)
    assert all(before.target == edge.source for before, edge in zip(hit.path, hit.path[1:], strict=False))
    assert all(before.target_node == edge.source_node for before, edge in zip(hit.path, hit.path[1:], strict=False))
    assert first.source_node is None
    assert hit.path[-1].target_node == f"{hit.collection}/{hit.document_id}"
    if first.edge == "names":
        assert normalise_text(first.evidence or "") in normalise_text(question)
    elif first.evidence is not None:
        assert analysed_question(question).stems_in(first.evidence)


@pytest.mark.parametrize(
    ("made", "question", "title", "way"),
    [
        pytest.param(
            [
                Page("1", "PEP 1", [["How it is done."]]),
                Page("index", "Index", [["PEP 2 requires PEP 1."]], facts=[("PEP 2", "requires", "PEP 1")]),
            ],
            "What needs PEP 1?",
            "Index",
            [("names", "PEP 1", False), ("requires", "PEP 2", True), ("mentioned_in", "Index", False)],
            id="a document that states a fact of two others",
        ),
        pytest.param(
            [
                Page("1", "PEP 1", [["PEP 1 is short."], ["It has been done."]], ["PEP 1"]),
                Page("2", "PEP 2", [["Other things."]]),
            ],
            "How is PEP 1 done?",
            "PEP 1",
            [("names", "PEP 1", False)],
            id="another passage of the document that is named",
        ),
    ],
)
async def test_the_way_to_a_hit(
    threads: Executor, made: list[Page], question: str, title: str, way: list[tuple[str, str, bool]]
) -> None:
    answer = await ask(world(made), threads, question, mode="graph")
    ways = [hit.path for hit in answer.hits if hit.title == title]
    assert ways
    assert all([(edge.edge, edge.target, edge.inverse) for edge in path] == way for path in ways)


async def test_each_step_leads_to_a_node_of_the_graph(threads: Executor) -> None:
    made = [
        Page("1", "PEP 1", [["How it is done."]]),
        Page("index", "Index", [["PEP 2 requires PEP 1."]], facts=[("PEP 2", "requires", "PEP 1")]),
    ]
    answer = await ask(world(made), threads, "What needs PEP 1?", mode="graph")
    [index] = [hit for hit in answer.hits if hit.title == "Index"]
    nodes = [None, "wiki/1", entity_id("wiki", "pep 2"), "wiki/index"]
    assert [(edge.source_node, edge.target_node) for edge in index.path] == list(itertools.pairwise(nodes))


async def test_the_way_to_a_passage_beside_one_that_matches(threads: Executor) -> None:
    edges = [ChunkEdge("next_chunk", 0, 1, 0.9)]
    made = Page("1", "Rivers", [["Who builds dams?"], ["Nobody knows."], ["It rains."]], edges=edges)
    answer = await ask(world([made]), threads, "Who builds dams?", mode="graph", graph_method="expansion")
    ways = {hit.passage_id: [(edge.edge, edge.target, edge.evidence) for edge in hit.path] for hit in answer.hits}
    matches = ("matches", "Rivers", "Who builds dams?")
    assert [ways[passage] for passage in made.passage_ids()] == [
        [matches],
        [matches, ("next_to", "Rivers", "Nobody knows.")],
        [("matches", "Rivers", None)],
    ]
