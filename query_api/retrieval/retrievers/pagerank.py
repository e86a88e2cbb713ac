"""PageRank: personalised, by push from seeds, over passages and the entities they share; and of documents."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.edges import Statement
from query_api.index.graph.hand_made_relations import End, has_relations, relations_of
from query_api.index.graph.identifiers import Keys
from query_api.index.graph.view import GraphView
from query_api.query.entity_linking import MAX_TARGETS
from query_api.retrieval.retrievers.graph_edges import MAX_SHARED, MIN_SHARED, edge_enabled, edge_kind_enabled
from query_api.retrieval.retrievers.relation_walks import MAX_FAN

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Kind = TypeVar("Kind", bound=np.generic)


class Adjacent(NamedTuple):
    """Edges in columns of equal length: `query_index` is into the queried nodes, each node's edges adjacent."""

    query_index: Numbers
    node: Numbers
    weight: Floats


Neighbours = Callable[[Numbers], Adjacent]
"""The edges of nodes. Symmetric: an edge has the same weight from both its ends."""


class Mass(NamedTuple):
    """What push found, by node: `estimate` p and `residual` r, with personalised PageRank = p + Σ r(u) · that of u."""

    node: Numbers
    estimate: Floats
    residual: Floats


def push(
    neighbours: Neighbours,
    seeds: Mapping[int, float],
    *,
    restart: float,
    epsilon: float,
    least_weight: float,
    most_opened: int,
) -> Mass:
    """Spread the mass of `seeds` (positive, scaled to sum 1) until r(u) < epsilon · d(u) everywhere, d(u) the sum of
    the weights at u; a node without edges keeps its mass.

    A push keeps the share `restart` of what a node holds and spreads the rest over its edges by their weights. Then
    0 <= PageRank(u) - p(u) <= epsilon · d(u), and at most 1 / (restart · epsilon) of degree is pushed. What holds less
    than epsilon · least_weight is not pushed: the first bound needs no degree below `least_weight`. Once
    `most_opened` nodes have been, those with most first, no further one is; what the others hold stays in the residual,
    outside the bound.
    """
    graph = _GrowingGraph(neighbours)
    rows = graph.rows_of(np.array(list(seeds), dtype=np.int64))
    residual = np.zeros(graph.size)
    residual[rows] = np.array(list(seeds.values())) / sum(seeds.values())
    estimate = np.zeros(graph.size)
    while True:
        seen = np.flatnonzero(residual >= epsilon * least_weight)
        closed = seen[~graph.opened[seen]]
        closed = closed[np.argsort(-residual[closed], kind="stable")]
        graph.open(closed[: max(0, most_opened - graph.n_opened)])
        residual, estimate = _resized(residual, graph.size), _resized(estimate, graph.size)
        due = np.flatnonzero(graph.opened & (residual > 0) & (residual >= epsilon * graph.degree))
        if not len(due):
            return Mass(graph.nodes, estimate, residual)
        mass = residual[due]
        isolated = graph.degree[due] == 0
        estimate[due] += np.where(isolated, mass, restart * mass)
        residual[due] = 0.0
        source, target, share = graph.edges_of(due)
        residual += np.bincount(target, (1 - restart) * mass[source] * share, minlength=graph.size)


class _GrowingGraph:
    """The part of a graph that has been reached: nodes in rows, in the order in which they were first reached."""

    def __init__(self, neighbours: Neighbours) -> None:
        self.opened: NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self.degree: Floats = np.zeros(0)
        self._neighbours = neighbours
        self._row: dict[int, int] = {}
        self._targets: dict[int, Numbers] = {}
        self._shares: dict[int, Floats] = {}

    @property
    def size(self) -> int:
        return len(self._row)

    @property
    def n_opened(self) -> int:
        return len(self._targets)

    @property
    def nodes(self) -> Numbers:
        return np.fromiter(self._row, dtype=np.int64, count=self.size)

    def rows_of(self, nodes: Numbers) -> Numbers:
        """The rows of these nodes, new ones at the end."""
        rows = np.array([self._row.setdefault(node, len(self._row)) for node in nodes.tolist()], dtype=np.int64)
        self.opened, self.degree = _resized(self.opened, self.size), _resized(self.degree, self.size)
        return rows

    def open(self, rows: Numbers) -> None:
        """Look up the edges of rows whose edges are not known yet."""
        if not len(rows):
            return
        edges = self._neighbours(self.nodes[rows])
        targets = self.rows_of(edges.node)
        self.opened[rows] = True
        self.degree[rows] = np.bincount(edges.query_index, edges.weight, minlength=len(rows))
        bounds = np.searchsorted(edges.query_index, np.arange(len(rows) + 1))
        shares = edges.weight / self.degree[rows][edges.query_index]
        for at, row in enumerate(rows.tolist()):
            mine = slice(bounds[at], bounds[at + 1])
            self._targets[row], self._shares[row] = targets[mine], shares[mine]

    def edges_of(self, rows: Numbers) -> tuple[Numbers, Numbers, Floats]:
        """The edges of opened rows: index into `rows`, row of the far end, share of the node's weight."""
        targets = [self._targets[row] for row in rows.tolist()]
        sources = np.repeat(np.arange(len(rows)), [len(each) for each in targets])
        return sources, np.concatenate(targets), np.concatenate([self._shares[row] for row in rows.tolist()])


def _resized(array: NDArray[Kind], size: int) -> NDArray[Kind]:
    return np.concatenate([array, np.zeros(size - len(array), dtype=array.dtype)]) if size > len(array) else array


LEAST_WEIGHT = 0.1  # an entity gives .16 and more; only what hangs by one faint fact or shared alias may have less

_Edges = tuple[Numbers, Numbers, Floats]


class PassagesAndEntities:
    """One view's graph, its neighbours looked up as a walk asks for them.

    - An entity in df passages, 2 to 40, joins each with 1 / sqrt(df), once for each chunk that mentions it.
    - A passage that mentions the title of a document is joined with the first passage of that document: alias weight /
      sqrt(documents of that name).
    - A passage that links to a document likewise: weight / sqrt(links to it).
    - A passage that states a fact about a document likewise: confidence / sqrt(facts about it).
    - A relation joins what its ends are, with its weight, the heaviest 200 of each: a document is its first passage, or
      itself where it has none.

    `edges` are the kinds that are walked, all when empty. A walk goes both ways, so `title_mention` and `mentioned_by`
    are one.
    """

    def __init__(self, view: GraphView, edges: Collection[str]) -> None:
        self._view = view
        self._number: dict[End, int] = {}
        self._ends: list[End] = []
        kinds: list[tuple[set[str], Callable[[Numbers], _Edges]]] = [
            ({"shared_entity"}, self._mentioned),
            ({"title_mention", "mentioned_by"}, self._titles_mentioned),
            ({"title_mention", "mentioned_by"}, self._mentioning_titles),
            ({"link"}, self._linked_to),
            ({"link"}, self._linking),
            ({"statement"}, self._stated_about),
            ({"statement"}, self._stating),
            *([({"relation"}, self._related)] if has_relations(view.segments) else []),
        ]
        self._ways = [way for names, way in kinds if any(edge_kind_enabled(name, edges) for name in names)]
        self._edges = edges

    def neighbours(self, nodes: Numbers) -> Adjacent:
        """The edges of these nodes; see Neighbours."""
        passages, entities = np.flatnonzero(nodes >= 0), np.flatnonzero(nodes < 0)
        found = [(passages, way(nodes[passages])) for way in self._ways] if len(passages) else []
        if len(entities):
            found += [(entities, way(nodes[entities])) for way in (self._mentions_of, self._related)]
        query_index = np.concatenate([of[edges[0]] for of, edges in found])
        node = np.concatenate([edges[1] for _, edges in found])
        weight = np.concatenate([edges[2] for _, edges in found])
        elsewhere = (nodes[query_index] != node) & (weight > 0)
        order = np.argsort(query_index[elsewhere], kind="stable")
        return Adjacent(query_index[elsewhere][order], node[elsewhere][order], weight[elsewhere][order])

    def _mentioned(self, passages: Numbers) -> _Edges:
        mentions = self._view.mention_edges_in(passages)
        frequencies = self._view.passage_frequencies(mentions.entity)
        joins = (frequencies >= MIN_SHARED) & (frequencies <= MAX_SHARED)
        nodes = np.array([self._entity(key) for key in mentions.entity[joins].tolist()], dtype=np.int64)
        return mentions.query_index[joins], nodes, 1 / np.sqrt(frequencies[joins])

    def _mentions_of(self, entities: Numbers) -> _Edges:
        ends = [self._ends[-1 - entity] for entity in entities.tolist()]
        rows = np.array([at for at, end in enumerate(ends) if end.kind == "entity"], dtype=np.int64)
        keys = np.array([ends[row].at for row in rows.tolist()], dtype=np.uint64)
        crowd = self._view.passage_frequencies(keys)
        joins = (crowd >= MIN_SHARED) & (crowd <= MAX_SHARED)
        mentions = self._view.mention_edges_of(keys[joins])
        return rows[joins][mentions.query_index], mentions.passage, 1 / np.sqrt(crowd[joins])[mentions.query_index]

    def _entity(self, key: int) -> int:
        return self._numbered(End("entity", key))

    def _numbered(self, end: End) -> int:
        number = self._number.setdefault(end, -1 - len(self._number))
        if -number > len(self._ends):
            self._ends.append(end)
        return number

    def _related(self, nodes: Numbers) -> _Edges:
        """Of passages, and of entities and documents without any."""
        owners: list[int] = []
        ends: list[End] = []
        for at, node in enumerate(nodes.tolist()):
            here = self._ends_at(node)
            ends += here
            owners += [at] * len(here)
        found = [
            (owners[relation.query_index], self._node_at(other), relation.weight)
            for relation in relations_of(self._view.segments, ends, MAX_FAN)
            if edge_enabled("relation", relation.predicate, self._edges)
            for other, _ in relation.others(ends[relation.query_index])
        ]
        query_index, node_at, weight = zip(*found, strict=True) if found else ((), (), ())
        return np.array(query_index, np.int64), np.array(node_at, np.int64), np.array(weight, np.float64)

    def _ends_at(self, node: int) -> list[End]:
        """What a node of the walk is as the end of a relation."""
        if node < 0:
            return [self._ends[-1 - node]]
        document = self._view.document_of_passage(node)
        chunks = [End("chunk", chunk) for chunk in self._view.chunks_of_passage(node)]
        return [End("document", document), *chunks] if node == self._view.passages_of_document(document)[0] else chunks

    def _node_at(self, end: End) -> int:
        if end.kind == "chunk":
            return self._view.passage_of_chunk(end.at)
        passages = self._view.passages_of_document(end.at) if end.kind == "document" else range(0)
        return passages[0] if passages else self._numbered(end)

    def _titles_mentioned(self, passages: Numbers) -> _Edges:
        mentions = self._view.mention_edges_in(passages)
        at, document, weight = self._titled(mentions.entity)
        return self._into(mentions.query_index[at], document, weight)

    def _mentioning_titles(self, passages: Numbers) -> _Edges:
        first, entities, weight = self._own_titles(passages)
        mentions = self._view.mention_edges_of(entities)
        return first[mentions.query_index], mentions.passage, weight[mentions.query_index]

    def _own_titles(self, passages: Numbers) -> tuple[Numbers, Keys, Floats]:
        """(index into `passages`, entity that the document it begins is about, weight), each as `_titled` leaves it."""
        first, documents = self._begun_by(passages)
        own = self._view.about_of(documents)
        at, document, weight = self._titled(own.entity)
        mine = document == own.document[at]
        at = at[mine]
        return first[own.query_index[at]], own.entity[at], weight[mine]

    def _titled(self, entities: Keys) -> _Edges:
        """(index into `entities`, document about it, weight), but for names of too many documents or passages."""
        about = self._view.about(entities)
        targets = np.bincount(about.query_index, minlength=len(entities))[about.query_index]
        crowd = self._view.passage_frequencies(about.entity)
        kept = (targets <= MAX_TARGETS) & (crowd <= MAX_SHARED)
        return about.query_index[kept], about.document[kept], about.weight[kept] / np.sqrt(targets[kept])

    def _linked_to(self, passages: Numbers) -> _Edges:
        links = self._view.links_from(passages)
        documents, document_at = np.unique(links.document, return_inverse=True)
        crowd = np.bincount(self._view.links_to(documents).query_index, minlength=len(documents))[document_at]
        few = crowd <= MAX_SHARED
        return self._into(links.query_index[few], links.document[few], links.weight[few] / np.sqrt(crowd[few]))

    def _linking(self, passages: Numbers) -> _Edges:
        first, documents = self._begun_by(passages)
        links = self._view.links_to(documents)
        crowd = np.bincount(links.query_index, minlength=len(documents))[links.query_index]
        few = crowd <= MAX_SHARED
        return first[links.query_index[few]], links.passage[few], links.weight[few] / np.sqrt(crowd[few])

    def _stated_about(self, passages: Numbers) -> _Edges:
        facts = self._followed(self._view.statements_in(passages))
        parts = [(fact.query_index, fact.confidence, role.entity) for fact in facts for role in fact.roles]
        entities = np.array([entity for _, _, entity in parts], dtype=np.uint64)
        at, document, weight = self._titled(entities)
        crowd = self._facts(entities)[at]
        few = crowd <= MAX_SHARED
        query_index = np.array([query_index for query_index, _, _ in parts], dtype=np.int64)[at][few]
        confidence = np.array([sure for _, sure, _ in parts], dtype=np.float64)[at]
        return self._into(query_index, document[few], (confidence * weight / np.sqrt(crowd))[few])

    def _stating(self, passages: Numbers) -> _Edges:
        first, entities, weight = self._own_titles(passages)
        facts = self._followed(self._view.statements_with(entities))
        row = np.array([fact.query_index for fact in facts], dtype=np.int64)
        crowd = np.bincount(row, minlength=len(entities))[row]
        few = crowd <= MAX_SHARED
        passage = np.array([fact.passage for fact in facts], dtype=np.int64)
        confidence = np.array([fact.confidence for fact in facts], dtype=np.float64)
        return first[row[few]], passage[few], (confidence * weight[row] / np.sqrt(crowd))[few]

    def _followed(self, facts: Sequence[Statement]) -> list[Statement]:
        return [fact for fact in facts if edge_enabled("statement", fact.predicate, self._edges)]

    def _facts(self, entities: Keys) -> Numbers:
        """In how many statements each of these has a part."""
        keys, key_at = np.unique(entities, return_inverse=True)
        query_index = np.array([fact.query_index for fact in self._view.statements_with(keys)], dtype=np.int64)
        counts: Numbers = np.bincount(query_index, minlength=len(keys))[key_at]
        return counts

    def _into(self, query_index: Numbers, documents: Numbers, weight: Floats) -> _Edges:
        """Edges into documents, which lead to their first passages."""
        ranges = [self._view.passages_of_document(document) for document in documents.tolist()]
        nonempty = np.array([bool(each) for each in ranges], dtype=bool)
        return query_index[nonempty], np.array([each[0] for each in ranges if each], dtype=np.int64), weight[nonempty]

    def _begun_by(self, passages: Numbers) -> tuple[Numbers, Numbers]:
        """(index into `passages`, document) of those that are the first of their documents."""
        documents = self._view.documents_of_passages(passages)
        firsts = np.array([self._view.passages_of_document(each)[0] for each in documents.tolist()], dtype=np.int64)
        first = np.flatnonzero(passages == firsts)
        return first, documents[first]


DAMPING = 0.85  # Brin, Page 1998
TOLERANCE = 1e-6
MOST_ROUNDS = 100

_ranks_of_view: "WeakKeyDictionary[GraphView, NDArray[np.float64]]" = WeakKeyDictionary()
_lock = threading.Lock()


def centrality(view: GraphView) -> NDArray[np.float64]:
    """PageRank by document number, of all live documents; 0 for others. Computed once for each view, which takes a
    while; concurrent callers wait."""
    with _lock:
        ranks = _ranks_of_view.get(view)
        if ranks is None:
            ranks = _ranks_of_view[view] = _document_pagerank(view)
        return ranks


def _document_pagerank(view: GraphView) -> NDArray[np.float64]:
    """An edge from each document that mentions another's title (alias weight / sqrt(documents of that name)) or links
    to it (weight)."""
    documents = view.live_documents()
    if not len(documents):
        return np.zeros(0)
    own = view.about_of(documents)
    _, entity_at = np.unique(own.entity, return_inverse=True)
    targets = np.bincount(entity_at)[entity_at]
    few = np.flatnonzero(targets <= MAX_TARGETS)
    mentions = view.mention_edges_of(own.entity[few])
    row = few[mentions.query_index]
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
    """(n_nodes,) the stationary distribution, to 1e-6 in sum, of a walk that follows an edge with probability .85
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
