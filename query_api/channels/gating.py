"""The gate: how far the graph counts beside the other channels. An ungated graph costs ordinary searches much more
than it gives to those that need it."""

from collections.abc import Mapping, Sequence

import numpy as np

from query_api.channels.query_links import MAX_TARGETS, NamedEntity, QueryLink
from query_api.graph.identifiers import MISSING
from query_api.graph.view import GraphView

WITHOUT_NAMES = 0.5
WEB = 2.0
LOOKED_AT = 40  # from 20 to all that was found it makes no difference; 3 tell too little


def opening(links: Sequence[QueryLink], entities: Sequence[NamedEntity], connected: float) -> float:
    """1 when the question names a title; else twice the share of what fits it that leads on by an explicit edge, at
    most 1, in full when the question names an entity at all, by half otherwise. Where every second text leads on,
    documents are a web."""
    if links:
        return 1.0
    web = min(1.0, WEB * connected)
    return web if entities else WITHOUT_NAMES * web


def connected_share(view: GraphView, fitting: Mapping[int, float]) -> float:
    """The share of the best passages, {number: how well it fits}, that mention another document by its whole title or
    link to one: whether this part of the collection is a web of documents, or documents side by side."""
    best = sorted(fitting, key=lambda passage: (-fitting[passage], passage))[:LOOKED_AT]
    if not best:
        return 0.0
    passages = np.array(best, dtype=np.int64)
    documents = view.documents_of_passages(passages)
    leading = np.zeros(len(best), dtype=bool)
    outward = view.links_from(passages)
    leading[outward.asked[outward.document != documents[outward.asked]]] = True
    mentions = view.places_in(passages)
    entities, places = np.unique(mentions.entity, return_inverse=True)
    about = view.about(entities)
    whole = (about.weight >= 1) & (np.bincount(about.asked, minlength=len(entities))[about.asked] <= MAX_TARGETS)
    target = np.full(len(entities), MISSING, dtype=np.int64)
    target[about.asked[whole]] = about.document[whole]
    elsewhere = (target[places] != MISSING) & (target[places] != documents[mentions.asked])
    leading[mentions.asked[elsewhere]] = True
    return float(leading.mean())
