"""Tables merged step by step are equal to those made of all contributions, whatever happened in between."""

from collections.abc import Iterable

import pyarrow as pa
from hypothesis import HealthCheck, event, given, settings

from indexer.graph.contributions import tables_of
from indexer.graph.merge import merge
from indexer.graph.tables import TABLES, GraphTables, require_known_rows
from indexer.store_verification import graph_digest
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey
from tests.support.effort import examples
from tests.support.fixtures.graph import document, key, story
from tests.support.oracles.graph_views import Batch, histories


def merged(base: GraphTables, batch: Iterable[tuple[DocumentKey, Contribution | None]]) -> GraphTables:
    newest = dict(batch)
    return merge(base, newest.keys(), tables_of(each for each in newest.values() if each is not None))


def content(tables: GraphTables) -> dict[str, list[str]]:
    """The rows of each table, by ids instead of numbers, in an order of their own."""
    return {name: sorted(str(row) for part in tables.with_ids(name) for row in part.to_pylist()) for name in TABLES}


def assert_equal(found: GraphTables, contributions: Iterable[Contribution]) -> None:
    expected = tables_of(contributions)
    assert content(found) == content(expected)
    assert graph_digest(found) == graph_digest(expected)


@settings(max_examples=examples(60, 5_000), deadline=None, suppress_health_check=list(HealthCheck))
@given(histories())
def test_any_history_merges_to_the_tables_of_its_end(history: tuple[list[Contribution], list[Batch]]) -> None:
    base, batches = history
    held = {DocumentKey(one.collection, one.document_id): one for one in base}
    tables = tables_of(base)
    for batch in batches:
        tables = merged(tables, batch)
        for changed, contribution in batch:
            held.pop(changed, None)
            if contribution is not None:
                held[changed] = contribution
        assert_equal(tables, held.values())
    event(f"{len(batches)} batches")


def test_story_merges_to_the_tables_of_its_end() -> None:
    tables, held = GraphTables.empty(), {}
    for batch in story():
        tables = merged(tables, batch)
        held |= dict(batch)

    assert_equal(tables, [each for each in held.values() if each is not None])


def test_merged_tables_are_whole_tables_of_one_batch() -> None:
    tables = merged(merged(GraphTables.empty(), [document(1), document(2)]), [document(1, revision=1), document(3)])

    for name, schema in TABLES.items():
        table = tables.table(name)
        assert table.schema == schema
        assert all(column.num_chunks == 1 for column in table.columns)
        require_known_rows(name, table, tables.counts())


def test_strings_that_occur_no_more_leave_the_dictionaries() -> None:
    before = merged(GraphTables.empty(), [document(1), document(2, revision=1)])

    after = merged(before, [(key(1), None), (key(2), None), document(3)])

    for name, table in ((name, after.table(name)) for name in TABLES):
        for column in table.columns:
            if pa.types.is_dictionary(column.type):
                values = column.chunk(0)
                assert set(values.dictionary.to_pylist()) == set(values.to_pylist()), name


def test_delete_of_everything_leaves_empty_tables() -> None:
    tables = merged(merged(GraphTables.empty(), [document(1)]), [(key(1), None), (key(7), None)])

    assert set(tables.counts().values()) == {0}
