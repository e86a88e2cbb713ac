"""The tables' columns and rows."""

import pytest

from indexer.schema import (
    CHUNKS,
    DOCUMENTS,
    DOCUMENTS_SCHEMA,
    PASSAGES,
    PASSAGES_SCHEMA,
    POSITIONS,
    POSITIONS_SCHEMA,
    PRIMARY_KEYS,
    RETRIEVALS,
    RETRIEVALS_SCHEMA,
    DocumentRow,
    chunks_schema,
    document_rows,
    documents_table,
)
from schemas.ids import DocumentKey

SCHEMAS = {
    CHUNKS: chunks_schema(8),
    PASSAGES: PASSAGES_SCHEMA,
    DOCUMENTS: DOCUMENTS_SCHEMA,
    POSITIONS: POSITIONS_SCHEMA,
    RETRIEVALS: RETRIEVALS_SCHEMA,
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_table_declares_a_primary_key_that_is_never_null(name: str) -> None:
    declared = [field for field in SCHEMAS[name] if field.metadata]
    assert [field.name for field in declared] == [PRIMARY_KEYS[name]]
    assert not declared[0].nullable


def test_document_rows_come_back_as_they_were() -> None:
    live = DocumentRow(
        key=DocumentKey("c", "a/b"),
        version=3,
        partition=2,
        offset=10**12,
        timestamp_ms=1_700_000_000_000,
        revision="r",
        content_type="text/plain",
        title="Títle \x00 'quoted'",
        uri="https://example.org",
        metadata={"list": [1, 2.5, None, {"deep": True}], "": "é"},
        chunks=4,
        passages=2,
    )
    gone = DocumentRow(DocumentKey("c", "gone"), None, 0, 7, 5, deleted_at_ms=9)
    assert (live.own_metadata, live.stated_fields) == (live.metadata, [])
    assert document_rows(documents_table([live, gone])) == [live, gone]
    assert (live.live, gone.live) == (True, False)


def test_a_row_tells_what_its_document_states_of_itself() -> None:
    stored = {"status": "Final", "year": 2001, "stated_fields": ["status"], "page_starts": [0]}
    row = DocumentRow(DocumentKey("c", "a"), None, 0, 7, 5, metadata=stored)
    assert row.own_metadata == {"status": "Final", "year": 2001}
    assert row.stated_fields == ["status"]
