"""Communities of a graph snapshot: found, identified, named and summarised; a pure function but for their ids and for
what is kept up, which follow from the former ones.

An id stays while a community keeps most of its members. A summary is made again only where its members or its sources
changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indexer.communities.entity_graph import EntityGraph, Pairs, entity_graphs
from indexer.communities.partition import LEVELS, Former, Labels, Level, Partition, partition, row_of
from indexer.communities.summaries import Member, SourceChunk, SummarySentence, Texts, summary_of, title_of
from indexer.extraction.metadata import EXTRACTOR as HEADER
from indexer.graph.tables import ID_BYTES, GraphTables, one_array, spelled
from indexer.read.community_reader import COMMUNITY_TABLES, CollectionFigures, CommunityTables
from schemas.ids import digest

MIN_MEMBERS = 3
VALUE_SHARE = 0.5  # of the chunks that mention an entity, in which a field holds it, for it to be a value
SOURCE_CHUNKS = 8  # of a community, from which its sentences are taken
SUMMARISED_AT_ONCE = 500
SAME_SHARE = 0.5  # of the members of the smaller one, for a community to be the former one
COARSER: dict[Level, Level] = {"fine": "medium", "medium": "coarse"}


@dataclass
class _Community:
    """One that is shown; `nodes` are its members, strongest first, `chunks` and `mentioned` its sources: rows of
    chunks, and which of `nodes` each mentions."""

    level: Level
    label: int
    nodes: Labels
    chunks: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    id: str = ""
    parent: int = -1
    content: bytes = b""
    summary: tuple[SummarySentence, ...] | None = None
    members: list[Member] = field(default_factory=list)


def find_communities(tables: GraphTables, texts: Texts, former: CommunityTables | None = None) -> CommunityTables:
    """The communities of all collections; `former` are those found before, of which what holds is kept."""
    before = {} if former is None else dict(_former_collections(former))
    entities = _Entities(tables)
    builder = _Builder()
    for graph in entity_graphs(tables):
        known = before.get(graph.collection)
        found = partition(graph, None if known is None else known.former)
        collection = _Collection(graph, found, entities, known)
        collection.summarise(texts)
        builder.add(collection)
    return builder.tables()


class _Entities:
    """What is shown of entities: ids, labels, types; and where they are mentioned."""

    def __init__(self, tables: GraphTables) -> None:
        self.tables = tables
        self.names: pa.ChunkedArray = tables.entities["name"]
        self.mention_chunks = tables.rows_named("mentions", "source")
        self.mention_entities = tables.rows_named("mentions", "target")
        titles = _most(tables.about, "surface", "weight")  # of what nothing mentions, such as a node that people made
        self._labels = titles | _most(tables.mentions, "surface", "count")
        self._types = _most(tables.mentions, "entity_type", "confidence")
        self.are_values = _values_of_fields(tables, self._types)

    def ids(self, rows: Labels) -> list[str]:
        return list(spelled(one_array(self.tables.entities["id"].take(pa.array(rows)))).to_pylist())

    def labels(self, rows: Labels) -> list[str]:
        """As documents mostly write them."""
        names = self.names.take(pa.array(rows)).to_pylist()
        return [self._labels.get(row) or name for row, name in zip(rows.tolist(), names, strict=True)]

    def types(self, rows: Labels) -> list[str]:
        """By a vote of their mentions; "" for none."""
        return [self._types.get(row) or "" for row in rows.tolist()]

    def chunk_ids(self, rows: Sequence[int]) -> list[str]:
        return list(spelled(one_array(self.tables.chunks["id"].take(pa.array(rows, pa.int64())))).to_pylist())

    def document_ids(self, chunks: Sequence[int]) -> list[str]:
        documents = self.tables.documents_of("chunks")[np.array(chunks, dtype=np.int64)]
        return list(self.tables.documents["document_id"].take(pa.array(documents)).to_pylist())


def _values_of_fields(tables: GraphTables, types: dict[int, str]) -> NDArray[np.bool_]:
    """(n_entities,) which documents hold in fields rather than speak of: dates, and of what no document is about the
    people of any header, and what half of the chunks that mention it hold there."""
    count, statements = tables.entities.num_rows, tables.rows_named("roles", "source")
    is_header = pc.equal(tables.statements["extractor"].cast(pa.string()), HEADER).to_numpy()[statements]
    is_held = is_header & pc.equal(tables.roles["role"].cast(pa.string()), "object").to_numpy()
    places = np.stack([tables.rows_named("roles", "target"), tables.rows_named("statements", "chunk")[statements]])
    held = np.bincount(np.unique(places[:, is_held], axis=1)[0], minlength=count)
    mentioned = np.bincount(tables.rows_named("mentions", "target"), minlength=count)
    is_only = (held > 0) & (np.bincount(tables.rows_named("about", "target"), minlength=count) == 0)
    is_time, is_person = (
        np.isin(np.arange(count), [row for row, each in types.items() if each == kind]) for kind in ("time", "person")
    )
    return np.asarray(is_time | (is_only & (is_person | (held >= VALUE_SHARE * mentioned))))


def _most(edges: pa.Table, column: str, weight: str) -> dict[int, str]:
    """{row of an entity: the value of the edges to it that weighs most; the first in the alphabet of equal ones}."""
    if column not in edges.column_names or not edges.num_rows:
        return {}
    values = edges[column].cast(pa.string())
    votes = pa.table({"entity": edges["target"], "value": values, "weight": edges[weight]})
    counted = votes.filter(pc.not_equal(values, "")).group_by(["entity", "value"]).aggregate([("weight", "sum")])
    ordered = counted.sort_by([("entity", "ascending"), ("weight_sum", "ascending"), ("value", "descending")])
    return dict(zip(ordered["entity"].to_pylist(), ordered["value"].to_pylist(), strict=True))  # the last one stays


@dataclass(frozen=True)
class _Known:
    """A collection's former communities: {(level, label): id}, {id: (content, summary)}."""

    former: Former
    ids: dict[tuple[str, int], str]
    summaries: dict[str, tuple[bytes, tuple[SummarySentence, ...]]]


def _former_collections(former: CommunityTables) -> Iterator[tuple[str, _Known]]:
    collections = former.nodes["collection"].cast(pa.string()).to_numpy()
    keys = former.nodes["key"].to_numpy()
    labels: dict[Level, Labels] = {level: former.nodes[level].to_numpy().astype(np.int64) for level in LEVELS}
    sources, targets = (former.edges[name].to_numpy().astype(np.int64) for name in ("source", "target"))
    weights = former.edges["weight"].to_numpy().astype(np.float64)
    shown = former.communities.select(["id", "collection", "level", "label", "content", "summary"]).to_pylist()
    for collection, figures in former.collections.items():
        rows = np.flatnonzero(collections == collection)
        if not len(rows):
            continue
        first = int(rows[0])  # the nodes of a collection are adjacent
        own = (sources >= first) & (sources < first + len(rows))
        pairs = Pairs(sources[own] - first, targets[own] - first, weights[own])
        graph = EntityGraph(collection, keys[rows], np.full(len(rows), -1), pairs)
        modularity = {level: figures.modularity[level] for level in LEVELS}
        at_full = {level: figures.at_full[level] for level in LEVELS}
        parts = Partition({level: labels[level][rows] for level in LEVELS}, modularity, at_full, figures.changed)
        of_collection = [row for row in shown if row["collection"] == collection]
        ids = {(row["level"], row["label"]): row["id"] for row in of_collection}
        summaries = {
            row["id"]: (row["content"], tuple(SummarySentence(**each) for each in row["summary"]))
            for row in of_collection
        }
        yield collection, _Known(Former(graph, parts), ids, summaries)


class _Collection:
    """The communities of one collection that are shown: those of MIN_MEMBERS and more that are not values alone."""

    def __init__(self, graph: EntityGraph, found: Partition, entities: _Entities, known: _Known | None) -> None:
        self.graph = graph
        self.partition = found
        self.entities = entities
        self.communities: list[_Community] = []
        self._strengths: dict[Level, NDArray[np.float64]] = {}
        self._ids = entities.ids(graph.rows)
        self._labels = entities.labels(graph.rows)
        self._types = entities.types(graph.rows)
        self._are_values = entities.are_values[graph.rows]
        self._known = known
        for level in LEVELS:
            self._strengths[level] = _strengths(graph, found.labels[level])
            self.communities += self._shown(level)
        self._find_parents()
        self._find_sources()

    def _shown(self, level: Level) -> list[_Community]:
        labels, strengths = self.partition.labels[level], self._strengths[level]
        order = np.lexsort((self.graph.keys, -strengths, labels))
        begins = np.flatnonzero(np.diff(labels[order], prepend=-1))
        ends = np.append(begins[1:], len(order))
        shown = [
            _Community(level, int(labels[order[begin]]), order[begin:end])
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
            if end - begin >= MIN_MEMBERS and not self._are_values[order[begin:end]].all()
        ]
        self._identify(level, shown)
        for community in shown:
            community.members = [
                Member(self._ids[node], self._labels[node], self._types[node], float(strengths[node]), is_value)
                for node, is_value in zip(
                    community.nodes.tolist(), self._are_values[community.nodes].tolist(), strict=True
                )
            ]
        return sorted(shown, key=lambda community: (-len(community.nodes), community.id))

    def _identify(self, level: Level, shown: Sequence[_Community]) -> None:
        """The id of the former community that each shares most with; else one of its strongest member that no other
        has."""
        taken: set[str] = set()
        by_label = {community.label: community for community in shown}
        if self._known is not None:
            for label, identifier in self._same(level, by_label):
                if not by_label[label].id and identifier not in taken:
                    by_label[label].id = identifier
                    taken.add(identifier)
        for community in shown:
            if community.id:
                continue
            named = (digest("community", self.graph.collection, level, self._ids[node]) for node in community.nodes)
            community.id = next(each for each in named if each not in taken)
            taken.add(community.id)

    def _same(self, level: Level, shown: dict[int, _Community]) -> Iterator[tuple[int, str]]:
        """(label, former id) of pairs that share half of the smaller one's members, by their Jaccard index."""
        if self._known is None:
            return
        former = self._known.former
        before = row_of(former.graph.keys, self.graph.keys)
        known = former.partition.labels[level]
        new, old = self.partition.labels[level][before >= 0], known[before[before >= 0]]
        sizes = np.bincount(known)
        pairs, counts = np.unique(np.stack([new, old]), axis=1, return_counts=True)
        equally_near: list[tuple[float, int, str]] = []
        for label, old_label, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
            identifier = self._known.ids.get((level, old_label))
            if label not in shown or identifier is None:
                continue
            members, members_before = len(shown[label].nodes), int(sizes[old_label])
            if count >= SAME_SHARE * min(members, members_before):
                equally_near.append((-count / (members + members_before - count), label, identifier))
        yield from ((label, identifier) for _, label, identifier in sorted(equally_near))

    def _find_parents(self) -> None:
        """The shown coarser community that holds most of the members; the larger of equal ones."""
        row = {(community.level, community.label): at for at, community in enumerate(self.communities)}
        for community in self.communities:
            coarser = COARSER.get(community.level)
            if coarser is None:
                continue
            labels, counts = np.unique(self.partition.labels[coarser][community.nodes], return_counts=True)
            held = [
                (-count, row[coarser, label])
                for label, count in zip(labels.tolist(), counts.tolist(), strict=True)
                if (coarser, label) in row
            ]
            community.parent = min(held)[1] if held else -1

    def _find_sources(self) -> None:
        """The chunks that mention most of what is strong, the first of equal ones."""
        entities = self.entities
        node_of = np.full(entities.tables.entities.num_rows, -1, np.int64)
        node_of[self.graph.rows] = np.arange(self.graph.n_nodes)
        nodes = node_of[entities.mention_entities]
        chunks, nodes = entities.mention_chunks[nodes >= 0].astype(np.int64), nodes[nodes >= 0]
        for level in LEVELS:
            by_label = {community.label: community for community in self.communities if community.level == level}
            is_shown = np.zeros(int(self.partition.labels[level].max(initial=-1)) + 1, np.bool_)
            is_shown[list(by_label)] = True
            keep = is_shown[self.partition.labels[level][nodes]]
            if keep.any():
                self._take_sources(level, by_label, chunks[keep], nodes[keep])

    def _take_sources(self, level: Level, by_label: dict[int, _Community], chunks: Labels, nodes: Labels) -> None:
        labels, strengths = self.partition.labels[level], self._strengths[level]
        order = np.lexsort((nodes, chunks, labels[nodes]))
        chunks, nodes = chunks[order], nodes[order]
        of = labels[nodes]
        begins = np.flatnonzero((np.diff(of, prepend=-1) != 0) | (np.diff(chunks, prepend=-1) != 0))
        ends = np.append(begins[1:], len(chunks))
        held = np.add.reduceat(strengths[nodes], begins)
        best = np.lexsort((chunks[begins], -held, of[begins]))
        firsts = np.flatnonzero(np.diff(of[begins][best], prepend=-1))
        for first, last in zip(firsts.tolist(), np.append(firsts[1:], len(best)).tolist(), strict=True):
            community = by_label[int(of[begins[best[first]]])]
            place = {node: at for at, node in enumerate(community.nodes.tolist())}
            for at in best[first : min(last, first + SOURCE_CHUNKS)].tolist():
                mentioned = tuple(place[node] for node in nodes[begins[at] : ends[at]].tolist())
                community.chunks.append((int(chunks[begins[at]]), mentioned))

    def summarise(self, texts: Texts) -> None:
        """From the texts of the sources; what the former one of an id and content has is kept."""
        known = {} if self._known is None else self._known.summaries
        ids = self.entities.chunk_ids([chunk for community in self.communities for chunk, _ in community.chunks])
        wanted: list[tuple[_Community, list[str]]] = []
        start = iter(ids)
        for community in self.communities:
            own = list(islice(start, len(community.chunks)))
            parts = [*sorted(member.entity for member in community.members), "", *own]
            community.content = blake2b("\n".join(parts).encode(), digest_size=ID_BYTES).digest()
            content, summary = known.get(community.id, (b"", ()))
            if content == community.content:
                community.summary = summary
            else:
                wanted.append((community, own))
        for first in range(0, len(wanted), SUMMARISED_AT_ONCE):
            part = wanted[first : first + SUMMARISED_AT_ONCE]
            read = texts(list(dict.fromkeys(chunk_id for _, own in part for chunk_id in own)))
            for community, own in part:
                rows = [chunk for chunk, _ in community.chunks]
                sources = [
                    SourceChunk(chunk_id, document_id, mentioned)
                    for chunk_id, document_id, (_, mentioned) in zip(
                        own, self.entities.document_ids(rows), community.chunks, strict=True
                    )
                ]
                community.summary = summary_of(community.level, community.members, sources, read)

    def figures(self) -> CollectionFigures:
        found = self.partition
        return CollectionFigures(
            nodes=self.graph.n_nodes,
            edges=len(self.graph.pairs.weights),
            modularity={level: round(value, 6) for level, value in found.modularity.items()},
            at_full={level: round(value, 6) for level, value in found.at_full.items()},
            changed=round(found.changed, 6),
        )


class _Builder:
    """Rows of the tables, collection by collection."""

    def __init__(self) -> None:
        self._communities: list[dict[str, Any]] = []
        self._members: list[dict[str, Any]] = []
        self._nodes: list[pa.Table] = []
        self._edges: list[pa.Table] = []
        self._n_nodes = 0
        self._collections: dict[str, CollectionFigures] = {}

    def add(self, collection: _Collection) -> None:
        graph, first = collection.graph, len(self._communities)
        for community in collection.communities:
            title, kind = title_of(community.members)
            for member in community.members:
                shown = {"label": member.label, "type": member.type, "strength": member.strength}
                self._members.append({"community": len(self._communities), "id": bytes.fromhex(member.entity), **shown})
            self._communities.append(
                {
                    "id": community.id,
                    "collection": graph.collection,
                    "level": community.level,
                    "label": community.label,
                    "parent": community.parent + first if community.parent >= 0 else -1,
                    "title": title,
                    "type": kind,
                    "size": len(community.nodes),
                    "content": community.content,
                    "summary": [msgspec.structs.asdict(each) for each in community.summary or ()],
                }
            )
        labels: dict[str, Labels] = {level: collection.partition.labels[level] for level in LEVELS}
        self._nodes.append(
            _table("nodes", {"key": graph.keys, "collection": [graph.collection] * graph.n_nodes, **labels})
        )
        pairs = graph.pairs
        ends = {"source": pairs.sources + self._n_nodes, "target": pairs.targets + self._n_nodes}
        self._edges.append(_table("edges", {**ends, "weight": pairs.weights}))
        self._n_nodes += graph.n_nodes
        self._collections[graph.collection] = collection.figures()

    def tables(self) -> CommunityTables:
        return CommunityTables(
            communities=pa.Table.from_pylist(self._communities, COMMUNITY_TABLES["communities"]),
            members=pa.Table.from_pylist(self._members, COMMUNITY_TABLES["members"]),
            nodes=_joined("nodes", self._nodes),
            edges=_joined("edges", self._edges),
            collections=self._collections,
        )


def _strengths(graph: EntityGraph, labels: Labels) -> NDArray[np.float64]:
    """(n_nodes,) the weight of each node's edges to its own community."""
    pairs = graph.pairs
    inside = labels[pairs.sources] == labels[pairs.targets]
    ends = np.concatenate([pairs.sources[inside], pairs.targets[inside]])
    sums = np.bincount(ends, weights=np.tile(pairs.weights[inside], 2), minlength=graph.n_nodes)
    return np.asarray(sums, dtype=np.float64)


def _table(name: str, columns: dict[str, Any]) -> pa.Table:
    schema = COMMUNITY_TABLES[name]
    arrays = [pa.array(columns[each.name]).cast(_plain(each.type)).cast(each.type) for each in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _joined(name: str, parts: Sequence[pa.Table]) -> pa.Table:
    joined = pa.concat_tables(parts) if parts else COMMUNITY_TABLES[name].empty_table()
    return joined.unify_dictionaries().combine_chunks()
