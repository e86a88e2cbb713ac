"""Contributions become rows of the graph's tables, and these rows of Kùzu's."""

import msgspec
import pyarrow as pa
import pytest

from indexer.graph.contributions import tables_of
from indexer.graph.kuzu_schema import copied_tables, rows_to_copy, statements_that_create
from indexer.graph.tables import DESCRIBED, NODES, TABLES, packed
from schemas.graph_delta import Contribution
from tests.support.fixtures.graph import Change, document, hand_made_edge, hand_made_node


def contribution(number: int) -> Contribution:
    return contributed(document(number))


def contributed(change: Change) -> Contribution:
    made = change[1]
    assert made is not None
    return made


def test_tables_have_all_rows_of_their_contributions() -> None:
    made = contribution(1)

    tables = tables_of([made, contribution(2)])

    assert {name: tables.table(name).schema for name in TABLES} == TABLES
    assert tables.chunks.num_rows == 2 * len(made.chunks)
    mention = tables.mentions.to_pylist()[1]
    assert (mention["source"], mention["surface"], mention["sentences"]) == (3, "ENTITY 1", [7])
    assert tables.entities.to_pylist()[mention["target"]]["name"] == "entity 1"


def test_every_table_of_kuzu_gets_the_columns_it_declares() -> None:
    made = [hand_made_node("otter", aliases=["Lutra", "Fischotter"]), hand_made_edge("e", "otter", "river")]
    tables = tables_of([contribution(1), contribution(2), *map(contributed, made)])
    declared = {line.split("(")[0].split()[-1]: line for line in statements_that_create()}

    for label, name in copied_tables().items():
        rows = rows_to_copy(tables, label)
        assert rows.num_rows == tables.table(name).num_rows
        assert declared[label].count(",") == len(rows.column_names) - (1 if "NODE" in declared[label] else 2)


def test_edges_that_people_made_share_what_their_ends_name() -> None:
    made = [
        hand_made_edge("first", "otter", "river"),
        hand_made_edge("second", "river", "sea"),
        hand_made_node("otter"),
    ]

    tables = tables_of(map(contributed, made))

    assert tables.references["name"].to_pylist() == ["otter", "river", "sea"]
    assert [(row["source"], row["target"], row["role"]) for row in tables.ends.to_pylist()] == [
        (0, 0, "source"), (0, 1, "target"), (1, 1, "source"), (1, 2, "target"),
    ]  # fmt: skip
    assert tables.documents_of("ends").tolist() == [0, 0, 1, 1]
    assert tables.nodes["label"].to_pylist() == ["Otter"]


def test_documents_share_the_entities_they_name() -> None:
    apart = sum(tables_of([contribution(number)]).entities.num_rows for number in (1, 4))

    together = tables_of([contribution(1), contribution(4)]).entities

    assert together.num_rows < apart


def test_what_no_column_can_hold_is_the_contributions_fault() -> None:
    broken = msgspec.structs.replace(contribution(1), title="half a pair: \ud800")

    with pytest.raises(ValueError, match="surrogates"):
        tables_of([broken])


@pytest.mark.parametrize("identifier", ["", "c1", "0" * 31, "0" * 33, "G" * 32, "A" * 32, "0" * 32 + "\n"])
def test_an_id_that_is_none_is_the_contributions_fault(identifier: str) -> None:
    one = contribution(1)
    section = msgspec.structs.replace(one.sections[0], id=identifier)
    broken = msgspec.structs.replace(one, sections=[section], chunks=[], mentions=[], statements=[], edges=[], links=[])

    with pytest.raises(ValueError, match="32 hex digits"):
        tables_of([broken])
    with pytest.raises(ValueError, match="32 hex digits"):
        packed(pa.array([identifier]))


def test_node_that_is_there_twice_is_refused() -> None:
    one = contribution(1)
    broken = msgspec.structs.replace(one, chunks=[one.chunks[0], *one.chunks[:3]])

    with pytest.raises(ValueError, match=r"chunks .* not distinct"):
        tables_of([broken])


def test_kuzu_has_a_table_for_each_described_and_owned_one() -> None:
    owned = sum(node.owner is not None for node in NODES.values())
    assert len(statements_that_create()) == len(DESCRIBED) + owned + 1
