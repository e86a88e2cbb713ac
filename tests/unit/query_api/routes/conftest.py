"""A service with a few documents and a scripted engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from query_api.index.store_opening import GraphFile
from query_api.ingest.producer import OutgoingRecord
from tests.support.fakes.curation import CurationLog, curation_log
from tests.support.fakes.engine import ScriptedEngine, SearchingEngine, make_generation, make_hit
from tests.support.fakes.service import PAGES, Running, service_over
from tests.support.fakes.text_stores import Page
from tests.unit.query_api.routes.library import KEY, READ_KEY
from tests.unit.query_api.study.course import course


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    engine = ScriptedEngine(hits=[make_hit(1), make_hit(2)])
    engine.reader.put(*PAGES, p0=(7, 3))
    engine.graph_file = GraphFile("s1", 3)
    engine.graphs["s1"] = [page.contribution() for page in PAGES]
    async with service_over(tmp_path, engine) as service:
        yield service


@pytest.fixture
async def school(tmp_path: Path) -> AsyncIterator[Running]:
    """A service with keys, a course to study, and a collection that has nothing to study in it."""
    make_generation(tmp_path)
    lone = Page("lone", "Lone", [["Nothing here says a thing."]], collection="other")
    engine, pages = SearchingEngine(), [*course(), lone]
    engine.reader.put(*pages, p0=(7, 3))
    engine.graph_file = GraphFile("s1", 3)
    engine.graphs["s1"] = [page.contribution() for page in pages]
    async with service_over(tmp_path, engine, api_key=KEY, read_api_key=READ_KEY) as running:
        yield running


@pytest.fixture
def log_of_school(school: Running, monkeypatch: pytest.MonkeyPatch) -> CurationLog:
    return curation_log(school, monkeypatch)


@pytest.fixture
def log(running: Running, monkeypatch: pytest.MonkeyPatch) -> CurationLog:
    return curation_log(running, monkeypatch)


@pytest.fixture
def sent(log: CurationLog) -> list[OutgoingRecord]:
    """The records of the curation topic."""
    return log.records
