"""The graph that communities are found in: entities, joined where documents relate them.

It is a pure function of a graph snapshot. Four things join two entities of a collection, and their weights add up:
statements about both, chunks that mention both, links between the documents that are about them, and edges that people
made between these or the entities themselves. Each weighs the strength of its kind, or what people say, .1 more for
each further one, 1 at most.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from indexer.graph.tables import GraphTables, id_keys, one_array, packed
from schemas.graph_delta import DENIAL, NAMING
from schemas.ids import CANARY_COLLECTION, link_key, link_keys, referenced_ids
from schemas.predicates import predicate_strength

FURTHER = 0.1
LINKED = predicate_strength("related_to")
MENTIONED_TOGETHER = predicate_strength("mentioned_in")
MOST_IN_A_CHUNK = 24  # entities that are paired: the rarest, whose meeting says most
MIN_CHUNKS = 2  # of an entity without a type

Keys = NDArray[np.uint64]
Rows = NDArray[np.int64]
Weights = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Undirected edges: `sources[i] < targets[i]` are nodes, each pair once; `weights` are positive."""

    sources: Rows
    targets: Rows
    weights: Weights

    @classmethod
    def empty(cls) -> "Pairs":
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))

    def adjacency(self, nodes: int) -> csr_array:
        """(nodes, nodes) symmetric, with sorted columns and 64-bit floats."""
        both = (np.concatenate([self.sources, self.targets]), np.concatenate([self.targets, self.sources]))
        matrix = coo_array((np.concatenate([self.weights, self.weights]), both), shape=(nodes, nodes)).tocsr()
        matrix.sort_indices()
        return matrix


@dataclass(frozen=True)
class EntityGraph:
    """One collection's entities. `keys` are the first 8 bytes of their ids, ascending; `rows` are their rows in the
    snapshot's table of entities."""

    collection: str
    keys: Keys
    rows: Rows
    pairs: Pairs

    @property
    def n_nodes(self) -> int:
        return len(self.keys)

    def adjacency(self) -> csr_array:
        return self.pairs.adjacency(self.n_nodes)


def entity_graphs(tables: GraphTables) -> Iterator[EntityGraph]:
    """The graph of each collection that has any edge, in alphabetical order."""
    if not tables.entities.num_rows:
        return
    keys = id_keys(tables.entities["id"])
    names = _dictionary(tables.entities["collection"])
    collections = names.indices.to_numpy()
    pairs = _all_pairs(tables, collections)
    owner = collections[pairs.sources]
    for code, collection in sorted(enumerate(names.dictionary.to_pylist()), key=lambda each: str(each[1])):
        chosen = owner == code
        if collection == CANARY_COLLECTION or not chosen.any():
            continue
        ends = pairs.sources[chosen], pairs.targets[chosen]
        rows = np.unique(np.concatenate(ends))
        rows = rows[np.argsort(keys[rows], kind="stable")]
        number = np.empty(len(keys), np.int64)
        number[rows] = np.arange(len(rows))
        own = _merged(number[ends[0]], number[ends[1]], pairs.weights[chosen], len(rows))
        yield EntityGraph(collection, keys[rows], rows, own)


def _all_pairs(tables: GraphTables, collections: NDArray[np.int32]) -> Pairs:
    """Between rows of the entities' table."""
    count = len(collections)
    is_node = _nodes(tables, collections)
    related = _related_pairs(tables, collections)
    is_node[related.sources] = is_node[related.targets] = True
    found = [_statement_pairs(tables, count), _mention_pairs(tables, is_node), _link_pairs(tables, count), related]
    sources, targets, weights = (
        np.concatenate([getattr(each, name) for each in found]) for name in ("sources", "targets", "weights")
    )
    keep = is_node[sources] & is_node[targets] & (collections[sources] == collections[targets])
    return _merged(sources[keep], targets[keep], weights[keep], count)


def _nodes(tables: GraphTables, collections: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which entities take part: those with a typed mention. In a collection without types: those that two chunks
    mention, that a statement is about, or that a document is about by its title."""
    count = len(collections)
    entities = tables.rows_named("mentions", "target")
    is_typed = pc.not_equal(tables.mentions["entity_type"].cast(pa.string()), "").to_numpy()
    typed = np.bincount(entities[is_typed], minlength=count) > 0
    titles = tables.about["weight"].to_numpy() >= 1.0
    named = (
        (np.bincount(entities, minlength=count) >= MIN_CHUNKS)
        | (np.bincount(tables.rows_named("roles", "target"), minlength=count) > 0)
        | (np.bincount(tables.rows_named("about", "target")[titles], minlength=count) > 0)
    )
    has_types = np.bincount(collections[typed], minlength=int(collections.max()) + 1) > 0
    return np.where(has_types[collections], typed, named)


def _statement_pairs(tables: GraphTables, count: int) -> Pairs:
    """The subject of each statement with what else has a part in it."""
    roles = _dictionary(tables.roles["role"])
    if "subject" not in roles.dictionary.to_pylist():
        return Pairs.empty()
    is_subject = roles.indices.to_numpy() == roles.dictionary.index("subject").as_py()
    statements, entities = tables.rows_named("roles", "source"), tables.rows_named("roles", "target").astype(np.int64)
    subject = np.full(tables.statements.num_rows, -1, np.int64)
    subject[statements[is_subject]] = entities[is_subject]
    others, of = entities[~is_subject], statements[~is_subject]
    predicates = _dictionary(tables.statements["predicate"])
    strengths = np.array([predicate_strength(name) for name in predicates.dictionary.to_pylist()])
    strength = strengths[predicates.indices.to_numpy()[of]] * tables.statements["confidence"].to_numpy()[of]
    denies = pc.equal(tables.statements["extractor"].cast(pa.string()), DENIAL).to_numpy()
    keep = (subject[of] >= 0) & (subject[of] != others) & ~denies[of]
    return _repeated(subject[of][keep], others[keep], strength[keep], count)


def _mention_pairs(tables: GraphTables, is_node: NDArray[np.bool_]) -> Pairs:
    """Entities that a chunk mentions. Their weight is damped by how common they are: by Salton's cosine, the number of
    chunks that mention both over the root of the product of the numbers that mention either."""
    chunks, entities = (tables.rows_named("mentions", each).astype(np.int64) for each in ("source", "target"))
    keep = is_node[entities]
    chunks, entities = chunks[keep], entities[keep]
    frequency = np.bincount(entities, minlength=len(is_node)).astype(np.float64)
    order = np.lexsort((entities, frequency[entities], chunks))
    chunks, entities = chunks[order], entities[order]
    begins = np.flatnonzero(np.diff(chunks, prepend=-1))
    place = np.arange(len(chunks)) - np.repeat(begins, np.diff(begins, append=len(chunks)))
    chunks, entities = chunks[place < MOST_IN_A_CHUNK], entities[place < MOST_IN_A_CHUNK]
    found: list[tuple[Rows, Rows]] = []
    for step in range(1, MOST_IN_A_CHUNK):
        first = np.flatnonzero(chunks[:-step] == chunks[step:])
        if not len(first):
            break
        found.append((entities[first], entities[first + step]))
    if not found:
        return Pairs.empty()
    sources, targets = (np.concatenate(ends) for ends in zip(*found, strict=True))
    pairs = _merged(sources, targets, np.ones(len(sources)), len(is_node))
    cosine = pairs.weights / np.sqrt(frequency[pairs.sources] * frequency[pairs.targets])
    weights = np.minimum(1.0, MENTIONED_TOGETHER + FURTHER * (pairs.weights - 1)) * cosine
    return Pairs(pairs.sources, pairs.targets, weights)


def _link_pairs(tables: GraphTables, count: int) -> Pairs:
    """What a document is about, by its title, with what the documents are about that it links to."""
    about = _about(tables)
    documents = _documents_named(tables)
    target = documents[tables.rows_named("links", "target")]
    source = tables.documents_of("chunks")[tables.rows_named("links", "source")]
    arrived = target >= 0
    sources, targets = about[source[arrived]], about[target[arrived]]
    keep = (sources >= 0) & (targets >= 0) & (sources != targets)
    strength = LINKED * tables.links["weight"].to_numpy()[arrived][keep]
    return _repeated(sources[keep], targets[keep], strength, count)


def _about(tables: GraphTables) -> Rows:
    """(n_documents,) the row of the entity that each is about by its title, -1 for none."""
    about = np.full(tables.documents.num_rows, -1, np.int64)
    weights = tables.about["weight"].to_numpy()
    order = np.argsort(weights, kind="stable")  # so that the heaviest is written last
    order = order[weights[order] >= NAMING]
    about[tables.rows_named("about", "source")[order]] = tables.rows_named("about", "target")[order]
    return about


def _related_pairs(tables: GraphTables, collections: NDArray[np.int32]) -> Pairs:
    """What the ends of each edge that people made are about, or are."""
    if not tables.relations.num_rows:
        return Pairs.empty()
    entities = _entities_referenced(tables, collections)
    relations, ends = tables.rows_named("ends", "source"), entities[tables.rows_named("ends", "target")]
    is_source = pc.equal(tables.ends["role"].cast(pa.string()), "source").to_numpy(zero_copy_only=False)
    sources, targets = (np.full(tables.relations.num_rows, -1, np.int64) for _ in range(2))
    sources[relations[is_source]], targets[relations[~is_source]] = ends[is_source], ends[~is_source]
    keep = (sources >= 0) & (targets >= 0) & (sources != targets)
    weights = tables.relations["weight"].to_numpy()[keep]
    return _repeated(sources[keep], targets[keep], weights, len(collections))


def _entities_referenced(tables: GraphTables, collections: NDArray[np.int32]) -> Rows:
    """(n_references,) the row of the entity that each leads to, as a node, a chunk or a document does by its title; -1
    for none, and in another collection."""
    references = tables.references
    names = list(
        zip(references["collection"].cast(pa.string()).to_pylist(), references["name"].to_pylist(), strict=True)
    )
    by_title = _about(tables)
    candidates = [referenced_ids(*name) for name in names]
    titles = {
        "nodes": by_title[tables.documents_of("nodes")],
        "chunks": by_title[tables.documents_of("chunks")],
        "entities": np.arange(len(collections)),
        "documents": by_title,
    }
    found = np.full(len(names), -1, np.int64)
    is_there = np.zeros(len(names), np.bool_)
    own = _dictionary(tables.entities["collection"])
    for table, place in (("nodes", 0), ("chunks", 1), ("entities", 1), ("documents", 2), ("documents", 3)):
        wanted = pa.array([each[place] or None for each in candidates], pa.string())
        known = np.flatnonzero(wanted.is_valid().to_numpy(zero_copy_only=False) & ~is_there)
        rows = pc.index_in(packed(wanted.take(pa.array(known))), value_set=one_array(tables.table(table)["id"]))
        arrived = rows.is_valid().to_numpy(zero_copy_only=False)
        is_there[known[arrived]] = True
        found[known[arrived]] = titles[table][rows.drop_null().to_numpy()]
    for row in np.flatnonzero(found >= 0).tolist():
        if own.dictionary[int(collections[found[row]])].as_py() != names[row][0]:
            found[row] = -1
    return found


def _documents_named(tables: GraphTables) -> Rows:
    """(n_document_names,) the row of the document of each name, else of one with the same link key, else -1."""
    rows: dict[tuple[str, str], int] = {}
    by_key: dict[tuple[str, str], int] = {}
    for row, (collection, document_id) in enumerate(_names(tables.documents)):
        rows[collection, document_id] = row
        for key in link_keys(document_id):
            by_key.setdefault((collection, key), row)
    found = (
        rows.get((collection, document_id), by_key.get((collection, link_key(document_id)), -1))
        for collection, document_id in _names(tables.document_names)
    )
    return np.fromiter(found, dtype=np.int64, count=tables.document_names.num_rows)


def _names(table: pa.Table) -> Iterator[tuple[str, str]]:
    """The collection and the id of each row's document."""
    return zip(table["collection"].cast(pa.string()).to_pylist(), table["document_id"].to_pylist(), strict=True)


def _repeated(sources: Rows, targets: Rows, strengths: Weights, count: int) -> Pairs:
    """Each pair once: the strongest, .1 more for each further one, 1 at most."""
    times = _merged(sources, targets, np.ones(len(sources)), count)
    strongest = _merged(sources, targets, strengths, count, np.maximum)
    weights = np.minimum(1.0, strongest.weights + FURTHER * (times.weights - 1))
    return Pairs(times.sources, times.targets, weights)


def _merged(sources: Rows, targets: Rows, weights: Weights, count: int, merge: np.ufunc = np.add) -> Pairs:
    """Each pair once, its weights merged; in the order of source and target."""
    low, high = np.minimum(sources, targets), np.maximum(sources, targets)
    codes = low * np.int64(count) + high
    order = np.argsort(codes, kind="stable")
    codes, weights = codes[order], weights[order]
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    merged = merge.reduceat(weights, begins) if len(begins) else np.empty(0)
    return Pairs(codes[begins] // max(1, count), codes[begins] % max(1, count), merged)


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """One dictionary array of a column, which may be none."""
    return one_array(column if pa.types.is_dictionary(column.type) else column.dictionary_encode())
