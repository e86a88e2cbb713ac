"""Contributions as the rows of the graph's tables."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indexer.graph_schema import NODE_TABLES, RELATIONSHIP_TABLES, columns_of
from schemas.graph_delta import Contribution, StatementNode
from schemas.ids import DocumentKey, document_node_id, entity_ids

Row = tuple[Any, ...]

ID_COLUMNS = {"id", "passage_id"}
ID = "^[0-9a-f]{32}$"
ARROW_TYPES = {"STRING": pa.string(), "INT32": pa.int32(), "INT64": pa.int64(), "DOUBLE": pa.float64()}


@dataclass
class GraphRows:
    """Rows by table, in the column order of the schema; a relationship begins with its two ends."""

    nodes: dict[str, dict[str, Row]] = field(default_factory=lambda: {name: {} for name in NODE_TABLES})
    relationships: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in RELATIONSHIP_TABLES})

    @classmethod
    def from_contributions(cls, contributions: Iterable[Contribution]) -> "GraphRows":
        rows = cls()
        for contribution in contributions:
            rows._add(contribution)
        return rows

    def _add(self, contribution: Contribution) -> None:
        collection = contribution.collection
        key = DocumentKey(collection, contribution.document_id)
        document = document_node_id(key)
        self._node("Document", document, *key, contribution.revision, contribution.title)
        for ordinal, section in enumerate(contribution.sections):
            self._node("Section", section.id, ordinal, section.title, section.level, section.parent)
            self._edge("HAS_SECTION", document, section.id)
        entities = self._entities(contribution)
        chunks = [chunk.id for chunk in contribution.chunks]
        for ordinal, chunk in enumerate(contribution.chunks):
            self._node("Chunk", chunk.id, ordinal, chunk.passage, chunk.passage_id)
            self._edge("HAS_CHUNK", contribution.sections[chunk.section].id, chunk.id)
        for about in contribution.about:
            self._edge("ABOUT", document, entities[about.name], about.surface, about.weight)
        for mention in contribution.mentions:
            sentences = ",".join(map(str, mention.sentences))
            properties = (mention.kind, mention.surface, mention.count, sentences)
            typed = (mention.entity_type, mention.confidence)
            self._edge("MENTIONS", chunks[mention.chunk], entities[mention.name], *properties, *typed)
        for statement in contribution.statements:
            self._statement(entities, chunks[statement.chunk], statement)
        for edge in contribution.edges:
            self._edge("CHUNK_EDGE", chunks[edge.source], chunks[edge.target], edge.kind, edge.weight)
        for link in contribution.links:
            target = DocumentKey(link.target_collection, link.target_id)
            self._node("DocumentName", document_node_id(target), *target)
            self._edge("LINKS_TO", chunks[link.chunk], document_node_id(target), link.weight)

    def _statement(self, entities: Mapping[str, str], chunk: str, statement: StatementNode) -> None:
        properties = (statement.predicate, statement.confidence, statement.extractor, statement.sentence)
        self._node("Statement", statement.id, *properties)
        self._edge("STATES", chunk, statement.id)
        for role in statement.roles:
            self._edge("ROLE", statement.id, entities[role.name], role.role, role.surface)

    def _entities(self, contribution: Contribution) -> dict[str, str]:
        """The node's id by name, of every name."""
        names = [about.name for about in contribution.about]
        names += [mention.name for mention in contribution.mentions]
        names += [role.name for statement in contribution.statements for role in statement.roles]
        distinct = list(dict.fromkeys(names))
        ids = dict(zip(distinct, entity_ids(contribution.collection, distinct), strict=True))
        for name, identifier in ids.items():
            self._node("Entity", identifier, contribution.collection, name)
        return ids

    def _node(self, table: str, identifier: str, *properties: object) -> None:
        self.nodes[table][identifier] = (identifier, *properties)

    def _edge(self, table: str, source: str, target: str, *properties: object) -> None:
        self.relationships[table].append((source, target, *properties))


def arrow_rows(table: str, rows: Iterable[Row]) -> pa.Table:
    """Rows as input of COPY. Raises ValueError for a value that its column cannot hold, and for an id that is none."""
    columns = columns_of(table)
    values: Iterable[Iterable[Any]] = list(zip(*rows, strict=True)) or [()] * len(columns)
    made = pa.table(
        {
            name: pa.array(column, ARROW_TYPES[kind])
            for (name, kind), column in zip(columns.items(), values, strict=True)
        }
    )
    for column in ID_COLUMNS & columns.keys():
        if columns[column] == "STRING" and pc.all(pc.match_substring_regex(made[column], ID)).as_py() is False:
            raise ValueError(f"Each {column} of a {table} has 32 hex digits.")
    return made
