"""Three documents in a row: Alpha names Jane Doe, she names Lisbon; the first and the last share nothing."""

from collections.abc import Collection

import numpy as np

from query_api.index.graph.view import GraphView
from query_api.index.text.text_segments import Scope
from query_api.query.analysis import Question
from query_api.retrieval.exact_scores import CandidateScores, ExactScorer
from query_api.retrieval.retrievers.graph_seeds import SeedSet
from query_api.retrieval.retrievers.walks import WalkStart
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.retrievers.small_world import seed_of

ALPHA = Page("alpha", "Alpha", [["Alpha was made by Jane Doe."]], ["Alpha", "Jane Doe"])
JANE = Page("jane", "Jane Doe", [["Jane Doe came from Lisbon."]], ["Jane Doe", "Lisbon"])
LISBON = Page("lisbon", "Lisbon", [["Lisbon lies on the Tagus."]], ["Lisbon", "Tagus"])
WIKI = Scope("wiki")
CHAIN = (ALPHA, JANE, LISBON)
NOTHING_FOUND = CandidateScores({}, np.zeros(0), np.zeros(0), np.zeros((0, 1), dtype=bool))


def beginning_at(
    seed: Page,
    *pages: Page,
    edges: Collection[str] = (),
    scope: Scope = WIKI,
    alone: bool = False,
    q: str = "Who made it?",
) -> WalkStart:
    """A walk from one passage of weight 1, all of whose entities tell; the question has one word, `made`."""
    snapshot, text, _ = world(pages)
    comparer = ExactScorer(text, q, "wiki", None, {}, with_words=True)
    seeds = SeedSet([], {}, [seed_of(snapshot.graph, seed)])
    return WalkStart(Question(q), snapshot.graph, seeds, comparer, NOTHING_FOUND, scope, 1.0, edges, alone)


def passage(view: GraphView, page: Page) -> int:
    document = view.document(page.key)
    assert document is not None
    return int(view.passages_of_document(document)[0])
