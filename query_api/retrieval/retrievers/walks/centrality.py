"""How central a document is, whatever is asked: PageRank over the documents that name or link to each other."""

import threading
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.view import GraphView
from query_api.query.entity_linking import MAX_TARGETS

DAMPING = 0.85  # Brin, Page 1998
TOLERANCE = 1e-6
MOST_ROUNDS = 100

_kept: "WeakKeyDictionary[GraphView, NDArray[np.float64]]" = WeakKeyDictionary()
_lock = threading.Lock()


def centrality(view: GraphView) -> NDArray[np.float64]:
    """PageRank by document number, of all live documents; 0 for others. Computed at the first look at a view, which
    takes a while, and kept as long as the view is. Others who ask meanwhile wait."""
    with _lock:
        ranks = _kept.get(view)
        if ranks is None:
            ranks = _kept[view] = _of(view)
        return ranks


def _of(view: GraphView) -> NDArray[np.float64]:
    """An edge from each document that mentions another's title (alias weight / sqrt(documents of that name)) or links
    to it (weight)."""
    documents = view.live_documents()
    if not len(documents):
        return np.zeros(0)
    own = view.about_of(documents)
    _, places = np.unique(own.entity, return_inverse=True)
    targets = np.bincount(places)[places]
    few = np.flatnonzero(targets <= MAX_TARGETS)
    mentions = view.places_of(own.entity[few])
    row = few[mentions.asked]
    links = view.links_to(documents)
    sources = view.documents_of_passages(np.concatenate([mentions.passage, links.passage]))
    goals = np.concatenate([own.document[row], links.document])
    weights = np.concatenate([own.weight[row] / np.sqrt(targets[row]), links.weight]).astype(np.float64)
    elsewhere = sources != goals
    at = np.searchsorted(documents, sources[elsewhere]), np.searchsorted(documents, goals[elsewhere])
    ranks = np.zeros(int(documents[-1]) + 1)
    ranks[documents] = pagerank(*at, weights[elsewhere], len(documents))
    return ranks


def pagerank(
    sources: NDArray[np.int64], targets: NDArray[np.int64], weights: NDArray[np.float64], n_nodes: int
) -> NDArray[np.float64]:
    """(n_nodes,) the stationary distribution, to 1e-6 in sum, of a walk that goes on along an edge with probability .85
    and else anywhere; from a node that no edge leaves, always anywhere.

    Brin, Page: "The Anatomy of a Large-Scale Hypertextual Web Search Engine", WWW 1998; by power iteration.
    """
    leaving = np.bincount(sources, weights, minlength=n_nodes)
    shares = weights / leaving[sources]
    ranks = np.full(n_nodes, 1 / n_nodes)
    for _ in range(MOST_ROUNDS):
        followed = DAMPING * np.bincount(targets, ranks[sources] * shares, minlength=n_nodes)
        following = followed + (1 - followed.sum()) / n_nodes
        moved = np.abs(following - ranks).sum()
        ranks = following
        if moved < TOLERANCE:
            break
    return ranks
