"""The property graph in Kùzu: ids, names and numbers only; text stays in LanceDB.

Evidence tables, which end at shared nodes, are stored forward only: replacing a document then never rewrites the
backward lists of hub entities. The other direction lives in the query service's GraphView. Nothing a shared node (entity, document name) holds depends
on which document brought it first.
"""

NODE_TABLES = {
    "Document": "id STRING PRIMARY KEY, collection STRING, document_id STRING, revision STRING, title STRING",
    "Section": "id STRING PRIMARY KEY, ordinal INT32, title STRING, level INT32, parent INT32",
    "Chunk": "id STRING PRIMARY KEY, ordinal INT32, passage INT32, passage_id STRING",
    "Entity": "id STRING PRIMARY KEY, collection STRING, name STRING",
    "Statement": "id STRING PRIMARY KEY, predicate STRING, confidence DOUBLE, extractor STRING, sentence INT32",
    "DocumentName": "id STRING PRIMARY KEY, collection STRING, document_id STRING",
    "Applied": "id INT64 PRIMARY KEY, position INT64",
}

RELATIONSHIP_TABLES = {
    "HAS_SECTION": "FROM Document TO Section",
    "HAS_CHUNK": "FROM Section TO Chunk",
    "NEXT_CHUNK": "FROM Chunk TO Chunk, weight DOUBLE",
    "SIMILAR_TO": "FROM Chunk TO Chunk, weight DOUBLE",
    "RELATED_TO": "FROM Chunk TO Chunk, weight DOUBLE",
    "LINKS_TO": "FROM Chunk TO DocumentName, weight DOUBLE",
    "MENTIONS": "FROM Chunk TO Entity, kind STRING, surface STRING, count INT32, sentences INT32[]",
    "ABOUT": "FROM Document TO Entity, surface STRING, weight DOUBLE",
    "STATES": "FROM Chunk TO Statement",
    "SUBJECT": "FROM Statement TO Entity, surface STRING",
    "OBJECT": "FROM Statement TO Entity, surface STRING",
    "ROLE": "FROM Statement TO Entity, role STRING, surface STRING",
}

CHUNK_EDGE_TABLES = {"next_chunk": "NEXT_CHUNK", "similar_to": "SIMILAR_TO", "related_to": "RELATED_TO"}
ROLE_TABLES = {"subject": "SUBJECT", "object": "OBJECT"}
EVIDENCE_TABLES = {
    "MENTIONS": ("Chunk", "Entity"),
    "ABOUT": ("Document", "Entity"),
    "SUBJECT": ("Statement", "Entity"),
    "OBJECT": ("Statement", "Entity"),
    "ROLE": ("Statement", "Entity"),
    "LINKS_TO": ("Chunk", "DocumentName"),
}
MAX_DATABASE_BYTES = 1 << 36  # address space Kùzu reserves for one database; its own default of 8 TiB breaks limits


def statements_that_create() -> list[str]:
    """Cypher that makes every table; harmless where they are."""
    nodes = [f"CREATE NODE TABLE IF NOT EXISTS {name}({columns})" for name, columns in NODE_TABLES.items()]
    relationships = [
        f"CREATE REL TABLE IF NOT EXISTS {name}({columns})"
        + (" WITH (storage_direction='fwd')" if name in EVIDENCE_TABLES else "")
        for name, columns in RELATIONSHIP_TABLES.items()
    ]
    return nodes + relationships
