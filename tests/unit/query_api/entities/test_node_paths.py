"""Paths between any two nodes: documents, chunks, entities and what people made."""

import pytest

from query_api.entities.node_paths import NodePath, node_paths
from query_api.index.graph.explorer import Explorer
from query_api.index.graph.view import GraphView
from tests.support.fakes.text_stores import Page, made_edge, made_node

PEOPLE = dict.fromkeys(("Ada", "Bo", "Cleo"), "person")
PAGES = [
    Page("one", "One", [["Ada measures."], ["Ada writes to Bo.", "The end."]], ["Ada", "Bo"], types=PEOPLE),
    Page("two", "Two", [["Bo answers Ada."], ["Bo leaves."]], ["Ada", "Bo"], links=["wiki/three"], types=PEOPLE),
    Page("three", "Three", [["Cleo waits."]], ["Cleo"], types=PEOPLE),
    Page("alone", "Alone", [["Nothing here."]]),
]
MADE = [made_node("team", "Team Petrel"), made_edge("team", "owns", "wiki/three")]


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    view = GraphView.from_contributions([page.contribution() for page in [*PAGES, *MADE]], 0)
    return Explorer(view, lambda ids: dict.fromkeys(ids, "text"))


def between(explorer: Explorer, source: str, target: str, max_steps: int = 4, limit: int = 20) -> list[NodePath]:
    start, end = explorer.find(source, "wiki"), explorer.find(target, "wiki")
    assert start is not None
    assert end is not None
    return node_paths(explorer, start, end, max_steps, limit).paths


def walked(path: NodePath) -> list[str]:
    return [path.steps[0].source.label, *(step.target.label for step in path.steps)]


def test_documents_are_joined_by_what_their_chunks_mention_the_shortest_first(explorer: Explorer) -> None:
    paths = between(explorer, "one", "two")
    assert walked(paths[0]) == ["One", "text", "ada", "text", "Two"]
    assert [step.kind for step in paths[0].steps] == ["has_chunk", "mentions", "mentions", "has_chunk"]
    assert [step.inverse for step in paths[0].steps] == [False, False, True, True]
    assert [len(path.steps) for path in paths] == sorted(len(path.steps) for path in paths)


def test_a_hand_made_node_is_joined_over_its_edges_and_links(explorer: Explorer) -> None:
    (path,) = between(explorer, "team", "wiki/three", max_steps=1)
    assert walked(path) == ["Team Petrel", "Three"]
    assert (path.steps[0].predicate, path.steps[0].kind, path.steps[0].source.type) == ("owns", "hand_made", "thing")
    first = between(explorer, "team", "Bo")[0]
    assert walked(first) == ["Team Petrel", "Three", "text", "bo"]
    assert [step.kind for step in first.steps] == ["hand_made", "links_to", "mentions"]


def test_no_path_visits_a_node_twice_or_returns_to_a_document_that_it_left(explorer: Explorer) -> None:
    names = ["one", "two", "three", "team", "Ada", "Bo", PAGES[0].chunks()[0][0], PAGES[1].chunks()[0][0]]
    seen = 0
    for source in names:
        for target in names:
            for path in between(explorer, source, target, max_steps=6):
                ids = [path.steps[0].source.id, *(step.target.id for step in path.steps)]
                assert len(set(ids)) == len(ids)
                refs = [explorer.find(each or "", "wiki") for each in ids]
                documents = [explorer.document_of(ref) for ref in refs if ref is not None]
                entered = [each for at, each in enumerate(documents) if at == 0 or each != documents[at - 1]]
                known = [each for each in entered if each is not None]
                assert len(set(known)) == len(known), ids
                seen += 1
    assert seen > 20


def test_from_a_node_to_itself_and_to_what_is_apart_there_is_no_path(explorer: Explorer) -> None:
    assert between(explorer, "one", "one", 6) == []
    assert between(explorer, "one", "alone", 6) == []
    assert between(explorer, "one", "two", 3) == []


def test_no_more_paths_than_asked_for(explorer: Explorer) -> None:
    assert len(between(explorer, "one", "two", 6, limit=1)) == 1


def test_a_way_through_what_very_many_mention_is_found_from_the_end() -> None:
    pages = [Page(f"d{at}", f"Page {at}", [["The Hub stands."]], ["Hub"], types={"Hub": "place"}) for at in range(600)]
    view = GraphView.from_contributions([page.contribution() for page in pages], 0)
    hub = Explorer(view, lambda ids: dict.fromkeys(ids, "text"))
    start, end = hub.find("d0", "wiki"), hub.find("d599", "wiki")
    assert start is not None
    assert end is not None
    found = node_paths(hub, start, end, 4, 3)
    assert [walked(path) for path in found.paths] == [["Page 0", "text", "hub", "text", "Page 599"]]
    assert found.truncated


def test_path_over_edges_of_a_predicate_goes_by_these_alone(explorer: Explorer) -> None:
    start, end = explorer.find("team", "wiki"), explorer.find("three", "wiki")
    assert start is not None
    assert end is not None
    lengths = [
        [len(path.steps) for path in node_paths(explorer, start, end, 4, 9, predicates=each).paths]
        for each in (["owns"], ["uses"])
    ]
    assert lengths == [[1], []]
