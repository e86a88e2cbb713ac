"""The gate: how far the graph counts beside the other channels. An ungated graph costs ordinary searches much more
than it gives to those that need it."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from query_api.index.graph.edges import Numbers
from query_api.index.graph.identifiers import MISSING, Keys
from query_api.index.graph.view import GraphView
from query_api.index.text.snapshot import TextSnapshot
from query_api.query.entity_linking import MAX_TARGETS, LinkedNames

WITHOUT_NAMES = 0.5
WEB = 2.0
LOOKED_AT = 40  # from 20 to all that was found it makes no difference; 3 tell too little
SMOOTHING = 5  # passages: so many that mention a name are taken for granted, which decides for what is rare

NameUse = Callable[[Sequence[int]], Mapping[int, float]]
"""{entity: how surely its words are a name} of these entities."""


def name_use(view: GraphView, text: TextSnapshot) -> NameUse:
    """How surely a word is a name, from how the collection uses it: the share of the passages with the words of a name
    that mention what it names, p = (mentions + 5) / (holding + 5), told as 2 p - 1, from 0 for what is mostly an
    ordinary word to 1 for what is always a name. The passages of a document all hold its title: they do not count for
    it.

    The keyphraseness of Mihalcea, Csomai: "Wikify! Linking Documents to Encyclopedic Knowledge", CIKM 2007, section
    3.1, smoothed. Each entity is looked up once.
    """
    known: dict[int, float] = {}

    def of(entities: Sequence[int]) -> Mapping[int, float]:
        unknown = [entity for entity in dict.fromkeys(entities) if entity not in known]
        if unknown:
            keys = np.array(unknown, dtype=np.uint64)
            own, own_mentions = _own_passages(view, keys)
            mentions = view.passage_frequencies(keys) - own_mentions
            holding = np.maximum(_holding(view, text, unknown) - own, mentions)
            shares = (mentions + SMOOTHING) / (holding + SMOOTHING)
            known.update(zip(unknown, np.maximum(0.0, 2 * shares - 1).tolist(), strict=True))
        return {entity: known[entity] for entity in entities}

    return of


def _holding(view: GraphView, text: TextSnapshot, entities: Sequence[int]) -> Numbers:
    """(n_entities,) the passages of its collection that hold all words of each name."""
    called = view.entity_names(entities)
    counts: dict[int, int] = {}
    for collection in {collection for collection, _ in called.values()}:
        names = {entity: name for entity, (of, name) in called.items() if of == collection}
        counts |= zip(names, text.passages_holding(list(names.values()), collection), strict=True)
    return np.array([counts.get(entity, 0) for entity in entities], dtype=np.int64)


def _own_passages(view: GraphView, entities: Keys) -> tuple[Numbers, Numbers]:
    """(n_entities,) the passages of the documents that each is the title of, and how many of them mention it."""
    about = view.about(entities)
    ranges = [view.passages_of_document(document) for document in about.document.tolist()]
    owner = np.repeat(about.asked, [len(each) for each in ranges])
    mentions = view.mention_edges_in(np.array([passage for each in ranges for passage in each], dtype=np.int64))
    own = np.unique(mentions.asked[mentions.entity == entities[owner[mentions.asked]]])
    size = len(entities)
    return np.bincount(owner, minlength=size), np.bincount(owner[own], minlength=size)


def opening(names: LinkedNames, use: NameUse, connected: Callable[[], float]) -> float:
    """How surely the question names a title, by the surest of the names; and at least the smoothstep of twice the share
    of what fits it that leads on by an explicit edge (`connected`), in full when the question names anything at all, by
    half otherwise. Where every second text leads on, documents are a web; where one in thirty does, that is chance."""
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
    mentions = view.mention_edges_in(passages)
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
