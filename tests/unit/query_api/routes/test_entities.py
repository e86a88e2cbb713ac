"""`/v1/entities` and `/v1/paths`: the graph as people see it."""

import pytest

from schemas.ids import entity_id
from tests.support.fakes.service import Running

ADA = entity_id("a", "ada")


async def test_entities_are_listed_with_type_and_count(running: Running) -> None:
    answer = (await running.get("/v1/entities", collection="a", prefix="a")).json()
    assert answer == {
        "entities": [
            {
                "id": ADA,
                "collection": "a",
                "label": "Ada",
                "type": "person",
                "confidence": 0.9,
                "salience": 0.835,
                "mentions": 2,
                "names": 1,
            }
        ],
        "next_cursor": None,
        "total": 1,
    }
    assert (await running.get("/v1/entities", type="place")).json()["entities"] == []


async def test_an_entity_is_described_by_its_id_and_by_its_name(running: Running) -> None:
    by_id = (await running.get(f"/v1/entities/{ADA}")).json()
    assert by_id == (await running.get("/v1/entities/ÁDA", collection="a")).json()
    assert [each["document_id"] for each in by_id["documents"]] == ["ada", "notes/river.md"]
    assert by_id["definition"]["text"] == "Ada lives by the river."


@pytest.mark.parametrize(
    ("path", "params", "status", "words"),
    [
        ("/v1/entities/nobody", {}, 404, "prefix="),
        ("/v1/paths", {"from": "Ada", "to": "nobody", "collection": "a"}, 404, "nobody"),
        ("/v1/entities", {"cursor": "???"}, 400, "first page"),
        ("/v1/entities", {"after": "nonsense"}, 400, "nonsense"),
        ("/v1/entities", {"limit": "0"}, 422, "limit"),
        ("/v1/entities", {"kind": "person"}, 422, "kind"),
    ],
)
async def test_what_cannot_be_answered_is_said(
    running: Running, path: str, params: dict[str, str], status: int, words: str
) -> None:
    answer = await running.get(path, **params)
    assert answer.status_code == status
    assert words in answer.json()["detail"]


async def test_a_path_to_itself_is_none(running: Running) -> None:
    answer = (await running.get("/v1/paths", **{"from": "Ada", "to": ADA, "collection": "a"})).json()
    assert answer["paths"] == []
    assert answer["source"]["label"] == "Ada"


async def test_any_two_nodes_are_joined_by_id_title_or_name(running: Running) -> None:
    for source, target in (("River", "ada"), ("a/notes/river.md", "a/ada"), ("river", "Ada"), (ADA, "notes/river.md")):
        answer = (await running.get("/v1/paths", **{"from": source, "to": target, "collection": "a"})).json()
        assert answer["paths"], (source, target)
        first = answer["paths"][0]["steps"]
        assert first[0]["source"] == answer["source"]
        assert first[-1]["target"] == answer["target"]
        assert all(step["kind"] for step in first)


async def test_a_document_has_no_path_to_itself(running: Running) -> None:
    answer = (await running.get("/v1/paths", **{"from": "River", "to": "notes/river.md", "collection": "a"})).json()
    assert answer["paths"] == []
    assert answer["source"] == {"id": "a/notes/river.md", "label": "River", "type": "document"}


async def test_a_sample_of_statements_is_of_what_is_there(running: Running) -> None:
    answer = (await running.get("/v1/statements", collection="nowhere", sample="2")).json()
    assert answer["statements"] == []
    assert (await running.get("/v1/statements", sample="-1")).status_code == 422
