"""What tables and records state."""

import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey

MARKDOWN, CSV, JSON = "text/markdown", "text/csv", "application/json"


def stated(content: str, content_type: str) -> set[tuple[str, str, str]]:
    upsert = DocumentUpsert(key=DocumentKey("notes", "a"), content=content.encode(), content_type=content_type)
    found = prepare(upsert, ChunkingParameters()).statements
    return {(one.roles[0][2], one.predicate, one.roles[1][2]) for one in found}


@pytest.mark.parametrize(
    ("content", "content_type", "fact"),
    [
        (
            "| component | depends on |\n|---|---|\n| checkout | price list |\n| till | checkout |\n",
            MARKDOWN,
            ("checkout", "depends_on", "price list"),
        ),
        (
            "| # | River | Flows into |\n|-|-|-|\n| 1 | Issel | Grey Lake |\n",
            MARKDOWN,
            ("Issel", "flows_into", "Grey Lake"),
        ),
        ("service,owner,runs_on\nstamp shop,Ada Moss,cluster-south\n", CSV, ("stamp shop", "runs_on", "cluster-south")),
        ('{"name": "dryer", "operator": {"name": "Stellan Oak"}}', JSON, ("dryer", "operator", "Stellan Oak")),
        ('{"name": "export", "dependsOn": ["fx rates"]}', JSON, ("export", "depends_on", "fx rates")),
        (
            '{"services": [{"name": "painter", "requires": {"name": "glyph store"}}, {"name": "finder", "age": 3}]}',
            JSON,
            ("painter", "requires", "glyph store"),
        ),
    ],
)
def test_cell_relates_its_row_to_its_value(content: str, content_type: str, fact: tuple[str, str, str]) -> None:
    assert fact in stated(content, content_type)


@pytest.mark.parametrize(
    "content",
    [
        "| Monday | Tuesday |\n|---|---|\n| soup | stew |\n",
        "| depth | length |\n|---|---|\n| 3 | 4 |\n",
    ],
)
def test_table_without_a_relation_states_nothing(content: str) -> None:
    assert stated(content, MARKDOWN) == set()
