"""The graph as a walk sees it: passages and the entities they share, with direct edges between passages.

Nodes are whole numbers: a passage is its number in the view, an entity is -1, -2 … in the order of first sight. Every
edge has the same weight from both its ends. What more than 40 passages have in common joins nothing.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np

from query_api.index.graph.columns import Keys
from query_api.index.graph.rows import Statement
from query_api.index.graph.view import GraphView
from query_api.query.entity_linking import MAX_TARGETS
from query_api.retrieval.retrievers.edge_filter import follows, looks_at
from query_api.retrieval.retrievers.graph_edges import MAX_SHARED, MIN_SHARED
from query_api.retrieval.retrievers.walks.push import Adjacent, Floats, Numbers

LEAST_WEIGHT = 0.1  # an entity gives .16 and more; only what hangs by one faint fact or shared alias may have less

_Edges = tuple[Numbers, Numbers, Floats]


class PassagesAndEntities:
    """One view's graph, its neighbours looked up as a walk asks for them.

    - An entity in df passages, 2 to 40, joins each with 1 / sqrt(df), once for each chunk that mentions it.
    - A passage that mentions the title of a document is joined with the first passage of that document: alias weight /
      sqrt(documents of that name).
    - A passage that links to a document likewise: weight / sqrt(links to it).
    - A passage that states a fact about a document likewise: confidence / sqrt(facts about it).

    `edges` are the kinds that are walked, all when empty. A walk goes both ways, so `title_mention` and `mentioned_by`
    are one.
    """

    def __init__(self, view: GraphView, edges: Collection[str]) -> None:
        self._view = view
        self._number: dict[int, int] = {}
        self._keys: list[int] = []
        kinds: list[tuple[set[str], Callable[[Numbers], _Edges]]] = [
            ({"shared_entity"}, self._mentioned),
            ({"title_mention", "mentioned_by"}, self._titles_mentioned),
            ({"title_mention", "mentioned_by"}, self._mentioning_titles),
            ({"link"}, self._linked_to),
            ({"link"}, self._linking),
            ({"statement"}, self._stated_about),
            ({"statement"}, self._stating),
        ]
        self._ways = [way for names, way in kinds if any(looks_at(name, edges) for name in names)]
        self._edges = edges

    def neighbours(self, nodes: Numbers) -> Adjacent:
        """The edges of these nodes; see Neighbours."""
        passages, entities = np.flatnonzero(nodes >= 0), np.flatnonzero(nodes < 0)
        found = [(passages, way(nodes[passages])) for way in self._ways] if len(passages) else []
        if len(entities):
            found.append((entities, self._mentions_of(nodes[entities])))
        asked = np.concatenate([of[edges[0]] for of, edges in found])
        node = np.concatenate([edges[1] for _, edges in found])
        weight = np.concatenate([edges[2] for _, edges in found])
        elsewhere = (nodes[asked] != node) & (weight > 0)
        order = np.argsort(asked[elsewhere], kind="stable")
        return Adjacent(asked[elsewhere][order], node[elsewhere][order], weight[elsewhere][order])

    def _mentioned(self, passages: Numbers) -> _Edges:
        mentions = self._view.places_in(passages)
        frequencies = self._view.passage_frequencies(mentions.entity)
        joins = (frequencies >= MIN_SHARED) & (frequencies <= MAX_SHARED)
        nodes = np.array([self._entity(key) for key in mentions.entity[joins].tolist()], dtype=np.int64)
        return mentions.asked[joins], nodes, 1 / np.sqrt(frequencies[joins])

    def _mentions_of(self, entities: Numbers) -> _Edges:
        keys = np.array([self._keys[-1 - entity] for entity in entities.tolist()], dtype=np.uint64)
        mentions = self._view.places_of(keys)
        return mentions.asked, mentions.passage, 1 / np.sqrt(self._view.passage_frequencies(keys))[mentions.asked]

    def _entity(self, key: int) -> int:
        number = self._number.setdefault(key, -1 - len(self._number))
        if -number > len(self._keys):
            self._keys.append(key)
        return number

    def _titles_mentioned(self, passages: Numbers) -> _Edges:
        mentions = self._view.places_in(passages)
        at, document, weight = self._titled(mentions.entity)
        return self._into(mentions.asked[at], document, weight)

    def _mentioning_titles(self, passages: Numbers) -> _Edges:
        first, entities, weight = self._own_titles(passages)
        mentions = self._view.places_of(entities)
        return first[mentions.asked], mentions.passage, weight[mentions.asked]

    def _own_titles(self, passages: Numbers) -> tuple[Numbers, Keys, Floats]:
        """(index into `passages`, entity that the document it begins is about, weight), each as `_titled` leaves it."""
        first, documents = self._begun_by(passages)
        own = self._view.about_of(documents)
        at, document, weight = self._titled(own.entity)
        mine = document == own.document[at]
        at = at[mine]
        return first[own.asked[at]], own.entity[at], weight[mine]

    def _titled(self, entities: Keys) -> _Edges:
        """(index into `entities`, document about it, weight), but for names of too many documents or passages."""
        about = self._view.about(entities)
        targets = np.bincount(about.asked, minlength=len(entities))[about.asked]
        crowd = self._view.passage_frequencies(about.entity)
        kept = (targets <= MAX_TARGETS) & (crowd <= MAX_SHARED)
        return about.asked[kept], about.document[kept], about.weight[kept] / np.sqrt(targets[kept])

    def _linked_to(self, passages: Numbers) -> _Edges:
        links = self._view.links_from(passages)
        documents, places = np.unique(links.document, return_inverse=True)
        crowd = np.bincount(self._view.links_to(documents).asked, minlength=len(documents))[places]
        few = crowd <= MAX_SHARED
        return self._into(links.asked[few], links.document[few], links.weight[few] / np.sqrt(crowd[few]))

    def _linking(self, passages: Numbers) -> _Edges:
        first, documents = self._begun_by(passages)
        links = self._view.links_to(documents)
        crowd = np.bincount(links.asked, minlength=len(documents))[links.asked]
        few = crowd <= MAX_SHARED
        return first[links.asked[few]], links.passage[few], links.weight[few] / np.sqrt(crowd[few])

    def _stated_about(self, passages: Numbers) -> _Edges:
        facts = self._followed(self._view.statements_in(passages))
        parts = [(fact.asked, fact.confidence, role.entity) for fact in facts for role in fact.roles]
        entities = np.array([entity for _, _, entity in parts], dtype=np.uint64)
        at, document, weight = self._titled(entities)
        crowd = self._facts(entities)[at]
        few = crowd <= MAX_SHARED
        asked = np.array([asked for asked, _, _ in parts], dtype=np.int64)[at][few]
        confidence = np.array([sure for _, sure, _ in parts], dtype=np.float64)[at]
        return self._into(asked, document[few], (confidence * weight / np.sqrt(crowd))[few])

    def _stating(self, passages: Numbers) -> _Edges:
        first, entities, weight = self._own_titles(passages)
        facts = self._followed(self._view.statements_with(entities))
        row = np.array([fact.asked for fact in facts], dtype=np.int64)
        crowd = np.bincount(row, minlength=len(entities))[row]
        few = crowd <= MAX_SHARED
        passage = np.array([fact.passage for fact in facts], dtype=np.int64)
        confidence = np.array([fact.confidence for fact in facts], dtype=np.float64)
        return first[row[few]], passage[few], (confidence * weight[row] / np.sqrt(crowd))[few]

    def _followed(self, facts: Sequence[Statement]) -> list[Statement]:
        return [fact for fact in facts if follows("statement", fact.predicate, self._edges)]

    def _facts(self, entities: Keys) -> Numbers:
        """In how many statements each of these has a part."""
        keys, places = np.unique(entities, return_inverse=True)
        asked = np.array([fact.asked for fact in self._view.statements_with(keys)], dtype=np.int64)
        counts: Numbers = np.bincount(asked, minlength=len(keys))[places]
        return counts

    def _into(self, asked: Numbers, documents: Numbers, weight: Floats) -> _Edges:
        """Edges into documents, which lead to their first passages."""
        ranges = [self._view.passages_of_document(document) for document in documents.tolist()]
        held = np.array([bool(each) for each in ranges], dtype=bool)
        return asked[held], np.array([each[0] for each in ranges if each], dtype=np.int64), weight[held]

    def _begun_by(self, passages: Numbers) -> tuple[Numbers, Numbers]:
        """(index into `passages`, document) of those that are the first of their documents."""
        documents = self._view.documents_of_passages(passages)
        firsts = np.array([self._view.passages_of_document(each)[0] for each in documents.tolist()], dtype=np.int64)
        first = np.flatnonzero(passages == firsts)
        return first, documents[first]
