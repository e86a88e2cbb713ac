"""`as_of` and `since`: entities and statements as kept snapshots of the graph have them, and what was withdrawn."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from indexer.generation_folders import Generation
from query_api.index.store_opening import GraphFile
from tests.support.fakes.engine import FIRST, ScriptedEngine, make_generation
from tests.support.fakes.service import Running, service_over
from tests.support.fakes.text_stores import Page
from tests.support.fixtures.graph_snapshots import write_snapshot

HOUR_MS = 3_600_000
MARCH_MS = 1_740_787_200_000  # 2025-03-01T00:00:00Z
BEFORE, AFTER = "2025-02-01T00:00:00Z", "2025-03-01T00:30:00Z"


def page(revision: str, text: str, *facts: tuple[str, str, str]) -> Page:
    types = {"Beacon": "product"}
    return Page("beacon", "Beacon", [[text]], ["Beacon"], facts=facts, collection="a", types=types, revision=revision)


OLD = page("1", "Beacon requires Kafka.", ("Beacon", "depends_on", "Kafka"), ("Beacon", "is_a", "service"))
NEW = page("2", "Beacon requires Redis.", ("Beacon", "depends_on", "Redis"), ("Beacon", "is_a", "service"))


@pytest.fixture
async def replaced(tmp_path: Path) -> AsyncIterator[Running]:
    """Beacon's document has been replaced; a snapshot from before is kept, and one of an empty graph after that."""
    make_generation(tmp_path)
    engine = ScriptedEngine()
    engine.reader.put(NEW, p0=(7, 9))
    engine.graph_file = GraphFile("now", 9)
    engine.graphs["now"] = [NEW.contribution()]
    snapshots = Generation(tmp_path, FIRST).snapshots_dir
    write_snapshot(snapshots, [OLD.contribution()], 5, MARCH_MS, {0: 4})
    write_snapshot(snapshots, [], 7, MARCH_MS + HOUR_MS, {0: 6})
    async with service_over(tmp_path, engine) as service:
        yield service


async def beacon(running: Running, **params: str) -> dict[str, Any]:
    response = await running.get("/v1/entities/Beacon", collection="a", **params)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def facts(statements: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(each["predicate"], each["object"]["label"]) for each in statements}


@pytest.mark.parametrize("as_of", [AFTER, "5", "6", "0:4", "0:5"])
async def test_an_entity_is_read_as_it_was(replaced: Running, as_of: str) -> None:
    then = await beacon(replaced, as_of=as_of)
    assert facts(then["statements"]) == {("depends_on", "Kafka"), ("is_a", "service")}
    assert (then["graph_position"], then["as_of"]) == (5, "2025-03-01T00:00:00+00:00")
    now = await beacon(replaced)
    assert facts(now["statements"]) == {("depends_on", "Redis"), ("is_a", "service")}
    assert (now["as_of"], now["withdrawn"]) == (None, None)


async def test_the_record_of_a_replaced_revision_is_not_that_of_the_new_one(replaced: Running) -> None:
    then = await beacon(replaced, as_of="5")
    records = {each["position"] for fact in then["statements"] for each in fact["evidence"]}
    now = await beacon(replaced)
    assert records == {None}
    assert None not in {each["position"] for fact in now["statements"] for each in fact["evidence"]}


async def test_statements_are_drawn_as_they_were(replaced: Running) -> None:
    then = (await replaced.get("/v1/statements", as_of="5")).json()
    assert facts(then["statements"]) == {("depends_on", "Kafka"), ("is_a", "service")}
    assert (then["graph_position"], then["as_of"]) == (5, "2025-03-01T00:00:00+00:00")
    assert (await replaced.get("/v1/statements", as_of="8")).json()["statements"] == []


async def test_since_tells_what_was_withdrawn(replaced: Running) -> None:
    changed = await beacon(replaced, since=AFTER)
    assert facts(changed["withdrawn"]) == {("depends_on", "Kafka")}
    assert (await beacon(replaced, since=BEFORE))["withdrawn"] is None


@pytest.mark.parametrize("path", ["/v1/entities/Beacon", "/v1/statements"])
async def test_what_is_not_kept_is_gone_and_the_oldest_is_named(replaced: Running, path: str, tmp_path: Path) -> None:
    gone = await replaced.get(path, as_of=BEFORE)
    assert gone.status_code == 410
    assert gone.json()["oldest"] == {"graph_position": 5, "made_at": "2025-03-01T00:00:00+00:00"}
    assert (await replaced.get(path, as_of="0:3")).status_code == 410, "a token from before all that is kept"
    assert "2025-03-01T00:00:00" in gone.json()["detail"]
    shutil.rmtree(Generation(tmp_path, FIRST).snapshots_dir)
    none = await replaced.get(path, as_of=BEFORE)
    assert (none.status_code, none.json()["oldest"]) == (410, None)


@pytest.mark.parametrize(
    ("params", "words"), [({"as_of": "long ago"}, "long ago"), ({"as_of": "5", "after": "0:1"}, "not both")]
)
async def test_a_moment_that_is_none_is_refused(replaced: Running, params: dict[str, str], words: str) -> None:
    refused = await replaced.get("/v1/statements", **params)
    assert refused.status_code == 422
    assert words in refused.json()["detail"]


async def test_an_entity_that_was_not_there_then_is_not_found(replaced: Running) -> None:
    assert (await replaced.get("/v1/entities/Beacon", collection="a", as_of="8")).status_code == 404
