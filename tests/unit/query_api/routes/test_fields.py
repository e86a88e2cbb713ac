"""A collection's fields and their values over HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.fakes.engine import SearchingEngine, make_generation
from tests.support.fakes.service import Running, problem, service_over
from tests.support.fakes.text_stores import Page


def page(name: str, **metadata: object) -> Page:
    return Page(name, name.title(), [["The river is high."]], collection="a", metadata=metadata)


@pytest.fixture
async def stocked(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    engine = SearchingEngine()
    pages = [page("one", status="Draft|New", level=3), page("two", status="Final"), page("three", status="final")]
    engine.reader.put(*pages, page("four", **{"a/b": "x", "c=d": "y"}), p0=(4, -1))
    async with service_over(tmp_path, engine) as running:
        yield running


async def test_fields_come_with_their_kinds_and_counts(stocked: Running) -> None:
    answer = (await stocked.get("/v1/collections/a/fields")).json()
    assert (answer["collection"], answer["documents"], answer["total"]) == ("a", 4, len(answer["fields"]))
    found = {field["name"]: field for field in answer["fields"]}
    assert found["status"] == {"name": "status", "origin": "metadata", "kind": "text", "documents": 3}
    assert found["level"]["kind"] == "number"
    assert found["updated"] == {"name": "updated", "origin": "document", "kind": "date", "documents": 4}
    few = (await stocked.get("/v1/collections/a/fields", limit=1)).json()
    assert (len(few["fields"]), few["total"]) == (1, answer["total"])


async def test_a_value_comes_with_the_filter_that_a_search_takes(stocked: Running) -> None:
    answer = (await stocked.get("/v1/collections/a/fields/status/values")).json()
    assert answer["values"] == [
        {"value": "final", "documents": 2, "filter": "status=final"},
        {"value": "Draft|New", "documents": 1, "filter": "status=Draft\\|New"},
    ]
    for each in answer["values"]:
        search = {"q": "river", "mode": "keyword", "collection": "a", "group": "document", "filter": each["filter"]}
        hits = (await stocked.get("/v1/search", **search)).json()["hits"]
        assert len(hits) == each["documents"]
    begun = (await stocked.get("/v1/collections/a/fields/status/values", prefix="DR", limit=5)).json()
    assert ([each["value"] for each in begun["values"]], begun["total"]) == (["Draft|New"], 1)


async def test_a_field_may_hold_slashes_and_one_with_an_operator_has_no_filter(stocked: Running) -> None:
    slashed = (await stocked.get("/v1/collections/a/fields/a/b/values")).json()
    assert slashed["values"] == [{"value": "x", "documents": 1, "filter": "a/b=x"}]
    odd = (await stocked.get("/v1/collections/a/fields/c%3Dd/values")).json()
    assert odd["values"] == [{"value": "y", "documents": 1, "filter": None}]


async def test_what_is_not_there_is_a_problem_that_says_what_is(stocked: Running) -> None:
    field = problem(await stocked.get("/v1/collections/a/fields/stauts/values"))
    assert (field["status"], field["reason"]) == (404, "unknown_field")
    assert "status" in field["detail"]
    for path in ("/v1/collections/none/fields", "/v1/collections/none/fields/status/values"):
        gone = problem(await stocked.get(path))
        assert (gone["status"], gone["reason"]) == (404, "unknown_collection")
        assert "There are documents in a." in gone["detail"]


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 1_001}, {"prefix": "x" * 301}, {"prefx": "a"}])
async def test_what_does_not_fit_is_refused(stocked: Running, query: dict[str, object]) -> None:
    assert problem(await stocked.get("/v1/collections/a/fields/status/values", **query))["status"] == 422
