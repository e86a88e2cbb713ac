"""The gate: how far the graph counts beside the other channels. An ungated graph costs ordinary searches much more
than it gives to those that need it."""

from collections.abc import Sequence

import numpy as np

from query_api.channels.query_links import MAX_TARGETS, NamedEntity, QueryLink
from query_api.graph.identifiers import MISSING
from query_api.graph.view import GraphView

WITHOUT_NAMES = 0.5
WEB = 2.0


def opening(links: Sequence[QueryLink], entities: Sequence[NamedEntity], connected: float) -> float:
    """1 when the question names a title; else twice the share of its parents that lead on by an explicit edge, at most
    1, in full when the question names an entity at all, by half otherwise. Where every second text leads on, documents
    are a web."""
    if links:
        return 1.0
    web = min(1.0, WEB * connected)
    return web if entities else WITHOUT_NAMES * web


def connected_share(view: GraphView, parents: Sequence[int]) -> float:
    """The share of these passages that mention another document by its whole title or link to one: whether this part
    of the collection is a web of documents, or documents side by side."""
    if not parents:
        return 0.0
    passages = np.array(parents, dtype=np.int64)
    documents = np.array([view.document_of_passage(passage) for passage in parents], dtype=np.int64)
    leading = np.zeros(len(parents), dtype=bool)
    outward = view.links_from(passages)
    leading[outward.asked[outward.document != documents[outward.asked]]] = True
    mentions = view.mentions_in(passages)
    entities, places = np.unique(mentions.entity, return_inverse=True)
    about = view.about(entities)
    whole = (about.weight >= 1) & (np.bincount(about.asked, minlength=len(entities))[about.asked] <= MAX_TARGETS)
    target = np.full(len(entities), MISSING, dtype=np.int64)
    target[about.asked[whole]] = about.document[whole]
    elsewhere = (target[places] != MISSING) & (target[places] != documents[mentions.asked])
    leading[mentions.asked[elsewhere]] = True
    return float(leading.mean())
