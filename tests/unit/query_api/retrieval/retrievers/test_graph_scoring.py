"""The graph channel's sum, term by term, against numbers worked by hand."""

import numpy as np
import pytest

from query_api.index.graph.view import GraphView
from query_api.index.text.text_segments import EVERYTHING, Scope
from query_api.retrieval.exact_scores import CandidateScores, ExactScorer
from query_api.retrieval.retrievers.graph_edges import Activation, Reason, Seed
from query_api.retrieval.retrievers.graph_scoring import (
    MAX_REACHED,
    GraphScores,
    reached_passages,
    uncovered_idf_shares,
)
from query_api.retrieval.retrievers.graph_seeds import PassageNumbers, ResidualHits, SeedSet
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.retrievers.small_world import ALPHA, HARBOUR, JANE, seed_of

REACHED = {"p": 10, "q": 11, "r": 12, "s": 13}
SEEDS = [Seed(12, 0, 0.5, None, (), {}), Seed(99, 1, 1.0, None, (), {})]
NO_SHARES = np.zeros((2, 5))


def compared(*names: str) -> CandidateScores:
    rows = len(names)
    return CandidateScores(
        dict(zip(names, range(rows), strict=True)),
        np.ones(rows),
        np.zeros(rows),
        np.zeros((rows, 0), dtype=bool),
    )


def sums() -> GraphScores:
    """The rows of what was compared are in another order than what was reached, with one more among them."""
    return GraphScores(REACHED, compared("x", "s", "r", "q", "p"))


def scores(of: GraphScores) -> dict[str, float]:
    return of.results(1.0, SeedSet([], {}, SEEDS)).scores


def reasons(of: GraphScores) -> dict[str, Reason]:
    return of.results(1.0, SeedSet([], {}, SEEDS)).reasons


def test_of_each_term_the_strongest_reach_counts_times_its_weight() -> None:
    made = sums()
    mentions = [Activation(10, 0.5, Reason("mentions", 0)), Activation(10, 0.3, Reason("mentions", 1))]
    links = [Activation(10, 0.2, Reason("links_to", 1)), Activation(77, 0.9, Reason("links_to", 1))]
    made.add_edges([(0.4, mentions), (1.0, links)], NO_SHARES)
    assert scores(made) == {"p": pytest.approx(0.4 * 0.5 + 0.2)}
    assert reasons(made) == {"p": Reason("mentions", 0)}, "the one that added most; of equals the first"


def test_an_edge_to_what_holds_the_open_words_counts_up_to_as_much_again() -> None:
    """From the second seed p holds all that is open: .4 x 2 = .8 is above .5."""
    shares = NO_SHARES.copy()
    shares[1, 4] = 1.0
    shares[:, 3] = 1.0
    made = sums()
    mentions = [Activation(10, 0.5, Reason("mentions", 0)), Activation(10, 0.4, Reason("mentions", 1))]
    made.add_edges([(0.4, mentions), (1.0, [Activation(11, 0.8, Reason("names", 0))])], shares)
    assert scores(made) == {"q": pytest.approx(0.8), "p": pytest.approx(0.32)}, "a name leaves no seed behind"
    assert reasons(made)["p"] == Reason("mentions", 1)


def test_hops_count_by_their_seed_and_never_lead_to_it() -> None:
    """Seed r of weight .5, best 8. p: .5 x .4; q of 6: .5 x .4 x .75 = .15; s: 0."""
    made = sums()
    made.add_hop(ResidualHits(0, "asked", 8.0, ()), SEEDS[0], np.array([8.0, 6.0, 16.0, 0.0]))
    made.add_hop_scores(0.4)
    assert scores(made) == {"p": pytest.approx(0.2), "q": pytest.approx(0.15)}
    assert reasons(made)["q"] == Reason("continues", 0)


def test_of_two_hops_the_better_counts_once_and_is_told() -> None:
    """The second seed has weight 1: half of 8 is as good as the first's 1; to q it is better."""
    made = sums()
    made.add_hop(ResidualHits(0, "asked", 8.0, ()), SEEDS[0], np.array([8.0, 2.0, 0.0, 0.0]))
    made.add_hop(ResidualHits(1, "asked", 8.0, ()), SEEDS[1], np.array([4.0, 6.0, 0.0, 0.0]))
    made.add_hop_scores(1.0)
    assert scores(made) == {"q": pytest.approx(0.75), "p": pytest.approx(0.5)}
    assert (reasons(made)["p"].origin, reasons(made)["q"].origin) == (0, 1)


def test_an_edge_explains_more_than_a_hop_or_a_match_whatever_they_add() -> None:
    made = sums()
    made.add_edges(
        [(0.1, [Activation(12, 0.1, Reason("shares", 1))]), (1.0, [Activation(12, 1.0, Reason("matches", 0))])],
        NO_SHARES,
    )
    made.add_edges([(1.0, [Activation(13, 0.2, Reason("shares", 1))])], NO_SHARES)
    made.add_hop(ResidualHits(1, "asked", 8.0, ()), SEEDS[1], np.array([0.0, 0.0, 0.0, 8.0]))
    made.add_hop_scores(1.0)
    assert scores(made) == {"s": pytest.approx(1.2), "r": pytest.approx(1.01)}
    assert reasons(made) == {"s": Reason("shares", 1), "r": Reason("shares", 1)}


def test_its_own_text_is_added_to_what_was_reached_only() -> None:
    made = sums()
    made.add_edges([(1.0, [Activation(10, 0.2, Reason("mentions", 0))])], NO_SHARES)
    made.add_prior(0.5, {10: 0.6, 11: 0.9, 77: 1.0})
    assert scores(made) == {"p": pytest.approx(0.5)}


def test_equal_scores_stand_in_the_order_of_their_ids() -> None:
    made = sums()
    made.add_edges([(1.0, [Activation(passage, 0.2, Reason("mentions", 0)) for passage in (13, 11, 10)])], NO_SHARES)
    assert list(scores(made)) == ["p", "q", "s"]


def test_the_open_share_is_what_a_passage_holds_of_what_the_seed_does_not() -> None:
    """Four words of weight 1. Alpha holds one: each of the others a third. The harbour holds one other."""
    snapshot, text, _ = world([ALPHA, JANE, HARBOUR])
    comparer = ExactScorer(text, "Alpha likes harbour life", "wiki", None, {}, with_words=True)
    seeds = [seed_of(snapshot.graph, ALPHA), seed_of(snapshot.graph, HARBOUR)]
    asked = comparer.score([*ALPHA.passage_ids(), *JANE.passage_ids(), *HARBOUR.passage_ids()])
    shares = uncovered_idf_shares(snapshot.graph, comparer, asked, seeds)
    third = pytest.approx(1 / 3)
    assert shares.tolist() == [[0.0, third, third, third], [third, third, third, 0.0]]
    assert uncovered_idf_shares(snapshot.graph, comparer, asked, []).shape == (0, 4)


def test_where_the_seed_holds_every_word_nothing_is_open() -> None:
    snapshot, text, _ = world([ALPHA, JANE])
    comparer = ExactScorer(text, "Alpha of Lisbon", "wiki", None, {}, with_words=True)
    shares = uncovered_idf_shares(
        snapshot.graph, comparer, comparer.score(JANE.passage_ids()), [seed_of(snapshot.graph, ALPHA)]
    )
    assert shares.tolist() == [[0.0, 0.0]]


def number(view: GraphView, page: Page) -> int:
    document = view.document(page.key)
    assert document is not None
    return int(view.passages_of_document(document)[0])


def test_what_can_be_scored_is_what_channels_and_hops_found_as_far_as_the_graph_has_it_and_what_edges_reach() -> None:
    view = world([ALPHA, JANE, HARBOUR])[0].graph
    alpha, jane, harbour = (page.passage_ids()[0] for page in (ALPHA, JANE, HARBOUR))
    hop = ResidualHits(0, "asked", 8.0, (jane, "f" * 32))
    edges = [(1.0, [Activation(number(view, HARBOUR), 0.5, Reason("shares", 0))])]
    reached = reached_passages(
        view, PassageNumbers(view), EVERYTHING, compared("e" * 32, alpha), edges, [hop], MAX_REACHED
    )
    assert reached == {alpha: number(view, ALPHA), jane: number(view, JANE), harbour: number(view, HARBOUR)}


def test_an_edge_out_of_the_scope_is_not_followed() -> None:
    elsewhere = Page("x", "X", [["x"]], collection="other")
    view = world([ALPHA, elsewhere])[0].graph
    edges = [(1.0, [Activation(number(view, elsewhere), 0.5, Reason("links_to", 0))])]
    assert reached_passages(view, PassageNumbers(view), Scope("wiki"), compared(), edges, [], MAX_REACHED) == {}
    assert reached_passages(view, PassageNumbers(view), EVERYTHING, compared(), edges, [], MAX_REACHED) == {
        elsewhere.passage_ids()[0]: number(view, elsewhere)
    }


def test_of_many_passages_those_that_the_edges_reach_most_strongly_together_are_scored() -> None:
    """Two passages more than are scored; the first two fall behind, for a second edge leads to every other."""
    long = Page("long", "Long", [[f"Part {at}."] for at in range(MAX_REACHED + 2)])
    view = world([long])[0].graph
    first = number(view, long)
    everywhere = [Activation(first + at, 0.5, Reason("shares", 0)) for at in range(MAX_REACHED + 2)]
    again = [Activation(first + at, 0.2, Reason("links_to", 0)) for at in range(2, MAX_REACHED + 2)]
    reached = reached_passages(
        view, PassageNumbers(view), EVERYTHING, compared(), [(0.4, everywhere), (0.4, again)], [], MAX_REACHED
    )
    assert set(reached.values()) == set(range(first + 2, first + MAX_REACHED + 2))
