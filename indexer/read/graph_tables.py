"""Reading a snapshot of the graph: all of it, once, as Arrow tables; searches then use the memory built from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kuzu
import pyarrow as pa
import pyarrow.compute as pc

from indexer.graph_schema import MAX_DATABASE_BYTES
from indexer.read.graph_snapshots import require_intact_snapshot

BUFFER_POOL_BYTES = 2 * 1024**3


@dataclass(frozen=True)
class GraphTables:
    """A snapshot's nodes and edges. `source` and `target` are node ids; columns as in `indexer.graph_schema`.

    documents(id, collection, document_id, revision, title) · sections(id, document, ordinal, title, level, parent) ·
    chunks(id, document, section, ordinal, passage, passage_id) · entities(id, collection, name) ·
    statements(id, chunk, predicate, confidence, extractor, sentence) · about(source, target, surface, weight) ·
    mentions(source, target, kind, surface, count, sentences) · roles(source, target, role, surface) ·
    chunk_edges(source, target, kind, weight) · links(source, target, collection, document_id, weight)
    """

    documents: pa.Table
    sections: pa.Table
    chunks: pa.Table
    entities: pa.Table
    statements: pa.Table
    about: pa.Table
    mentions: pa.Table
    roles: pa.Table
    chunk_edges: pa.Table
    links: pa.Table


def read_graph(path: Path, checksum: str = "") -> GraphTables:
    """Everything in a snapshot file. Opens it read-only and closes it again.

    Raises FileNotFoundError when a newer snapshot has replaced it meanwhile, DamagedStore when it does not match its
    `checksum`: Kùzu itself would take it, or end the process.
    """
    if not path.exists():
        raise FileNotFoundError(path)
    require_intact_snapshot(path, checksum)
    database = kuzu.Database(
        str(path), read_only=True, buffer_pool_size=BUFFER_POOL_BYTES, max_db_size=MAX_DATABASE_BYTES
    )
    try:
        connection = kuzu.Connection(database)
        try:
            return _read(connection)
        finally:
            connection.close()
    finally:
        database.close()


def _read(connection: kuzu.Connection) -> GraphTables:
    def table(cypher: str) -> pa.Table:
        result: Any = connection.execute(cypher)
        return result.get_as_arrow()

    about = table(
        "MATCH (d:Document)-[r:ABOUT]->(e:Entity) "
        "RETURN d.id AS source, e.id AS target, r.surface AS surface, r.weight AS weight"
    )
    mentions = table(
        "MATCH (c:Chunk)-[r:MENTIONS]->(e:Entity) RETURN c.id AS source, e.id AS target, r.kind AS kind, "
        "r.surface AS surface, r.count AS count, r.sentences AS sentences"
    )
    roles = table(
        "MATCH (s:Statement)-[r:ROLE]->(e:Entity) "
        "RETURN s.id AS source, e.id AS target, r.role AS role, r.surface AS surface"
    )
    entities = table("MATCH (e:Entity) RETURN e.id AS id, e.collection AS collection, e.name AS name")
    evident = pa.chunked_array(
        [chunk for edges in (about, mentions, roles) for chunk in edges["target"].chunks], type=pa.string()
    )
    return GraphTables(
        documents=table(
            "MATCH (d:Document) RETURN d.id AS id, d.collection AS collection, d.document_id AS document_id, "
            "d.revision AS revision, d.title AS title"
        ),
        sections=table(
            "MATCH (d:Document)-[:HAS_SECTION]->(s:Section) RETURN s.id AS id, d.id AS document, "
            "s.ordinal AS ordinal, s.title AS title, s.level AS level, s.parent AS parent"
        ),
        chunks=table(
            "MATCH (d:Document)-[:HAS_SECTION]->(s:Section)-[:HAS_CHUNK]->(c:Chunk) RETURN c.id AS id, "
            "d.id AS document, s.id AS section, c.ordinal AS ordinal, c.passage AS passage, c.passage_id AS passage_id"
        ),
        entities=entities.filter(pc.is_in(entities["id"], value_set=pc.unique(evident))),
        statements=table(
            "MATCH (c:Chunk)-[:STATES]->(s:Statement) RETURN s.id AS id, c.id AS chunk, s.predicate AS predicate, "
            "s.confidence AS confidence, s.extractor AS extractor, s.sentence AS sentence"
        ),
        about=about,
        mentions=mentions.set_column(5, "sentences", _numbers(mentions["sentences"])),
        roles=roles,
        chunk_edges=table(
            "MATCH (a:Chunk)-[r:CHUNK_EDGE]->(b:Chunk) "
            "RETURN a.id AS source, b.id AS target, r.kind AS kind, r.weight AS weight"
        ),
        links=table(
            "MATCH (c:Chunk)-[r:LINKS_TO]->(n:DocumentName) RETURN c.id AS source, n.id AS target, "
            "n.collection AS collection, n.document_id AS document_id, r.weight AS weight"
        ),
    )


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Lists of int32 from strings like `3,17`; an empty list from an empty string."""
    listed = pc.split_pattern(column, ",")
    return pc.if_else(pc.equal(column, ""), pa.scalar([], listed.type), listed).cast(pa.list_(pa.int32()))
