"""The tables of graph snapshots."""

from indexer.graph.tables import TABLES, GraphTables, with_missing_columns


def test_tables_of_an_earlier_program_get_the_columns_that_they_lack() -> None:
    mentions = GraphTables.empty().mentions
    earlier = mentions.drop_columns(["entity_type", "confidence"])
    assert with_missing_columns("mentions", earlier).schema == TABLES["mentions"]
    row = {"source": 0, "target": 0, "kind": "thing", "surface": "A", "count": 1, "sentences": [0]}
    one = earlier.from_pylist([row], schema=earlier.schema)
    assert with_missing_columns("mentions", one).to_pylist() == [row | {"entity_type": "", "confidence": 0.0}]
