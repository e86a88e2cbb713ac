"""Retrievers for other frameworks: parameters that reach the service, documents with their metadata."""

import json
from typing import Any

import httpx
import pytest

from query_api.client import Refused, ServiceClient
from query_api.integrations import metadata_of, needs
from query_api.typed_client import Client
from tests.support.fakes.engine import make_hit

METADATA = {
    "document_id": "notes/1.md",
    "collection": "default",
    "title": "Note 1",
    "uri": None,
    "section": ["Note 1", "Today"],
    "score": 1.0,
    "confidence": 0.7,
    "start": 0,
    "end": 18,
}
SNAPSHOT = {"generation": "g1", "graph_position": 3, "table_versions": {}, "positions": "0:7", "as_of": "2026-11-27"}


class Service:
    """Finds as many hits as are asked for, and refuses the parameter `kk`."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.client = Client(service=ServiceClient("http://127.0.0.1:1", None, httpx.MockTransport(self._answer)))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)
        self.asked.append(asked)
        if "kk" in asked:
            return httpx.Response(422, json={"title": "Bad request", "detail": "There is no parameter `kk`."})
        hits = [make_hit(rank).model_dump(by_alias=True) for rank in range(1, asked.get("k", 10) + 1)]
        answer = {"retrieval_id": "r_1", "query": asked["q"], "mode": "hybrid", "snapshot": SNAPSHOT}
        return httpx.Response(200, json={**answer, "hits": hits, "timings": {}, "next_offset": None})


@pytest.fixture
def service() -> Service:
    return Service()


def test_metadata_says_where_a_text_is_from() -> None:
    assert metadata_of(make_hit(1)) == METADATA


def test_a_framework_that_is_missing_is_named_with_its_extra() -> None:
    with (
        pytest.raises(ImportError, match=r"no package 'langchain_gore' here: install it with .*\[langchain\]"),
        needs("langchain"),
    ):
        import langchain_gore  # noqa: F401


class TestLangChain:
    @pytest.fixture(autouse=True)
    def _framework(self) -> None:
        pytest.importorskip("langchain_core", reason="the extra `langchain` is not installed")

    def retriever(self, service: Service, **options: Any) -> Any:
        from query_api.integrations.langchain import ThalwegRetriever

        return ThalwegRetriever(client=service.client, **options)

    def test_documents_have_text_and_metadata(self, service: Service) -> None:
        (document,) = self.retriever(service, k=1).invoke("river")
        assert (document.id, document.page_content, document.metadata) == (f"{1:032x}", "The river is high.", METADATA)

    def test_a_call_overrides_what_the_retriever_has(self, service: Service) -> None:
        made = self.retriever(service, k=1, parameters={"mode": "keyword", "collection": "notes"})
        made.invoke("river", mode="vector", k=2)
        assert service.asked == [{"q": "river", "k": 2, "mode": "vector", "collection": "notes"}]

    def test_what_the_service_refuses_is_raised(self, service: Service) -> None:
        with pytest.raises(Refused, match="`kk`"):
            self.retriever(service, parameters={"kk": 1}).invoke("river")


class TestLlamaIndex:
    @pytest.fixture(autouse=True)
    def _framework(self) -> None:
        pytest.importorskip("llama_index.core", reason="the extra `llama-index` is not installed")

    async def test_nodes_have_text_metadata_and_score(self, service: Service) -> None:
        from query_api.integrations.llama_index import ThalwegRetriever

        made = ThalwegRetriever(service.client, k=1, mode="keyword")
        for found in (made.retrieve("river"), await made.aretrieve("river")):
            (node,) = found
            assert (node.node.node_id, node.text, node.metadata) == (f"{1:032x}", "The river is high.", METADATA)
            assert node.score == 1.0
        assert service.asked == [{"q": "river", "k": 1, "mode": "keyword"}] * 2

    def test_what_the_service_refuses_is_raised(self, service: Service) -> None:
        from query_api.integrations.llama_index import ThalwegRetriever

        with pytest.raises(Refused, match="`kk`"):
            ThalwegRetriever(service.client, kk=1).retrieve("river")


class TestHaystack:
    @pytest.fixture(autouse=True)
    def _framework(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
        pytest.importorskip("haystack", reason="the extra `haystack` is not installed")

    def test_a_pipeline_finds_documents(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        from haystack import Pipeline

        from query_api.integrations.haystack import ThalwegRetriever

        made = ThalwegRetriever("http://127.0.0.1:1", parameters={"mode": "keyword"})
        monkeypatch.setattr(made, "_client", service.client)
        pipeline = Pipeline()
        pipeline.add_component("retriever", made)
        given = {"query": "river", "top_k": 1, "parameters": {"collection": "notes"}}
        (document,) = pipeline.run({"retriever": given})["retriever"]["documents"]
        assert (document.id, document.content, document.meta) == (f"{1:032x}", "The river is high.", METADATA)
        assert document.score == 1.0
        assert service.asked == [{"q": "river", "k": 1, "mode": "keyword", "collection": "notes"}]
        with pytest.raises(Exception, match="`kk`"):
            pipeline.run({"retriever": {"query": "river", "parameters": {"kk": 1}}})

    def test_a_pipeline_is_saved_without_the_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from haystack import Pipeline
        from haystack.utils import Secret

        from query_api.integrations.haystack import ThalwegRetriever

        monkeypatch.setenv("RIVER_KEY", "s3cret-of-the-river")
        pipeline = Pipeline()
        key = Secret.from_env_var("RIVER_KEY")
        pipeline.add_component("retriever", ThalwegRetriever("http://127.0.0.1:1", key, 3, {"mode": "keyword"}))
        saved = pipeline.dumps()
        assert "s3cret" not in saved
        read = Pipeline.loads(saved, allowed_modules=[ThalwegRetriever.__module__]).get_component("retriever")
        assert (read.url, read.top_k, read.parameters) == ("http://127.0.0.1:1", 3, {"mode": "keyword"})
        assert read.api_key.resolve_value() == "s3cret-of-the-river"
