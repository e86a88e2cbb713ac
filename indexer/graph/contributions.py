"""The graph's tables made of contributions in memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa

from indexer.graph.tables import DESCRIBED, NODES, TABLES, GraphTables, packed
from schemas.graph_delta import ChunkNode, Contribution, SectionNode
from schemas.ids import DocumentKey, document_node_id, entity_ids, hand_made_node_id, reference_id, relation_id

Row = tuple[Any, ...]


def tables_of(contributions: Iterable[Contribution]) -> GraphTables:
    """As a snapshot after these contributions has them, at most one of each document.

    Raises ValueError for a value that no column can hold and for an id that is none, LookupError for the index of a
    section or chunk that the contribution does not have.
    """
    builder = _Builder()
    for contribution in contributions:
        builder.add(contribution)
    return GraphTables(**{name: _table(name, values) for name, values in builder.values.items()})


class _Builder:
    """The values of each table, row after row in the order of its columns, ids as 32 hex digits. A column that is
    neither an id, an ordinal nor the number of a row is the attribute of its name.

    One list a table, since the collector of garbage looks at a tuple for each row again and again.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[Any]] = {name: [] for name in TABLES}
        self._entities: dict[str, dict[str, int]] = {}
        self._names: dict[DocumentKey, int] = {}
        self._references: dict[tuple[str, str], int] = {}

    def add(self, contribution: Contribution) -> None:
        key = DocumentKey(contribution.collection, contribution.document_id)
        document = self._append("documents", document_node_id(key), *_ATTRIBUTES["documents"](contribution))
        sections = self._owned("sections", contribution.sections, [document] * len(contribution.sections))
        chunks = self._owned("chunks", contribution.chunks, [sections[each.section] for each in contribution.chunks])
        entities = self._entities_of(contribution)
        for about in contribution.about:
            self._edge("about", document, entities[about.name], about)
        for mention in contribution.mentions:
            self._edge("mentions", chunks[mention.chunk], entities[mention.name], mention)
        for stated in contribution.statements:
            attributes = _ATTRIBUTES["statements"](stated)
            statement = self._append("statements", stated.id, chunks[stated.chunk], *attributes)
            for role in stated.roles:
                self._edge("roles", statement, entities[role.name], role)
        for edge in contribution.edges:
            self._edge("chunk_edges", chunks[edge.source], chunks[edge.target], edge)
        for link in contribution.links:
            target = self._document_name(DocumentKey(link.target_collection, link.target_id))
            self._edge("links", chunks[link.chunk], target, link)
        for node in contribution.nodes:
            identifier = hand_made_node_id(key.collection, node.name)
            self._append("nodes", identifier, document, *_ATTRIBUTES["nodes"](node))
        for made in contribution.relations:
            identifier = relation_id(key.collection, made.name)
            relation = self._append("relations", identifier, document, *_ATTRIBUTES["relations"](made))
            for at, end in (("source", made.source), ("target", made.target)):
                self._append("ends", relation, self._reference(key.collection, end), at)

    def _owned(self, table: str, nodes: Sequence[SectionNode | ChunkNode], owners: Sequence[int]) -> range:
        """The numbers of the nodes, which are added in their order."""
        values, attributes = self.values[table], _ATTRIBUTES[table]
        first = len(values) // _WIDTHS[table]
        for ordinal, (node, owner) in enumerate(zip(nodes, owners, strict=True)):
            values += (node.id, owner, ordinal, *attributes(node))
        return range(first, first + len(nodes))

    def _entities_of(self, contribution: Contribution) -> dict[str, int]:
        """The number of each of the collection's entities by name, those of the contribution among them."""
        collection = contribution.collection
        numbers = self._entities.setdefault(collection, {})
        missing = [name for name in dict.fromkeys(_entity_names(contribution)) if name not in numbers]
        for name, identifier in zip(missing, entity_ids(collection, missing), strict=True):
            numbers[name] = self._append("entities", identifier, collection, name)
        return numbers

    def _document_name(self, key: DocumentKey) -> int:
        number = self._names.get(key)
        if number is None:
            number = self._names[key] = self._append("document_names", document_node_id(key), *key)
        return number

    def _reference(self, collection: str, name: str) -> int:
        number = self._references.get((collection, name))
        if number is None:
            number = self._append("references", reference_id(collection, name), collection, name)
            self._references[collection, name] = number
        return number

    def _edge(self, table: str, source: int, target: int, edge: object) -> None:
        self.values[table] += (source, target, *_ATTRIBUTES[table](edge))

    def _append(self, table: str, *row: object) -> int:
        values = self.values[table]
        values += row
        return len(values) // _WIDTHS[table] - 1


def _entity_names(contribution: Contribution) -> Iterator[str]:
    for about in contribution.about:
        yield about.name
    for mention in contribution.mentions:
        yield mention.name
    for statement in contribution.statements:
        for role in statement.roles:
            yield role.name


def _attributes(columns: Iterable[str]) -> Callable[[object], Row]:
    names = [name for name in columns if name != "ordinal"]
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda each: (read(each),)


_ATTRIBUTES = {name: _attributes(described.columns) for name, described in DESCRIBED.items()}
_WIDTHS = {name: len(schema) for name, schema in TABLES.items()}


def _table(name: str, values: list[Any]) -> pa.Table:
    schema, width = TABLES[name], _WIDTHS[name]
    ids = values[::width] if name in NODES else ()
    if len(set(ids)) < len(ids):
        raise ValueError(f"The {name} of these contributions have ids that are not distinct.")
    columns = [_array(values[at::width], field.type) for at, field in enumerate(schema)]
    return pa.table(columns, schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_fixed_size_binary(kind):
        return packed(pa.array(values, pa.string()))
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, kind)
