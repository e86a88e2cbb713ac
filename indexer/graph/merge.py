"""The graph after some documents changed: its tables without these documents, and the tables of what they contribute
now."""

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indexer.graph.tables import EDGES, NODES, REFERENCES, TABLES, GraphTables, one_array, packed
from schemas.ids import DocumentKey, document_node_id

NOWHERE = -1

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int32]  # for each row, its number in the merged table, or NOWHERE


def merge(base: GraphTables, gone: Collection[DocumentKey], added: GraphTables) -> GraphTables:
    """Equal, but for the order of rows, to the tables made of all contributions that there are now.

    `gone` are the documents that changed or were deleted, whether or not `base` has them; `added` has no document that
    stays. Shared nodes that no edge leads to any more are left out. Takes about as long as copying `base`, and the
    memory of the result.

    1. choose the nodes and edges that stay; 2. find the shared nodes that stay or are added; 3. number the rows;
    4. copy them with the new numbers.
    """
    stays = _staying(base, gone)  # 1
    is_new = {name: np.ones(added.table(name).num_rows, dtype=bool) for name in TABLES}
    known = {name: _known_nodes(base, added, name) for name, node in NODES.items() if node.is_shared}  # 2
    for name, rows in known.items():
        stays[name][rows[rows != NOWHERE]] = True
        is_new[name] = rows == NOWHERE
    old = {name: _numbered(stays[name], 0) for name in NODES}  # 3
    new = {name: _numbered(is_new[name], int(np.count_nonzero(stays[name]))) for name in NODES}
    for name, rows in known.items():
        new[name] = np.where(rows == NOWHERE, new[name], old[name][rows] if len(old[name]) else NOWHERE)
    return GraphTables(  # 4
        **{
            name: _joined(_chosen(base, name, stays[name], old), _chosen(added, name, is_new[name], new))
            for name in TABLES
        }
    )


def _staying(base: GraphTables, gone: Collection[DocumentKey]) -> dict[str, Mask]:
    """For each table, which rows belong to documents that are not gone, or are shared nodes of such."""
    ids = packed(pa.array([document_node_id(key) for key in gone], pa.string()))
    of_gone = pc.is_in(one_array(base.documents["id"]), value_set=ids).to_numpy(zero_copy_only=False)
    stays = {"documents": ~of_gone}
    for name, node in NODES.items():
        if node.owner is not None:
            stays[name] = stays[node.owner.table][base.rows_named(name, node.owner.column)]
        elif node.is_shared:
            stays[name] = np.zeros(base.table(name).num_rows, dtype=bool)
    for name, edge in EDGES.items():
        stays[name] = stays[edge.source][base.rows_named(name, "source")]
        if NODES[edge.target].is_shared:
            stays[edge.target][base.rows_named(name, "target")[stays[name]]] = True
    return stays


def _known_nodes(base: GraphTables, added: GraphTables, name: str) -> Numbers:
    """For each shared node that is added, its row in `base`, or NOWHERE."""
    ids = one_array(added.table(name)["id"])
    rows = np.full(len(ids), NOWHERE, dtype=np.int32)
    if len(ids):
        found = pc.index_in(one_array(base.table(name)["id"]), value_set=ids)
        at = np.flatnonzero(pc.is_valid(found).to_numpy(zero_copy_only=False))
        rows[found.drop_null().to_numpy()] = at
    return rows


def _numbered(chosen: Mask, first: int) -> Numbers:
    return np.where(chosen, np.cumsum(chosen) - 1 + first, NOWHERE).astype(np.int32)


def _chosen(tables: GraphTables, name: str, chosen: Mask, numbers: Mapping[str, Numbers]) -> pa.Table:
    """These rows of a table, with the numbers that the rows they name have now."""
    table = tables.table(name)
    if not chosen.all():
        table = table.filter(pa.array(chosen))
    for (referring, column), of in REFERENCES.items():
        if referring == name:
            at = table.schema.get_field_index(column)
            table = table.set_column(at, table.field(at), pa.array(numbers[of][table[column].to_numpy()]))
    return table


def _joined(old: pa.Table, new: pa.Table) -> pa.Table:
    """One table in one batch, with dictionaries of the strings that occur."""
    if not old.num_rows and not new.num_rows:
        return new
    whole = pa.concat_tables([old, new]).unify_dictionaries().combine_chunks()
    for at, field in enumerate(whole.schema):
        if pa.types.is_dictionary(field.type):
            whole = whole.set_column(at, field, _compacted(one_array(whole.column(at))))
    return whole


def _compacted(values: pa.DictionaryArray) -> pa.DictionaryArray:
    indices = values.indices.to_numpy()
    occurs = np.bincount(indices, minlength=len(values.dictionary)) > 0
    if occurs.all():
        return values
    numbers = (np.cumsum(occurs) - 1).astype(np.int32)
    return pa.DictionaryArray.from_arrays(numbers[indices], values.dictionary.filter(pa.array(occurs)))
