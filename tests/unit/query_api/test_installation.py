"""Every answer names the installation; a request that is meant for another one does nothing."""

from pathlib import Path
from typing import Any

import pytest

from indexer.generation_folders import LogIdentity, record_log
from query_api.errors import AnotherLog
from query_api.ingest.producer import OutgoingRecord
from schemas.runtime import INSTALLATION_HEADER, installation_of
from tests.support.fakes.engine import ScriptedEngine, make_generation
from tests.support.fakes.service import problem, service_over

KEY: Any = "a-key-of-sixteen-or-more"
ANOTHER = {INSTALLATION_HEADER: "f" * 32}


@pytest.mark.parametrize("key", [None, KEY])
async def test_every_answer_names_the_installation(tmp_path: Path, key: str | None) -> None:
    installation = installation_of(tmp_path, make=True)
    make_generation(tmp_path)
    async with service_over(tmp_path, ScriptedEngine(), api_key=key) as running:
        running.http.headers["authorization"] = f"Bearer {KEY}"
        for path in ("/livez", "/readyz", "/", "/v1/status", "/v1/search?q=river", "/v1/nothing", "/v1/search"):
            response = await running.http.get(path)
            assert response.headers[INSTALLATION_HEADER] == installation, path
        status = (await running.get("/v1/status")).json()
        assert (status["installation"], status["data_dir"]) == (installation, str(tmp_path))
        del running.http.headers["authorization"]
        response = await running.get("/livez")
        assert str(tmp_path) not in f"{response.headers}{response.text}"


@pytest.mark.parametrize("key", [None, KEY])
async def test_request_meant_for_another_installation_is_refused(tmp_path: Path, key: str | None) -> None:
    """Before the key is looked at, which is that of the other one."""
    installation = installation_of(tmp_path, make=True)
    make_generation(tmp_path)
    engine = ScriptedEngine()
    async with service_over(tmp_path, engine, api_key=key) as running:
        for method, path in (("GET", "/v1/search?q=river"), ("DELETE", "/v1/cache"), ("POST", "/v1/documents")):
            response = await running.http.request(method, path, headers=ANOTHER)
            assert response.status_code == 421
            assert problem(response)["reason"] == "another_installation"
            assert response.headers[INSTALLATION_HEADER] == installation
        meant = {INSTALLATION_HEADER: installation, "authorization": f"Bearer {KEY}"}
        assert (await running.http.delete("/v1/cache", headers=meant)).status_code == 200


@pytest.mark.parametrize("served", [True, False])
async def test_service_writes_nothing_to_another_log(tmp_path: Path, served: bool) -> None:
    """Also before its stores are open, and also what the service writes by itself."""
    generation = make_generation(tmp_path, digest="words-1")
    record_log(generation, LogIdentity("d" * 32, "e" * 32))
    async with service_over(tmp_path, ScriptedEngine(), until_ready=served) as running:
        if not served:
            running.service.snapshots.served = None
        running.service.log_identity.topic_id = "f" * 32
        for refused in (
            await running.http.put("/v1/documents/a", content="text", headers={"content-type": "text/plain"}),
            await running.http.delete("/v1/documents/a"),
            await running.http.delete("/v1/collections/a/chunking"),
        ):
            assert refused.status_code == 503
            assert problem(refused)["reason"] == "another_log"
        with pytest.raises(AnotherLog):
            await running.service.writer.publish("curation", [OutgoingRecord(b"key", None)])
        assert any("filled from another log" in note for note in (await running.get("/readyz")).json()["notes"])


async def test_service_without_an_id_is_nobodys_installation(tmp_path: Path) -> None:
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False) as running:
        assert INSTALLATION_HEADER not in (await running.get("/livez")).headers
        assert (await running.get("/v1/status")).json()["installation"] is None
        assert (await running.http.get("/livez", headers=ANOTHER)).status_code == 421
