"""Each way through the graph by itself, on worlds of a few documents, against scores worked by hand."""

import math

import pytest

from query_api.channels import terms
from query_api.channels.gating import connected_share, opening
from query_api.channels.query_links import NamedEntity, QueryLink, names_in, strength
from query_api.channels.question import Question
from query_api.channels.residual import residual_query, residual_reaches, sharpened
from query_api.channels.terms import Held, Parent, Reach, Sentence
from query_api.graph.view import GraphView
from query_api.reading.snapshot import Candidate
from schemas.ids import DocumentKey
from tests.unit.query_api.in_memory_text import Page, world

ALPHA = Page("alpha", "Alpha", [["Alpha was made by Jane Doe in Lisbon."]], ["Alpha", "Jane Doe", "Lisbon"])
JANE = Page("jane", "Jane Doe", [["Jane Doe likes Lisbon.", "More."], ["Her later life."]], ["Jane Doe", "Lisbon"])
HARBOUR = Page("harbour", "A harbour", [["It lies in Lisbon."]], ["Lisbon"])


def view_of(*pages: Page) -> GraphView:
    return world(pages)[0].graph


def parent_of(view: GraphView, page: Page, weight: float = 1.0, value: float = 1.0) -> Parent:
    document = view.document(page.key)
    assert document is not None
    passage = view.passages_of_document(document)[0]
    held = {}
    for name in page.names:
        entity = view.entity(page.collection, name.lower())
        if entity is not None and name in page.passages[0][0]:
            held[entity] = Held(name.lower(), view.chunks_of_passage(passage)[0], value)
    return Parent(passage, document, weight, None, (), held)


def by_title(view: GraphView, reaches: list[Reach]) -> dict[str, float]:
    best = terms.strongest(reaches)
    return {view.title(view.document_of_passage(passage)): reach.score for passage, reach in best.items()}


def test_a_name_is_surer_the_longer_and_the_less_shared() -> None:
    assert strength(1.0, 1, 1) == pytest.approx(0.6)
    assert strength(1.0, 3, 1) == 1.0
    assert strength(1.0, 9, 1) == 1.0
    assert strength(0.7, 2, 16) == pytest.approx(0.7 * 0.8 / 2)


def test_the_longest_title_wins_and_its_words_are_used_once() -> None:
    view = view_of(ALPHA, Page("ab", "Alpha Beta", [["x"]]), Page("b", "Beta", [["y"]]))
    names = names_in(Question("Is Alpha Beta good?"), view, "wiki")
    assert [(link.surface, view.title(link.document)) for link in names.links] == [("Alpha Beta", "Alpha Beta")]


def test_an_entity_without_a_document_is_named_too() -> None:
    names = names_in(Question("What lies in Lisbon?"), view_of(ALPHA, HARBOUR), "wiki")
    assert names.links == []
    assert [entity.surface for entity in names.entities] == ["Lisbon"]


def test_title_mentions_weigh_parent_and_sentence() -> None:
    view = view_of(ALPHA, JANE)
    parents = [parent_of(view, ALPHA, weight=0.5, value=0.6)]
    enter = terms.entrances(view, {})
    plain, telling = terms.title_mentions(view, parents, terms.surroundings(view, parents), enter)
    assert by_title(view, plain) == {"Jane Doe": pytest.approx(0.5)}
    assert by_title(view, telling) == {"Jane Doe": pytest.approx(0.3)}


def test_a_document_is_entered_where_it_fits_the_question_best() -> None:
    view = view_of(JANE)
    document = view.document(JANE.key)
    assert document is not None
    lead, later = view.passages_of_document(document)
    assert terms.entrances(view, {})(document) == [(lead, 1.0)]
    assert dict(terms.entrances(view, {later: 0.9})(document)) == {later: 1.0, lead: terms.LEAD_SHARE}
    assert dict(terms.entrances(view, {later: 0.9, lead: 0.1})(document)) == {later: 1.0, lead: terms.LEAD_SHARE}


def test_shared_entities_count_less_the_more_passages_share_them() -> None:
    view = view_of(ALPHA, JANE, HARBOUR)
    parents = [parent_of(view, ALPHA)]
    reached = by_title(view, list(terms.shared(view, parents, terms.surroundings(view, parents))))
    assert reached["A harbour"] == pytest.approx(1 / math.sqrt(3)), "Lisbon stands in three passages"
    assert reached["Jane Doe"] == pytest.approx(1 / math.sqrt(2)), "she herself in two"


def test_an_entity_that_only_the_parent_mentions_joins_nothing() -> None:
    view = view_of(ALPHA, Page("other", "Other", [["Nothing."]]))
    parents = [parent_of(view, ALPHA)]
    assert list(terms.shared(view, parents, terms.surroundings(view, parents))) == []


def test_the_title_of_a_parent_is_found_where_it_is_mentioned() -> None:
    view = view_of(ALPHA, JANE)
    reached = by_title(view, list(terms.mentioned_by(view, [parent_of(view, JANE, weight=0.5)])))
    assert reached == {"Alpha": pytest.approx(0.5 / math.sqrt(2))}


def test_links_lead_both_ways() -> None:
    linking = Page("linking", "Linking", [["See there."]], links=["wiki/jane"])
    view = view_of(linking, JANE)
    there = by_title(view, list(terms.linked(view, [parent_of(view, linking)], terms.entrances(view, {}))))
    back = by_title(view, list(terms.linked(view, [parent_of(view, JANE)], terms.entrances(view, {}))))
    assert there == {"Jane Doe": 1.0}
    assert back == {"Linking": 1.0}


def test_statements_lead_to_their_other_part() -> None:
    stating = Page("pep", "PEP 102", [["Header."]], facts=[("PEP 102", "superseded_by", "Jane Doe")])
    view = view_of(stating, JANE)
    parents = [parent_of(view, stating)]
    enter = terms.entrances(view, {})
    asked = by_title(view, list(terms.stated(view, parents, enter, lambda predicate: 1.0)))
    unasked = by_title(view, list(terms.stated(view, parents, enter, lambda predicate: 0.0)))
    assert asked == {"Jane Doe": pytest.approx(1.0)}
    assert unasked == {"Jane Doe": pytest.approx(terms.FLOOR_OF_VALUE)}


def test_the_gate_opens_for_a_title_or_where_documents_lead_to_each_other() -> None:
    link, entity = QueryLink("Alpha", 1, 1, 0.6), NamedEntity("Lisbon", 2)
    assert opening([link], [], 0.0) == 1.0
    assert opening([], [entity], 2 / 3) == pytest.approx(2 / 3)
    assert opening([], [], 2 / 3) == pytest.approx(1 / 3)
    assert opening([], [entity], 0.0) == 0.0


def test_connected_passages_mention_other_titles_or_link() -> None:
    linking = Page("linking", "Linking", [["See there."]], links=["wiki/jane", "wiki/linking"])
    view = view_of(ALPHA, JANE, HARBOUR, linking)
    parents = [parent_of(view, page).passage for page in (ALPHA, HARBOUR, linking)]
    assert connected_share(view, parents) == pytest.approx(2 / 3), "the harbour leads nowhere"
    assert connected_share(view, parents[1:2]) == 0.0
    assert connected_share(view, []) == 0.0


def test_the_residual_query_asks_what_is_open_about_what_is_new() -> None:
    sentences = (
        Sentence("Alpha was directed by Jane Doe.", " alpha was directed by jane doe ", 0.9, ("jane doe", "alpha")),
        Sentence("It was shot in Rome.", " it was shot in rome ", 0.1, ("rome",)),
        Sentence("Unrelated Name.", " unrelated name ", 0.0, ("unrelated name",)),
    )
    parent = Parent(0, 0, 1.0, None, sentences, {})
    assert residual_query(Question("Where was the director of Alpha born?"), parent) == "director born jane doe rome"
    assert residual_query(Question("Where?"), Parent(0, 0, 1.0, None, (), {})) == ""


def test_sharpening_keeps_the_head_of_a_list() -> None:
    scores = [1 - number * 0.02 for number in range(30)]
    sharp = sharpened(scores)
    assert sharp[0] == 1.0
    assert sharp[12] == pytest.approx((0.76 - 0.52) / 0.48)
    assert sharp[24:] == [0.0] * 6
    assert sharpened([1.0, 0.5]) == [1.0, 0.5]


def test_hops_are_scaled_by_their_best_and_by_their_parent() -> None:
    made = world([ALPHA, JANE, HARBOUR])
    view = made[0].graph
    jane = DocumentKey("wiki", "jane")
    hop = [Candidate(JANE.passage_ids()[0], 8.0, jane), Candidate(HARBOUR.passage_ids()[0], 4.0, jane)]
    plain, _ = residual_reaches(view, [parent_of(view, ALPHA, weight=0.5)], [hop])
    assert by_title(view, plain) == {"Jane Doe": 0.5, "A harbour": 0.25}
