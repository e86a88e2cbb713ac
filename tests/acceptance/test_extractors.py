"""A collection whose entities a language model finds: chosen at the terminal, seen in the answers of the service."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.fakes.model_endpoints import chat_endpoint
from tests.support.processes.installation import HASHING, installation
from tests.support.waiting import wait_until

SENTENCE = "Brightling hums at Zorf, and Zorf is a small town."
SAID = {
    "entities": [
        {"name": "Brightling", "type": "product", "definition": None},
        {"name": "Zorf", "type": "place", "definition": "a small town"},
        {"name": "Atlantis", "type": "place", "definition": None},
    ],
    "statements": [{"subject": "Brightling", "predicate": "hums_at", "object": "Zorf", "sentence": SENTENCE}],
}


@pytest.mark.nightly  # of stores in memory: unit tests of `indexing/extract`
@pytest.mark.timeout(300)
def test_chosen_language_model_extracts_what_the_text_states(tmp_path: Path) -> None:
    with chat_endpoint(says={"Brightling": SAID}) as endpoint:
        settings = {"THALWEG_LANGUAGE_MODEL__BASE_URL": endpoint.url, "THALWEG_LANGUAGE_MODEL__MODEL": "reader"}
        with installation(tmp_path / "data", **HASHING, **settings) as thalweg:
            thalweg.run("collections", "settings", "asked", "extraction", "extractor=language_model")
            chosen = thalweg.run_json("collections", "settings", "asked", "extraction")
            assert chosen["extractor"] == "language_model"
            for collection in ("asked", "plain"):
                written = httpx.put(
                    f"{thalweg.url}/v1/documents/a.txt",
                    params={"collection": collection},
                    content=SENTENCE.encode(),
                    headers={"content-type": "text/plain"},
                    timeout=30,
                ).json()
                thalweg.search(q="zorf", collection=collection, after=written["token"])

            def entities(collection: str) -> dict[str, Any]:
                asked = {"collection": collection}
                listed = httpx.get(f"{thalweg.url}/v1/entities", params=asked, timeout=30).json()
                return {each["label"]: each for each in listed["entities"]}

            wait_until(lambda: "Brightling" in entities("asked"), "its entities are shown", 30)
            assert {name: each["type"] for name, each in entities("asked").items()} == {
                "Brightling": "product",
                "Zorf": "place",
            }
            found = httpx.get(f"{thalweg.url}/v1/entities/{entities('asked')['Zorf']['id']}", timeout=30).json()
            assert found["definition"]["text"] == SENTENCE
            assert "hums_at" in {each["predicate"] for each in found["statements"]}
            assert "Brightling" not in entities("plain")
            assert len(endpoint.bodies) == 1, "only the collection that chose it is sent"
