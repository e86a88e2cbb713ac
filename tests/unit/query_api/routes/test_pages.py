"""Pages by cursor: one snapshot from the first page to the last, or a plain word that it is gone."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.fakes.engine import Reader, Tables, make_generation
from tests.support.fakes.service import events, problem
from tests.support.waiting import eventually
from tests.unit.query_api.routes.library import change, found, library, note

KEYWORD: dict[str, Any] = {"q": "river", "mode": "keyword", "k": 3}


async def test_pages_by_cursor_hold_every_hit_once_while_documents_change(tmp_path: Path) -> None:
    async with library(tmp_path) as running:
        at_once = [hit["chunk_id"] for hit in (await found(running, k=100))["hits"]]
        page = await found(running)
        pages = [page]
        for turn in range(1, 10):
            await change(running, *(note(100 * turn + number) for number in range(3)), offset=7 + turn)
            if page["next_cursor"] is None:
                break
            page = await found(running, cursor=page["next_cursor"])
            pages.append(page)
        assert [hit["chunk_id"] for each in pages for hit in each["hits"]] == at_once
        assert [hit["rank"] for each in pages for hit in each["hits"]] == list(range(1, 8))
        assert {each["snapshot"]["positions"] for each in pages} == {"0:7"}
        assert len((await found(running, k=100))["hits"]) > len(at_once)


async def test_cursor_made_before_a_switch_goes_on_over_its_snapshot(tmp_path: Path) -> None:
    async with library(tmp_path) as running:
        at_once = [hit["chunk_id"] for hit in (await found(running, k=100))["hits"]]
        page = await found(running)
        pages = [page]
        running.engine.readers["g0002"] = Reader()
        running.engine.readers["g0002"].put(note(70), p0=(7, -1))
        make_generation(tmp_path, "g0002")
        await eventually(lambda: running.service.snapshot().generation == "g0002")
        while page["next_cursor"] is not None:
            page = await found(running, cursor=page["next_cursor"])
            pages.append(page)
        assert [hit["chunk_id"] for each in pages for hit in each["hits"]] == at_once
        assert {each["snapshot"]["generation"] for each in pages} == {"g0001"}
        assert [hit["title"] for hit in (await found(running))["hits"]] == ["Note 70"]


async def test_a_stream_ends_with_the_cursor_too_and_goes_on_from_it(tmp_path: Path) -> None:
    headers = {"Accept": "text/event-stream"}
    async with library(tmp_path) as running:
        first = events(await running.http.get("/v1/search", params=KEYWORD, headers=headers))
        cursor = first[-1][2]["next_cursor"]
        await change(running, note(50), offset=8)
        params = {**KEYWORD, "cursor": cursor}
        second = events(await running.http.get("/v1/search", params=params, headers=headers))
        assert [body["rank"] for name, _, body in second if name == "hit"] == [4, 5, 6]
        resumed = {**headers, "Last-Event-ID": second[1][1]}
        again = events(await running.http.get("/v1/search", params=params, headers=resumed))
        assert again == second[2:]


async def test_a_page_may_have_another_length_but_not_another_question(tmp_path: Path) -> None:
    async with library(tmp_path) as running:
        cursor = (await found(running))["next_cursor"]
        assert [hit["rank"] for hit in (await found(running, cursor=cursor, k=2))["hits"]] == [4, 5]
        for other in ({"q": "high"}, {"collection": "a"}, {"group": "document"}):
            refused = problem(await running.get("/v1/search", **{**KEYWORD, "cursor": cursor, **other}))
            assert (refused["status"], refused["title"]) == (400, "Another question")


async def test_a_cursor_whose_snapshot_is_gone_says_to_begin_again(tmp_path: Path) -> None:
    async with library(tmp_path, constants={"query_api.service_context.CURSOR_SNAPSHOTS": 1}) as running:
        cursor = (await found(running))["next_cursor"]
        await change(running, note(50), offset=8)
        await found(running)
        refused = problem(await running.get("/v1/search", **KEYWORD, cursor=cursor))
        assert refused["status"] == 410
        assert "begin at the first page" in refused["detail"]


async def test_a_cursor_whose_tables_the_worker_has_removed_says_to_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with library(tmp_path) as running:
        cursor = (await found(running))["next_cursor"]
        assert [hit["rank"] for hit in (await found(running, cursor=cursor))["hits"]] == [4, 5, 6]
        monkeypatch.setattr(Tables, "removed", True)
        refused = problem(await running.get("/v1/search", **KEYWORD, cursor=cursor))
        assert (refused["status"], refused["title"]) == (410, "Snapshot gone")


async def test_a_cursor_of_a_service_that_was_started_again_is_gone(tmp_path: Path) -> None:
    async with library(tmp_path / "before") as running:
        cursor = (await found(running))["next_cursor"]
    async with library(tmp_path / "after") as running:
        assert problem(await running.get("/v1/search", **KEYWORD, cursor=cursor))["status"] == 410


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({"cursor": "nonsense"}, 400),
        ({"cursor": "🦉"}, 400),
        ({"cursor": "A" * 600}, 422),
        ({"cursor": "{cursor}", "offset": 3}, 422),
        ({"cursor": "{cursor}", "after": "0:8"}, 400),
    ],
)
async def test_a_cursor_that_does_not_fit_is_refused(tmp_path: Path, params: dict[str, Any], status: int) -> None:
    async with library(tmp_path) as running:
        cursor = (await found(running))["next_cursor"]
        given = {name: cursor if value == "{cursor}" else value for name, value in params.items()}
        assert problem(await running.get("/v1/search", **KEYWORD, **given))["status"] == status


async def test_the_last_page_has_no_cursor_and_keeps_no_snapshot(tmp_path: Path) -> None:
    async with library(tmp_path) as running:
        assert (await found(running, k=7))["next_cursor"] is None
        assert len(running.service.pinned) == 0
