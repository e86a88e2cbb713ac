"""Summaries of documents and communities: sentences of documents, or written by a language model and kept."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from query_api.index.store_opening import GraphFile
from tests.support.fakes.curation import CurationLog, curation_log
from tests.support.fakes.engine import ScriptedEngine, make_generation
from tests.support.fakes.model_endpoints import BROKEN, HANGING, ChatEndpoint, chat_endpoint
from tests.support.fakes.service import Running, problem, service_over
from tests.support.fakes.text_stores import Page
from tests.support.fixtures.communities import two_themes, view_of
from tests.support.waiting import eventually
from tests.unit.query_api.answers.model.test_instructions import ORDERS, PLACES, obedient

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
RIVER = ["The river is high in spring.", "Ada Lovelace measured the river in 1840.", "Its mouth is a wide delta."]
LONG = [[f"The {number}th chapter is about the number {number}."] for number in range(1, 24)]
SAID = "Ada Lovelace measured the river in 1840 [1].\nIt was Bob who measured it [1]."
ELBE = "The Elbe and the Oder are compared with the Spree [1]."


def pages(river: Sequence[str] = RIVER) -> list[Page]:
    more = [Page("river", "River", [list(river)], collection="a"), Page("long", "Long", LONG, collection="a")]
    return [*two_themes("a"), *more]


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with chat_endpoint(writes=lambda _: SAID) as running:
        yield running


def serve(engine: ScriptedEngine, found: Sequence[Page], position: int = 3) -> None:
    engine.reader.pages = {}
    engine.reader.put(*found, p0=(position + 4, position))
    engine.graph_file = GraphFile(f"s{position}", position)
    engine.graphs[f"s{position}"] = [page.contribution() for page in found]


@asynccontextmanager
async def service(data_dir: Path, endpoint: ChatEndpoint | None, **block: Any) -> AsyncIterator[Running]:
    make_generation(data_dir)
    engine = ScriptedEngine()
    serve(engine, pages())
    engine.communities = view_of(pages())
    model = None if endpoint is None else endpoint.settings()
    async with service_over(data_dir, engine, language_model=model, **block) as running:
        await eventually(lambda: running.service.snapshot().communities is not None)
        yield running


@pytest.fixture
async def running(tmp_path: Path, endpoint: ChatEndpoint) -> AsyncIterator[Running]:
    async with service(tmp_path, endpoint) as made:
        yield made


@pytest.fixture
def log(running: Running, monkeypatch: pytest.MonkeyPatch) -> CurationLog:
    return curation_log(running, monkeypatch)


async def summary(running: Running, path: str = "/v1/documents/river", **params: Any) -> dict[str, Any]:
    response = await running.get(path, **{"summary_form": "model", **params})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["written_summary"]
    return found


async def test_a_summary_is_written_and_kept(running: Running, log: CurationLog, endpoint: ChatEndpoint) -> None:
    found = await summary(running)
    assert (found["form"], found["text"], found["dropped"], found["notes"]) == (
        "model",
        "Ada Lovelace measured the river in 1840. [1]",
        1,
        [],
    )
    [source] = found["citations"]
    assert (source["text"], source["document_id"]) == (RIVER[1], "river")
    whole = (await running.get("/v1/documents/river")).json()
    assert whole["written_summary"] is None
    assert whole["text"][source["start"] : source["end"]] == source["text"]
    assert found["usage"]["completion_tokens"] == len(SAID.split())
    assert found["made_at"]
    assert await summary(running) == found
    assert (len(endpoint.bodies), len(log.saved)) == (1, 1)
    assert str(log.saved[0].key).count("/") == 2
    assert b"service/summary/" in log.saved[0].key
    text = (await running.get("/metrics")).text
    line = f'thalweg_model_tokens_total{{caller="anyone",kind="completion"}} {len(SAID.split())}.0'
    assert line in text


async def test_it_is_written_again_when_its_document_changes_or_somebody_asks(
    running: Running, log: CurationLog, endpoint: ChatEndpoint
) -> None:
    first = await summary(running)
    endpoint.writes = lambda _: "The river is high in spring [1]."
    again = await summary(running, refresh=True)
    assert [body["temperature"] for body in endpoint.bodies] == [0, 0.3]
    assert again["text"] == "The river is high in spring. [1]"
    assert await summary(running) == again != first
    serve(running.engine, pages([*RIVER, "It is dammed."]), 4)
    await eventually(lambda: running.service.snapshot().graph.position == 4)
    endpoint.writes = lambda _: "The river is dammed [1]."
    assert (await summary(running))["text"] == "The river is dammed. [1]"
    assert (len(endpoint.bodies), len(log.saved)) == (3, 3)
    assert len({record.key for record in log.saved}) == 1


async def test_what_is_of_a_deleted_document_is_deleted_after_the_next_one(
    running: Running, log: CurationLog, endpoint: ChatEndpoint
) -> None:
    await summary(running)
    serve(running.engine, pages()[:-2], 4)
    await eventually(lambda: running.service.snapshot().graph.position == 4)
    assert (await running.get("/v1/documents/river", summary_form="model")).status_code == 404
    assert log.saved[-1].value is not None
    endpoint.writes = lambda _: ELBE
    await summary(running, "/v1/documents/rivers/0")
    assert [record.value is None for record in log.saved] == [False, False, True]
    assert log.saved[2].key == log.saved[0].key != log.saved[1].key
    await summary(running, "/v1/documents/rivers/1")
    assert [record.value is None for record in log.saved] == [False, False, True, False]


async def test_a_community_is_summarised_from_the_passages_that_its_summary_cites(
    running: Running, log: CurationLog, endpoint: ChatEndpoint
) -> None:
    page = (await running.get("/v1/communities", level="medium", q="elbe")).json()
    path = f"/v1/communities/{page['communities'][0]['id']}"
    extract = await summary(running, path, summary_form="extract")
    sentences = [each["text"] for each in page["communities"][0]["summary"]]
    assert (extract["form"], [each["text"] for each in extract["citations"]]) == ("extract", sentences)
    assert endpoint.bodies == []
    endpoint.writes = lambda _: ELBE
    found = await summary(running, path)
    assert (found["form"], found["text"][:12]) == ("model", ELBE[:12])
    assert "Names in them, as documents have these: Elbe;" in endpoint.bodies[0]["messages"][1]["content"]
    assert await summary(running, path) == found
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize(("failing", "why"), [(BROKEN, "failed (500)"), (None, "Nothing that the language")])
async def test_where_the_model_fails_it_is_the_extract_and_not_kept(
    running: Running, log: CurationLog, endpoint: ChatEndpoint, failing: Any, why: str
) -> None:
    endpoint.script = [failing] * 3 if failing else []
    endpoint.writes = lambda _: "It was Bob [1]."
    found = await summary(running)
    assert (found["form"], found["text"]) == ("extract", "*River*: Ada Lovelace measured the river in 1840. [1]")
    assert found["notes"][0].startswith(("The language model at", "Nothing"))
    assert why in found["notes"][0]
    assert log.saved == []
    endpoint.writes = lambda _: SAID
    kept = await summary(running)
    endpoint.writes = lambda _: "It was Bob [1]."
    again = await summary(running, refresh=True)
    assert (again["text"], again["form"]) == (kept["text"], "model")
    assert again["notes"][0].endswith("The summary is the one that it wrote before.")


async def test_it_is_given_where_it_cannot_be_kept(running: Running, endpoint: ChatEndpoint) -> None:
    """There is no Kafka here."""
    found = await summary(running)
    assert (found["form"], len(found["citations"])) == ("model", 1)
    assert found["notes"][0].startswith("This is not kept, and is written again the next time.")


async def test_of_a_long_document_passages_at_even_distances_are_read(running: Running, endpoint: ChatEndpoint) -> None:
    found = await summary(running, "/v1/documents/long", summary_form="extract")
    numbers = [int(number) for number in re.findall(r"The (\d+)th chapter", found["text"])]
    assert (len(numbers), numbers[0], numbers[-1] > 15) == (5, 1, True)
    assert found["notes"] == ["It is of 5 of the document's 23 passages."]
    assert endpoint.bodies == []


async def test_who_asks_at_once_has_it_written_once(running: Running, log: CurationLog, endpoint: ChatEndpoint) -> None:
    found = await asyncio.gather(*(summary(running) for _ in range(5)))
    assert {each["text"] for each in found} == {"Ada Lovelace measured the river in 1840. [1]"}
    assert len(endpoint.bodies) == 1


async def test_without_a_model_there_is_the_extract(tmp_path: Path) -> None:
    async with service(tmp_path, None) as running:
        found = await summary(running, summary_form="extract")
        assert (found["form"], found["usage"]) == ("extract", None)
        refused = await running.get("/v1/documents/river", summary_form="model")
        assert refused.status_code == 422
        assert "`summary_form=model`: this service has no language model" in problem(refused)["detail"]


async def test_who_only_reads_may_not_have_it_written_again(tmp_path: Path, endpoint: ChatEndpoint) -> None:
    async with service(tmp_path, endpoint, api_key=KEY, read_api_key=READ_KEY) as running:
        for key, status in ((READ_KEY, 403), (KEY, 200)):
            params = {"summary_form": "model", "refresh": "true"}
            sent = {"Authorization": f"Bearer {key}"}
            response = await running.http.get("/v1/documents/river", params=params, headers=sent)
            assert response.status_code == status
        refused = await running.http.get("/v1/documents/river", params={"refresh": "true"}, headers=sent)
        assert "send `summary_form=model` with it" in problem(refused)["detail"]
        refused = await running.http.get("/v1/documents/river", params={"summary_form": "poem"}, headers=sent)
        assert refused.status_code == 422


@pytest.mark.parametrize("place", PLACES)
async def test_an_order_in_a_document_is_only_text(
    running: Running, log: CurationLog, endpoint: ChatEndpoint, place: str
) -> None:
    endpoint.writes = obedient
    for at, order in enumerate(ORDERS):
        told = place.format(order=order.format(trap="http://trap.example/collect"))
        serve(running.engine, [*pages(), Page("told", told[:60], [[told]], collection="a")], 10 + at)
        await eventually(lambda at=at: running.service.snapshot().graph.position == 10 + at)
        found = await summary(running, "/v1/documents/told")
        whole = (await running.get("/v1/documents/told")).json()["text"]
        for source in found["citations"]:
            assert (source["document_id"], whole[source["start"] : source["end"]]) == ("told", source["text"])
        if found["form"] == "model":
            assert not re.search(r"\]\(|!\[|<[A-Za-z!/]|\]:", found["text"])
        assert "hunter2" not in found["text"]
        assert "secret=" not in found["text"]


async def test_a_client_that_leaves_ends_the_writing(running: Running, endpoint: ChatEndpoint) -> None:
    endpoint.script = [HANGING]
    asking = asyncio.create_task(summary(running))
    await eventually(lambda: endpoint.bodies)
    asking.cancel()
    await asyncio.wait([asking])
    endpoint.closing.set()
    assert (await summary(running))["form"] == "model"
