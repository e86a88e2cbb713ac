"""The graph's tables as Kùzu has them: the schema, and rows to COPY; derived from `indexer.graph.tables`.

Sentence numbers are a string, `3,17`; lists of names are lists.
"""

import pyarrow as pa
import pyarrow.compute as pc

from indexer.graph.tables import DESCRIBED, EDGES, NODES, GraphTables

SCHEMA_VERSION = 4
MAX_DATABASE_BYTES = 1 << 36  # address space reserved by Kùzu; its default of 8 TiB exceeds common limits

_APPLIED = "Applied(id INT64 PRIMARY KEY, position INT64, schema INT64)"
_TYPES = {pa.int32(): "INT32", pa.float64(): "DOUBLE", pa.list_(pa.string()): "STRING[]"}


def statements_that_create() -> list[str]:
    """Cypher that creates every table."""
    nodes = [
        f"CREATE NODE TABLE {node.label}(id STRING PRIMARY KEY{_columns(node.columns)})" for node in NODES.values()
    ]
    owned = [
        f"CREATE REL TABLE {node.owner.label}(FROM {NODES[node.owner.table].label} TO {node.label})"
        for node in NODES.values()
        if node.owner is not None
    ]
    edges = [
        f"CREATE REL TABLE {edge.label}"
        f"(FROM {NODES[edge.source].label} TO {NODES[edge.target].label}{_columns(edge.columns)})"
        for edge in EDGES.values()
    ]
    return [*nodes, f"CREATE NODE TABLE {_APPLIED}", *owned, *edges]


def copied_tables() -> dict[str, str]:
    """{label: the table that holds its rows}, in the order to COPY them: nodes, then edges."""
    nodes = {node.label: name for name, node in NODES.items()}
    owned = {node.owner.label: name for name, node in NODES.items() if node.owner is not None}
    return nodes | owned | {edge.label: name for name, edge in EDGES.items()}


def rows_to_copy(tables: GraphTables, label: str) -> pa.Table:
    """The rows of a table of Kùzu, in the order of its columns, as input of COPY."""
    name = copied_tables()[label]
    described = DESCRIBED[name]
    parts = []
    for part in tables.with_ids(name):
        owner = NODES[name].owner if name in NODES else None
        if owner is not None and owner.label == label:
            parts.append(part.select([owner.column, "id"]).rename_columns(["source", "target"]))
            continue
        first = ["id"] if name in NODES else ["source", "target"]
        columns = {column: part[column] for column in (*first, *described.columns)}
        parts.append(pa.table({column: _joined_lists(values) for column, values in columns.items()}))
    return pa.concat_tables(parts) if parts else pa.table({})


def _columns(columns: dict[str, pa.DataType]) -> str:
    return "".join(f", {name} {_TYPES.get(kind, 'STRING')}" for name, kind in columns.items())


def _joined_lists(values: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Strings such as `3,17` from lists of numbers; other columns as they are."""
    if not pa.types.is_list(values.type) or pa.types.is_string(values.type.value_type):
        return values
    return pc.binary_join(values.cast(pa.list_(pa.string())), ",")
