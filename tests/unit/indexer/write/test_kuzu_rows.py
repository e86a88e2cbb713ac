"""Contributions become rows in the columns of the schema."""

import msgspec
import pytest

from indexer.graph_schema import NODE_TABLES, RELATIONSHIP_TABLES, columns_of, statements_that_create
from indexer.write.kuzu_rows import GraphRows, arrow_rows
from schemas.graph_delta import Contribution
from tests.support.fixtures.graph import document


def contribution(number: int) -> Contribution:
    made = document(number)[1]
    assert made is not None
    return made


def test_every_table_takes_the_rows_made_for_it() -> None:
    rows = GraphRows.from_contributions([contribution(1), contribution(2)])

    for table, held in {**{name: kept.values() for name, kept in rows.nodes.items()}, **rows.relationships}.items():
        arrow = arrow_rows(table, held)
        assert arrow.column_names == list(columns_of(table))
        assert arrow.num_rows == len(held)


def test_documents_share_the_entities_they_name() -> None:
    apart = sum(len(GraphRows.from_contributions([contribution(number)]).nodes["Entity"]) for number in (1, 4))

    together = GraphRows.from_contributions([contribution(1), contribution(4)]).nodes["Entity"]

    assert len(together) < apart


def test_what_no_column_can_hold_is_the_contributions_fault() -> None:
    broken = msgspec.structs.replace(contribution(1), title="half a pair: \ud800")

    with pytest.raises(ValueError, match="surrogates"):
        arrow_rows("Document", GraphRows.from_contributions([broken]).nodes["Document"].values())


@pytest.mark.parametrize("identifier", ["", "c1", "0" * 31, "0" * 33, "G" * 32, "A" * 32, "0" * 32 + "\n"])
def test_an_id_that_is_none_is_the_contributions_fault(identifier: str) -> None:
    one = contribution(1)
    section = msgspec.structs.replace(one.sections[0], id=identifier)
    broken = msgspec.structs.replace(one, sections=[section], chunks=[], mentions=[], statements=[], edges=[], links=[])

    with pytest.raises(ValueError, match="32 hex digits"):
        arrow_rows("Section", GraphRows.from_contributions([broken]).nodes["Section"].values())


def test_only_tables_that_end_at_shared_nodes_are_stored_forward_only() -> None:
    forward = {line.split()[6].partition("(")[0] for line in statements_that_create() if "'fwd'" in line}

    assert forward == {"MENTIONS", "ABOUT", "ROLE", "LINKS_TO"}
    assert len(statements_that_create()) == len(NODE_TABLES) + len(RELATIONSHIP_TABLES)
