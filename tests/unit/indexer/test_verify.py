"""The digest of a graph is of its content: the order of rows does not count, their number and values do."""

import pyarrow as pa

from indexer.read.kuzu import GraphTables
from indexer.verify import graph_digest

ABOUT = [
    {"source": "a", "target": "x", "surface": "X", "weight": 1.0},
    {"source": "b", "target": "y", "surface": "Y", "weight": 0.5},
]


def graph(about: list[dict[str, object]]) -> GraphTables:
    tables = {name: pa.table({"id": pa.array([], pa.string())}) for name in GraphTables.__dataclass_fields__}
    return GraphTables(**{**tables, "about": pa.Table.from_pylist(about)})


def test_order_does_not_count() -> None:
    assert graph_digest(graph(ABOUT)) == graph_digest(graph(ABOUT[::-1]))


def test_a_row_twice_is_another_graph() -> None:
    assert graph_digest(graph(ABOUT)) != graph_digest(graph([*ABOUT, ABOUT[0]]))


def test_weights_count_to_four_decimals() -> None:
    nearly = [ABOUT[0], ABOUT[1] | {"weight": 0.500001}]
    other = [ABOUT[0], ABOUT[1] | {"weight": 0.5002}]

    assert graph_digest(graph(nearly)) == graph_digest(graph(ABOUT))
    assert graph_digest(graph(other)) != graph_digest(graph(ABOUT))
