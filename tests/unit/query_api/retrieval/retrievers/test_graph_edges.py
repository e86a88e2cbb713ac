"""Each way through the graph by itself, on worlds of a few documents, against scores worked by hand."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec import structs

from query_api.index.graph.view import GraphView
from query_api.query.analysis import Question
from query_api.query.entity_linking import LinkedNames, NamedEntity, QueryLink, link_names, strength
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.graph_edges import Activation
from query_api.retrieval.retrievers.graph_scoring import connected_share, name_use, open_gate
from schemas.graph_delta import RoleEdge
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.retrievers.small_world import ALPHA, HARBOUR, JANE, seed_of, view_of


def by_title(view: GraphView, activations: list[Activation]) -> dict[str, float]:
    best = graph_edges.strongest(activations)
    return {view.title(view.document_of_passage(passage)): activation.score for passage, activation in best.items()}


def test_a_name_is_surer_the_longer_and_the_less_shared() -> None:
    assert strength(1.0, 1, 1) == pytest.approx(0.6)
    assert strength(1.0, 3, 1) == 1.0
    assert strength(1.0, 9, 1) == 1.0
    assert strength(0.7, 2, 16) == pytest.approx(0.7 * 0.8 / 2)


def test_the_longest_title_wins_and_its_words_are_used_once() -> None:
    view = view_of(ALPHA, Page("ab", "Alpha Beta", [["x"]]), Page("b", "Beta", [["y"]]))
    names = link_names(Question("Is Alpha Beta good?"), view, "wiki")
    assert [(link.surface, view.title(link.document)) for link in names.links] == [("Alpha Beta", "Alpha Beta")]


def test_an_entity_without_a_document_is_named_too() -> None:
    names = link_names(Question("What lies in Lisbon?"), view_of(ALPHA, HARBOUR), "wiki")
    assert names.links == []
    assert [entity.surface for entity in names.entities] == ["Lisbon"]


def test_title_mentions_weigh_seed_and_sentence() -> None:
    view = view_of(ALPHA, JANE)
    seeds = [seed_of(view, ALPHA, weight=0.5, value=0.6)]
    enter = graph_edges.entry_passages(view, {})
    plain, telling = graph_edges.title_mentions(seeds, graph_edges.seed_entities(view, seeds), enter)
    assert by_title(view, plain) == {"Jane Doe": pytest.approx(0.5)}
    assert by_title(view, telling) == {"Jane Doe": pytest.approx(0.3)}


def test_a_title_that_everything_mentions_leads_on_less() -> None:
    """Of 160 passages that mention her each says (10 / 160)^.25 = 1/2."""
    crowd = [Page(f"c{at}", f"Crowd {at}", [["Jane Doe was here."]], ["Jane Doe"]) for at in range(158)]
    view = view_of(ALPHA, JANE, *crowd)
    seeds = [seed_of(view, ALPHA, value=0.6)]
    plain, telling = graph_edges.title_mentions(
        seeds, graph_edges.seed_entities(view, seeds), graph_edges.entry_passages(view, {})
    )
    assert by_title(view, plain) == {"Jane Doe": pytest.approx(0.5)}
    assert by_title(view, telling) == {"Jane Doe": pytest.approx(0.3)}
    assert graph_edges.inverse_frequency(np.array([0, 1, 10])).tolist() == [1.0, 1.0, 1.0], (
        "up to ten passages it says all"
    )


def test_a_document_is_entered_where_it_fits_the_question_best() -> None:
    view = view_of(JANE)
    document = view.document(JANE.key)
    assert document is not None
    lead, later = view.passages_of_document(document)
    assert graph_edges.entry_passages(view, {})(document) == [(lead, 1.0)]
    assert dict(graph_edges.entry_passages(view, {later: 0.9})(document)) == {later: 1.0, lead: graph_edges.LEAD_SHARE}
    assert dict(graph_edges.entry_passages(view, {later: 0.9, lead: 0.1})(document)) == {
        later: 1.0,
        lead: graph_edges.LEAD_SHARE,
    }


def test_shared_entities_count_less_the_more_passages_share_them() -> None:
    view = view_of(ALPHA, JANE, HARBOUR)
    seeds = [seed_of(view, ALPHA)]
    reached = by_title(view, list(graph_edges.shared(seeds, graph_edges.seed_entities(view, seeds))))
    assert reached["A harbour"] == pytest.approx(1 / math.sqrt(3)), "Lisbon stands in three passages"
    assert reached["Jane Doe"] == pytest.approx(1 / math.sqrt(2)), "she herself in two"


def test_an_entity_that_only_the_seed_mentions_joins_nothing() -> None:
    view = view_of(ALPHA, Page("other", "Other", [["Nothing."]]))
    seeds = [seed_of(view, ALPHA)]
    assert list(graph_edges.shared(seeds, graph_edges.seed_entities(view, seeds))) == []


def test_the_title_of_a_seed_is_found_where_it_is_mentioned() -> None:
    view = view_of(ALPHA, JANE)
    reached = by_title(view, list(graph_edges.mentioned_by(view, [seed_of(view, JANE, weight=0.5)])))
    assert reached == {"Alpha": pytest.approx(0.5 / math.sqrt(2))}


def test_links_lead_both_ways() -> None:
    linking = Page("linking", "Linking", [["See there."]], links=["wiki/jane"])
    view = view_of(linking, JANE)
    there = by_title(
        view, list(graph_edges.linked(view, [seed_of(view, linking)], graph_edges.entry_passages(view, {})))
    )
    back = by_title(view, list(graph_edges.linked(view, [seed_of(view, JANE)], graph_edges.entry_passages(view, {}))))
    assert there == {"Jane Doe": 1.0}
    assert back == {"Linking": 1.0}


def test_statements_lead_to_their_other_part() -> None:
    stating = Page("pep", "PEP 102", [["Header."]], facts=[("PEP 102", "superseded_by", "Jane Doe")])
    view = view_of(stating, JANE)
    seeds = [seed_of(view, stating)]
    enter = graph_edges.entry_passages(view, {})
    reached = by_title(view, list(graph_edges.stated(view, seeds, enter, {"superseded_by": 0.4}.__getitem__)))
    assert reached == {"Jane Doe": pytest.approx(0.4)}


def test_the_time_of_a_statement_leads_nowhere() -> None:
    stating = Page("pep", "PEP 102", [["Header."]], facts=[("PEP 102", "superseded_by", "Jane Doe")])
    year, made = Page("year", "1999", [["A year."]]), stating.contribution()
    [fact] = made.statements
    dated = structs.replace(fact, roles=[*fact.roles, RoleEdge("time", "1999", "1999")])
    contributions = [structs.replace(made, statements=[dated]), JANE.contribution(), year.contribution()]
    view = GraphView.from_contributions(contributions, 1)
    enter = graph_edges.entry_passages(view, {})
    reached = graph_edges.stated(view, [seed_of(view, stating)], enter, {"superseded_by": 0.4}.__getitem__)
    assert by_title(view, list(reached)) == {"Jane Doe": pytest.approx(0.4)}


def test_the_gate_opens_for_a_name_or_where_documents_lead_to_each_other() -> None:
    link, entity = QueryLink("Alpha", 1, 1, 0.6), NamedEntity("Lisbon", 2)

    def opened(links: list[QueryLink], entities: list[NamedEntity], use: float, web: float) -> float:
        return open_gate(LinkedNames(links, entities), lambda asked: dict.fromkeys(asked, use), lambda: web)

    assert opened([link], [], 1.0, 0.0) == 1.0
    assert opened([link], [], 0.25, 0.0) == 0.25, "a word that is mostly none opens it little"
    assert opened([link], [], 0.25, 1 / 3) == pytest.approx(20 / 27), "3 x² - 2 x³ of two thirds"
    assert open_gate(LinkedNames([link], [], given=True), lambda asked: dict.fromkeys(asked, 0.0), lambda: 0.0) == 1.0
    assert opened([], [entity], 0.0, 1 / 3) == pytest.approx(20 / 27)
    assert opened([], [], 0.0, 1 / 3) == pytest.approx(10 / 27)
    assert opened([], [entity], 0.0, 2 / 3) == 1.0, "where every second text leads on, documents are a web"
    assert opened([], [], 0.0, 2 / 3) == 0.5
    assert opened([], [entity], 0.0, 0.0) == 0.0
    assert opened([], [entity], 0.0, 0.03) < 0.012, "one passage in thirty is chance"


def test_a_word_is_as_surely_a_name_as_the_collection_uses_it_so() -> None:
    """`String` names a document, is mentioned by name once, and stands in 39 passages as an ordinary word."""
    pages = [
        Page("string", "String", [["String is a function."]], ["String"]),
        *(Page(f"use{number}", f"Use {number}", [[f"Joins the string number {number}."]]) for number in range(39)),
        Page("lisbon", "Lisbon", [["Lisbon lies on the river."]], ["Lisbon"]),
    ]
    snapshot, text, _ = world(pages)
    found = snapshot.graph.entities_named(["string", "lisbon"], None)
    use = name_use(snapshot.graph, text)([*found["string"], *found["lisbon"]])
    assert use[found["string"][0]] == 0.0
    assert use[found["lisbon"][0]] == 1.0


def test_connected_passages_mention_other_titles_or_link() -> None:
    linking = Page("linking", "Linking", [["See there."]], links=["wiki/jane", "wiki/linking"])
    view = view_of(ALPHA, JANE, HARBOUR, linking)
    seeds = [seed_of(view, page).passage for page in (ALPHA, HARBOUR, linking)]

    def surely(entities: Sequence[int]) -> dict[int, float]:
        return dict.fromkeys(entities, 1.0)

    assert connected_share(view, dict.fromkeys(seeds, 1.0), lambda asked: dict.fromkeys(asked, 0.0)) == pytest.approx(
        1 / 3
    ), "what is mentioned is no name"
    assert connected_share(view, dict.fromkeys(seeds, 1.0), surely) == pytest.approx(2 / 3), "the harbour leads nowhere"
    assert connected_share(view, {seeds[1]: 1.0}, surely) == 0.0
    assert connected_share(view, {}, surely) == 0.0
