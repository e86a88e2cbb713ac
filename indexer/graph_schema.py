"""The schema of the property graph in Kùzu: ids, names and numbers only; text stays in LanceDB.

Evidence tables, which point to shared nodes, are stored forward only, so that replacing a document never rewrites the
backward lists of hub entities; the query service's GraphView has the other direction. No property of a shared node
(entity, document name) depends on which document came first.

A few tables with a `kind` or a `role` instead of one for each, as a commit pays for every table that it touches.
Sentence numbers are a string, `3,17`: with Kùzu's lists a commit slows down with each element already stored.
"""

SCHEMA_VERSION = 3

NODE_TABLES = {
    "Document": "id STRING PRIMARY KEY, collection STRING, document_id STRING, revision STRING, title STRING",
    "Section": "id STRING PRIMARY KEY, ordinal INT32, title STRING, level INT32, parent INT32",
    "Chunk": "id STRING PRIMARY KEY, ordinal INT32, passage INT32, passage_id STRING",
    "Entity": "id STRING PRIMARY KEY, collection STRING, name STRING",
    "Statement": "id STRING PRIMARY KEY, predicate STRING, confidence DOUBLE, extractor STRING, sentence INT32",
    "DocumentName": "id STRING PRIMARY KEY, collection STRING, document_id STRING",
    "Applied": "id INT64 PRIMARY KEY, position INT64, schema INT64",
}

RELATIONSHIP_TABLES = {
    "HAS_SECTION": "FROM Document TO Section",
    "HAS_CHUNK": "FROM Section TO Chunk",
    "CHUNK_EDGE": "FROM Chunk TO Chunk, kind STRING, weight DOUBLE",
    "LINKS_TO": "FROM Chunk TO DocumentName, weight DOUBLE",
    "MENTIONS": (
        "FROM Chunk TO Entity, kind STRING, surface STRING, count INT32, sentences STRING, entity_type STRING, "
        "confidence DOUBLE"
    ),
    "ABOUT": "FROM Document TO Entity, surface STRING, weight DOUBLE",
    "STATES": "FROM Chunk TO Statement",
    "ROLE": "FROM Statement TO Entity, role STRING, surface STRING",
}

EVIDENCE_TABLES = {
    "MENTIONS": ("Chunk", "Entity"),
    "ABOUT": ("Document", "Entity"),
    "ROLE": ("Statement", "Entity"),
    "LINKS_TO": ("Chunk", "DocumentName"),
}
SHARED_TABLES = ("Entity", "DocumentName")
MAX_DATABASE_BYTES = 1 << 36  # address space reserved by Kùzu; its default of 8 TiB exceeds common limits


def columns_of(table: str) -> dict[str, str]:
    """A table's columns, in order, with their Kùzu types; a relationship's begin with its two ends."""
    if table in NODE_TABLES:
        ends, written = {}, NODE_TABLES[table]
    else:
        ends, written = {"source": "STRING", "target": "STRING"}, RELATIONSHIP_TABLES[table].partition(",")[2]
    return ends | {column.split()[0]: column.split()[1] for column in written.split(",") if column}


def ends_of(relationship: str) -> tuple[str, str]:
    """The node tables that a relationship leads from and to."""
    source, _, target = RELATIONSHIP_TABLES[relationship].partition(",")[0].removeprefix("FROM ").partition(" TO ")
    return source, target


def statements_that_create(*, both_directions: bool = False) -> list[str]:
    """Cypher that creates every table that does not exist.

    With `both_directions`, evidence can be followed from both ends: for files to which nothing is ever added.
    """
    nodes = [f"CREATE NODE TABLE IF NOT EXISTS {name}({columns})" for name, columns in NODE_TABLES.items()]
    relationships = [
        f"CREATE REL TABLE IF NOT EXISTS {name}({columns})"
        + ("" if both_directions or name not in EVIDENCE_TABLES else " WITH (storage_direction='fwd')")
        for name, columns in RELATIONSHIP_TABLES.items()
    ]
    return nodes + relationships
