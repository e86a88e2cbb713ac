"""The gate: how far the graph counts beside the other channels. An ungated graph costs ordinary searches much more
than it gives to those that need it."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from query_api.channels.query_links import MAX_TARGETS, Names
from query_api.graph.identifiers import MISSING
from query_api.graph.view import GraphView
from query_api.reading.snapshot import TextSnapshot

WITHOUT_NAMES = 0.5
WEB = 2.0
LOOKED_AT = 40  # from 20 to all that was found it makes no difference; 3 tell too little
SMOOTHING = 5  # passages: so many that mention a name are taken for granted, which decides for what is rare

NameUse = Callable[[Sequence[int]], Mapping[int, float]]
"""{entity: how surely its words are a name} of these entities."""


def name_use(view: GraphView, text: TextSnapshot) -> NameUse:
    """How surely a word is a name, from how the collection uses it: the share of the passages with the words of a name
    that mention what it names, p = (mentions + 5) / (holding + 5), told as 2 p - 1, from 0 for what is mostly an
    ordinary word to 1 for what is always a name.

    The keyphraseness of Mihalcea, Csomai: "Wikify! Linking Documents to Encyclopedic Knowledge", CIKM 2007, section
    3.1, smoothed. Each entity is looked up once.
    """
    known: dict[int, float] = {}

    def of(entities: Sequence[int]) -> Mapping[int, float]:
        unknown = [entity for entity in dict.fromkeys(entities) if entity not in known]
        called = view.entity_names(unknown)
        mentions = dict(
            zip(unknown, view.passage_frequencies(np.array(unknown, dtype=np.uint64)).tolist(), strict=True)
        )
        by_collection: dict[str, list[int]] = {}
        for entity, (collection, _) in called.items():
            by_collection.setdefault(collection, []).append(entity)
        for collection, of_collection in by_collection.items():
            holding = text.passages_holding([called[entity][1] for entity in of_collection], collection)
            for entity, count in zip(of_collection, holding, strict=True):
                share = (mentions[entity] + SMOOTHING) / (max(count, mentions[entity]) + SMOOTHING)
                known[entity] = max(0.0, 2 * share - 1)
        return {entity: known.get(entity, 0.0) for entity in entities}

    return of


def opening(names: Names, use: NameUse, connected: Callable[[], float]) -> float:
    """How surely the question names a title, by the surest of the names; and at least twice the share of what fits it
    that leads on by an explicit edge (`connected`), at most 1, in full when the question names anything at all, by half
    otherwise. Where every second text leads on, documents are a web; where one in fifteen does, chance is as likely."""
    surest = 0.0
    if names.links:
        entities = [link.entity for link in names.links]
        surest = 1.0 if names.given else max(use(entities).values())
    if surest >= 1.0:
        return surest
    web = smoothstep(min(1.0, WEB * connected()))
    return max(surest, web if names.links or names.entities else WITHOUT_NAMES * web)


def smoothstep(share: float) -> float:
    """3 x² - 2 x³, the cubic from 0 at 0 to 1 at 1 that is level at both."""
    return share * share * (3 - 2 * share)


def connected_share(view: GraphView, fitting: Mapping[int, float], use: NameUse) -> float:
    """The share of the best passages, {number: how well it fits}, that mention another document by its whole title, as
    far as that is surely a name, or link to one: whether this part of the collection is a web of documents, or
    documents side by side."""
    best = sorted(fitting, key=lambda passage: (-fitting[passage], passage))[:LOOKED_AT]
    if not best:
        return 0.0
    passages = np.array(best, dtype=np.int64)
    documents = view.documents_of_passages(passages)
    leading = np.zeros(len(best))
    outward = view.links_from(passages)
    leading[outward.asked[outward.document != documents[outward.asked]]] = 1.0
    mentions = view.places_in(passages)
    entities, places = np.unique(mentions.entity, return_inverse=True)
    about = view.about(entities)
    whole = (about.weight >= 1) & (np.bincount(about.asked, minlength=len(entities))[about.asked] <= MAX_TARGETS)
    target = np.full(len(entities), MISSING, dtype=np.int64)
    target[about.asked[whole]] = about.document[whole]
    elsewhere = (target[places] != MISSING) & (target[places] != documents[mentions.asked])
    surely = use(entities[target != MISSING].tolist())
    of_each = np.array([surely.get(entity, 0.0) for entity in entities.tolist()])
    np.maximum.at(leading, mentions.asked[elsewhere], of_each[places[elsewhere]])
    return float(leading.mean())
