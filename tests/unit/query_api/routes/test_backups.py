"""Backups over HTTP: written in the background, checked, listed, dropped, and what is refused."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from indexer.backup import archive
from indexer.backup.archive import open_backup
from indexer.generation_folders import current_generation, read_manifest
from indexer.write.lance_writer import LanceWriter
from query_api.operations import backup_jobs as backups
from tests.support.fakes.service import Running, problem


@pytest.fixture
def folder(running: Running) -> Path:
    """That of the backups of stores with one document."""
    live = current_generation(running.service.settings.storage.data_dir)
    assert live is not None
    writer = LanceWriter.open(live, read_manifest(live).dimension)
    writer.close()
    return live.data_dir / "backups"


async def ended(running: Running, name: str) -> dict[str, Any]:
    """The backup when nothing is done with it any more."""
    async with asyncio.timeout(30):
        while (  # noqa: ASYNC110 -- a thread of the service works
            shown := await running.http.get(f"/v1/backups/{name}")
        ).json()["state"] in ("writing", "verifying"):
            await asyncio.sleep(0.01)
    return dict(shown.json())


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def begun(running: Running, **body: object) -> httpx.Response:
    return await running.http.post("/v1/backups", json=body)


async def test_one_is_written_checked_listed_and_dropped(running: Running, folder: Path) -> None:
    answer = await begun(running, name="monday.tar.zst")
    assert (answer.status_code, answer.headers["Location"]) == (202, "/v1/backups/monday.tar.zst")
    made = await ended(running, "monday.tar.zst")
    assert (made["state"], made["problem"], made["intact"]) == ("complete", None, None)
    assert made["done_bytes"] == made["bytes"] > 0
    with open_backup(folder / "monday.tar.zst") as backup:
        assert backup.manifest.generation == made["generation"]
    assert (await running.http.post("/v1/backups/monday.tar.zst/verify")).status_code == 202
    assert (await ended(running, "monday.tar.zst"))["intact"] is True
    unnamed = await begun(running)
    await ended(running, unnamed.json()["name"])
    (listed,) = [each for each in (await running.http.get("/v1/backups")).json()["backups"] if each["intact"]]
    assert listed["name"] == "monday.tar.zst"
    assert problem(await begun(running, name="monday.tar.zst"))["status"] == 409
    assert (await running.http.delete("/v1/backups/monday.tar.zst")).status_code == 204
    assert not (folder / "monday.tar.zst").exists()
    assert problem(await running.http.get("/v1/backups/monday.tar.zst"))["status"] == 404


async def test_what_is_there_since_before_is_shown_and_a_damaged_one_told(running: Running, folder: Path) -> None:
    await begun(running, name="a.tar")
    await ended(running, "a.tar")
    content = (folder / "a.tar").read_bytes()
    (folder / "cut.tar").write_bytes(content[: len(content) // 2])
    at = content.rindex(b"_versions/")
    (folder / "flipped.tar").write_bytes(content[:at] + b"?" + content[at + 1 :])
    cut = await ended(running, "cut.tar")
    assert (cut["state"], cut["intact"], "is cut or damaged" in cut["problem"]) == ("complete", False, True)
    assert (await ended(running, "flipped.tar"))["intact"] is None
    await running.http.post("/v1/backups/flipped.tar/verify")
    flipped = await ended(running, "flipped.tar")
    assert (flipped["state"], flipped["intact"], "cut or damaged" in flipped["problem"]) == ("complete", False, True)
    names = [each["name"] for each in (await running.http.get("/v1/backups")).json()["backups"]]
    assert sorted(names) == ["a.tar", "cut.tar", "flipped.tar"]


async def test_one_at_a_time(running: Running, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def write(*arguments: object) -> None:
        released.wait(30)
        archive.write_backup(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(backups, "write_backup", write)
    assert (await begun(running, name="first.tar")).json()["state"] == "writing"
    for refused in (
        await begun(running, name="second.tar"),
        await running.http.post("/v1/backups/first.tar/verify"),
        await running.http.delete("/v1/backups/first.tar"),
    ):
        assert (refused.status_code, "wait for it" in problem(refused)["detail"]) == (409, True)
    released.set()
    assert (await ended(running, "first.tar"))["state"] == "complete"
    assert names_in(folder) == ["first.tar"]


@pytest.mark.parametrize(
    ("ask", "status", "says"),
    [
        (lambda http: http.post("/v1/backups", json={"name": "../up.tar"}), 422, "ends with .tar, .tar.gz or .tar.zst"),
        (lambda http: http.post("/v1/backups", json={"name": "monday.zip"}), 422, "ends with .tar"),
        (lambda http: http.get("/v1/backups/none.tar"), 404, "There is no backup none.tar"),
        (lambda http: http.get("/v1/backups/CURRENT"), 404, "There is no backup"),
        (lambda http: http.post("/v1/backups/none.tar/verify"), 404, "There is no backup none.tar"),
        (lambda http: http.delete("/v1/backups/none.tar"), 404, "There is no backup none.tar"),
    ],
)
async def test_what_names_no_backup_is_refused(
    ask: Callable[[httpx.AsyncClient], Any], status: int, says: str, running: Running
) -> None:
    answer = await ask(running.http)
    assert (answer.status_code, says in problem(answer)["detail"]) == (status, True)


async def test_one_that_cannot_be_written_says_why_and_leaves_nothing(
    running: Running, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive.shutil, "disk_usage", lambda _path: type("Usage", (), {"free": 3})())
    await begun(running, name="large.tar")
    failed = await ended(running, "large.tar")
    assert (failed["state"], "make room there" in failed["problem"]) == ("failed", True)
    assert names_in(folder) == []
    monkeypatch.undo()
    await begun(running, name="large.tar")
    assert (await ended(running, "large.tar"))["state"] == "complete"
