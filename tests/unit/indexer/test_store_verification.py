"""The digest of a graph is of its content: the order of rows does not count, their number and values do."""

import pyarrow as pa

from indexer.graph.tables import TABLES, GraphTables
from indexer.store_verification import VerifyReport, graph_digest

ABOUT = [
    {"source": 0, "target": 1, "surface": "X", "weight": 1.0},
    {"source": 1, "target": 0, "surface": "Y", "weight": 0.5},
]
NODES = [{"id": bytes(16)}, {"id": bytes([1] * 16)}]


def graph(about: list[dict[str, object]]) -> GraphTables:
    nodes = {
        "documents": [{**node, "collection": "c", "document_id": "d", "revision": "r", "title": "t"} for node in NODES],
        "entities": [{**node, "collection": "c", "name": "n"} for node in NODES],
    }
    rows = {name: [] for name in TABLES} | nodes | {"about": about}
    return GraphTables(**{name: pa.Table.from_pylist(rows[name], TABLES[name]) for name in TABLES})


def test_order_does_not_count() -> None:
    assert graph_digest(graph(ABOUT)) == graph_digest(graph(ABOUT[::-1]))


def test_a_row_twice_is_another_graph() -> None:
    assert graph_digest(graph(ABOUT)) != graph_digest(graph([*ABOUT, ABOUT[0]]))


def test_weights_count_to_four_decimals() -> None:
    nearly = [ABOUT[0], ABOUT[1] | {"weight": 0.500001}]
    other = [ABOUT[0], ABOUT[1] | {"weight": 0.5002}]

    assert graph_digest(graph(nearly)) == graph_digest(graph(ABOUT))
    assert graph_digest(graph(other)) != graph_digest(graph(ABOUT))


def report(**fields: object) -> VerifyReport:
    whole: dict[str, object] = {
        "generation": "g0001", "ok": True, "complete": True, "documents": 1, "passages": 1, "chunks": 1, "graph": {},
        "differences": [], "difference_count": 0, "stale_rows": 0, "graph_position": 6, "graph_expected": 6,
        "digest": "d", "digests": {},
    }  # fmt: skip
    return VerifyReport(**whole | fields)  # type: ignore[arg-type]


def test_report_of_a_graph_behind_says_not_complete() -> None:
    behind = report(ok=False, complete=False, graph_expected=18)
    *_, why, verdict = behind.lines()
    assert why == "the newest graph snapshot is 12 records behind the text"
    assert verdict.startswith("not complete: ")
    assert not behind.is_wrong
    assert list(report().lines())[-1] == "equal; digest d"


def test_report_of_damage_says_not_equal_though_not_complete() -> None:
    damaged = report(ok=False, complete=False, damage=["lance/chunks.lance is gone"])
    assert damaged.is_wrong
    assert list(damaged.lines())[-1] == "NOT equal; digest d"
