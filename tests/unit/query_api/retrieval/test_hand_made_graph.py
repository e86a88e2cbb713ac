"""Searches of a graph that people made: what their edges lead to is found with its path, and goes with the edge."""

from concurrent.futures import Executor
from typing import Any

import pytest

from query_api.retrieval.search_context import SearchSettings
from schemas.errors import MalformedFilter
from schemas.hits import Hit
from schemas.ids import entity_id
from tests.support.fakes.text_stores import PATIENT, Page, made_edge, made_node, world
from tests.support.fixtures import hand_made_graph
from tests.unit.query_api.retrieval.asking import PAGES, QUESTION, Answer, ask

HYBRID: dict[str, Any] = {"mode": "hybrid"}
GRAPH: dict[str, Any] = {"mode": "graph"}
EXPANSION: dict[str, Any] = {"mode": "graph", "graph_method": "expansion"}
PAGERANK: dict[str, Any] = {"mode": "graph", "graph_method": "pagerank"}


def way(hit: Hit) -> list[tuple[str, str, str]]:
    return [(step.source, step.edge, step.target) for step in hit.path]


async def first_ten(executor: Executor, pages: list[Page], question: str, **request: Any) -> dict[str, Hit]:
    answer = await ask(world(pages), executor, question, collection=hand_made_graph.COLLECTION, **request)
    return {hit.title: hit for hit in answer.hits}


@pytest.mark.parametrize("request_", [HYBRID, GRAPH, EXPANSION])
async def test_node_two_steps_away_is_found_until_its_edge_goes(executor: Executor, request_: dict[str, Any]) -> None:
    pages = hand_made_graph.pages()
    gone = [page for page in pages if page.id != f"edge:{hand_made_graph.MIDDLE}-{hand_made_graph.FAR}"]
    assert len(gone) == len(pages) - 1
    for question in hand_made_graph.QUESTIONS:
        found = await first_ten(executor, pages, question, **request_)
        assert way(found["Amber Room"]) == [
            ("question", "names", "Keel Ledger"),
            ("Keel Ledger", "feeds", "Tide Desk"),
            ("Tide Desk", "checks", "Amber Room"),
        ], question
        assert "Amber Room" not in await first_ten(executor, gone, question, **request_), question


CHAIN = [
    made_node("ann", "Ann Lee", "Ann Lee sails."),
    made_node("guild", "Guild"),
    made_node("mill", "Mill", "Flour."),
    made_edge("ann", "member_of", "guild", note="Since May."),
    made_edge("mill", "run_by", "guild"),
]
OTHERS = [Page(f"other-{at}", f"Other {at}", [[f"Who is it, {at}? Nobody is."]]) for at in range(4)]


@pytest.mark.parametrize("request_", [HYBRID, GRAPH, EXPANSION, EXPANSION | {"hops": 1}, PAGERANK])
async def test_node_without_text_is_stepped_over(executor: Executor, request_: dict[str, Any]) -> None:
    answer = await ask(world([*CHAIN, *OTHERS]), executor, "Who is Ann Lee?", **request_)
    mill = next(hit for hit in answer.hits if hit.title == "Mill")
    assert way(mill)[-2:] == [("Ann Lee", "member_of", "Guild"), ("Guild", "run_by", "Mill")]
    assert [(step.inverse, step.evidence) for step in mill.path[-2:]] == [(False, "Since May."), (True, None)]
    assert {hit.title for hit in answer.hits}.isdisjoint({"Guild", ""}), "what has no text is no hit"


async def test_question_about_node_without_text_finds_what_it_joins(executor: Executor) -> None:
    answer = await ask(world([*CHAIN, *OTHERS]), executor, "What is the Guild?", mode="graph")
    assert {hit.title: way(hit) for hit in answer.hits if hit.title == "Mill"} == {
        "Mill": [("question", "names", "Guild"), ("Guild", "run_by", "Mill")]
    }


async def test_alias_of_node_is_name_in_question(executor: Executor) -> None:
    pages = [made_node("ann", "Ann Lee", "She sails.", aliases=["Old Salt"]), *CHAIN[1:], *OTHERS]
    answer = await ask(world(pages), executor, "Who is Old Salt?", mode="graph")
    assert answer.titles[0] == "Ann Lee"
    assert "Mill" in answer.titles


@pytest.mark.parametrize("method", ["hop", "expansion", "pagerank"])
@pytest.mark.parametrize(
    ("edges", "is_found"),
    [("relation", True), ("member_of,run_by", True), ("run_by", False), ("link", False), ("named,relation", True)],
)
async def test_relations_are_followed_by_kind_and_predicate(
    executor: Executor, method: str, edges: str, *, is_found: bool
) -> None:
    answer = await ask(
        world([*CHAIN, *OTHERS]), executor, "Who is Ann Lee?", mode="graph", graph_method=method, edges=edges
    )
    assert ("Mill" in answer.titles) == is_found


async def test_unknown_predicate_is_refused_with_those_of_relations(executor: Executor) -> None:
    with pytest.raises(MalformedFilter, match="relations and of statements member_of, run_by"):
        await ask(world(CHAIN), executor, "Who is Ann Lee?", edges="knows")


async def test_heavier_edge_leads_to_higher_hit(executor: Executor) -> None:
    for heavy in ("left", "right"):
        pages = [CHAIN[0], made_node("left", "Left", "Oak."), made_node("right", "Right", "Elm.")]
        pages += [made_edge("ann", "has", each, weight=0.9 if each == heavy else 0.4) for each in ("left", "right")]
        answer = await ask(world([*pages, *OTHERS]), executor, "Who is Ann Lee?", mode="graph")
        titles = [title for title in answer.titles if title in ("Left", "Right")]
        assert titles[0] == heavy.title()


async def test_edges_join_documents_chunks_and_entities_alike(executor: Executor) -> None:
    harbour = Page("harbour", "Harbour", [["Quays."], ["Cranes of steel."]])
    letter = Page("letter", "Letter", [["Written by Bo Hagen."]], ["Bo Hagen"], types={"Bo Hagen": "person"})
    chunk = harbour.chunks()[1][0]
    entity = world([letter])[0].graph.entity("wiki", "bo hagen")
    assert entity is not None
    pages = [
        CHAIN[0],
        harbour,
        letter,
        made_edge("ann", "owns", chunk, name="e1"),
        made_edge("ann", "knows", entity_id("wiki", "bo hagen"), name="e2"),
        made_edge("wiki/other-1", "names", "ann", name="e3"),
        *OTHERS,
    ]
    answer = await ask(world(pages), executor, "Who is Ann Lee?", mode="graph")
    ways = {hit.title: way(hit)[1:] for hit in answer.hits}
    assert ways["Harbour"] == [("Ann Lee", "owns", "Harbour")]
    assert next(hit for hit in answer.hits if hit.title == "Harbour").chunk_id == chunk
    assert ways["Letter"] == [("Ann Lee", "knows", "Bo Hagen"), ("Bo Hagen", "mentioned_in", "Letter")]
    assert ways["Other 1"] == [("Ann Lee", "names", "Other 1")]


async def test_relation_leads_into_no_other_collection(executor: Executor) -> None:
    stranger = Page("stranger", "Stranger", [["Far."]], collection="private")
    pages = [CHAIN[0], stranger, made_edge("ann", "knows", stranger.chunks()[0][0], name="e1"), *OTHERS]
    pages.append(made_edge("ann", "knows", "private/stranger", name="e2"))
    answer = await ask(world(pages), executor, "Who is Ann Lee?", mode="graph")
    assert "Stranger" not in answer.titles


@pytest.mark.parametrize("request_", [HYBRID, GRAPH, EXPANSION, PAGERANK])
async def test_relations_elsewhere_leave_search_as_it_was(executor: Executor, request_: dict[str, Any]) -> None:
    def shown(answer: Answer) -> list[tuple[str, list[tuple[str, str, str]]]]:
        return [(hit.title, way(hit)) for hit in answer.hits]

    apart = [made_node("x", "Xylem", "Sap.", collection="trees"), made_node("y", "Yew", "Bark.", collection="trees")]
    apart.append(made_edge("x", "of", "y", collection="trees"))
    settings = SearchSettings(budgets=PATIENT)
    before = await ask(world(PAGES), executor, QUESTION, settings, collection="wiki", **request_)
    after = await ask(world([*PAGES, *apart]), executor, QUESTION, settings, collection="wiki", **request_)
    assert shown(after) == shown(before)
