"""The folders that people begin with, and odd ones: whatever is asked of them, the answer is sound."""

import csv
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes.installation import Installation

BAKERY = Path(__file__).parents[1] / "bench" / "bakery"
FEW_WORDS = ["the", "2025", "in 2025", "Heron Hive", "blue", "¿dónde está el puente?", "?", "heron heron heron"]


def note(number: int, title: str, text: str, **metadata: Any) -> dict[str, Any]:
    return {"id": f"n{number}", "title": title, "content": text, "metadata": metadata}


COLLECTIONS: dict[str, list[dict[str, Any]]] = {
    "one-document": [note(0, "Heron Hive", "The heron hive is blue and was built in 2025.", colour="blue")],
    "copies": [note(number, "Heron Hive", "The heron hive is blue and was built in 2025.") for number in range(300)],
    "titles-alone": [note(number, title, "") for number, title in enumerate(["Heron Hive", "Otter Gate", "Blue Weir"])],
    "rows-alone": [
        {"id": "rows.csv", "media_type": "text/csv", "content": "sku,colour\nheron,blue\notter,brown\nweir,blue\n"}
    ],
    "two-languages": [
        note(0, "Puente", "¿Dónde está el puente? El puente azul está junto al río."),
        note(1, "Heron Hive", "The heron hive is blue and stands by the river."),
    ],
    "firm": [
        note(0, "Accounts 2025", "Wages and rents of the year.", date="2025-03-01"),
        note(1, "Board in March 2026", "Our revenue of 2025 was 4,100 crowns.", date="2026-03-12"),
        *(
            note(number, f"Circular {number}", f"Deliveries of week {number}.", date="2025-05-01")
            for number in range(2, 30)
        ),
    ],
}


@pytest.fixture(scope="module")
def loaded(hashing: Installation) -> Installation:
    token = ""
    for collection, documents in COLLECTIONS.items():
        envelopes = [document | {"collection": collection} for document in documents]
        answer = httpx.post(f"{hashing.url}/v1/documents", json={"documents": envelopes}, timeout=30).json()
        assert answer["refused"] == []
        token = answer["token"]
    hashing.search(q="x", after=token, wait_seconds=60)
    return hashing


def ask(running: Installation, collection: str, q: str, **parameters: Any) -> Sequence[dict[str, Any]]:
    hits: Sequence[dict[str, Any]] = running.search(q=q, collection=collection, **parameters)["hits"]
    return hits


@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword", "graph"])
def test_any_question_of_any_collection_has_a_sound_answer(loaded: Installation, collection: str, mode: str) -> None:
    for q in FEW_WORDS:
        hits = ask(loaded, collection, q, mode=mode, group="document", duplicates="exact")
        documents = [hit["document_id"] for hit in hits]
        assert len(set(documents)) == len(documents), q
        confidences = [hit["confidence"] for hit in hits if hit["confidence"] is not None]
        assert all(0 <= each <= 1 for each in confidences), q
        assert all(later <= earlier + 0.05 for earlier, later in pairwise(confidences)), q
        assert all(hit["likelihood"] in {None, "likely", "possible", "unlikely"} for hit in hits), q


def test_only_document_is_found_and_unrelated_question_unlikely(loaded: Installation) -> None:
    [found] = ask(loaded, "one-document", "which hive is blue")
    assert found["likelihood"] != "unlikely"
    assert all(hit["unlikely"] for hit in ask(loaded, "one-document", "wages of the harbour master in Lisbon"))


def test_a_title_alone_a_row_and_another_language_are_found(loaded: Installation) -> None:
    assert ask(loaded, "titles-alone", "otter gate")[0]["title"] == "Otter Gate"
    assert "brown" in ask(loaded, "rows-alone", "colour of otter")[0]["text"]
    assert ask(loaded, "two-languages", "¿dónde está el puente?")[0]["title"] == "Puente"


def test_answers_among_fifteen_documents_are_not_unlikely(thalweg: Installation) -> None:
    """Explain X, a few words, or a whole question; and questions of other subjects, which nothing there answers."""
    thalweg.run("load", str(BAKERY / "documents.jsonl"), "--collection", "bakery", "--wait")
    with (BAKERY / "questions.tsv").open(encoding="utf-8") as lines:
        questions = [(row["question"], row["documents"].split(",")) for row in csv.DictReader(lines, delimiter="\t")]
    found = {q: ask(thalweg, "bakery", q, group="document")[0] for q, _ in questions}
    answered = [q for q, documents in questions if found[q]["document_id"] in documents]
    foreign = [q for q, documents in questions if documents == [""]][:15]
    assert len(answered) >= 23
    assert sum(found[q]["unlikely"] for q in answered) <= 1
    assert sum(found[q]["unlikely"] for q in foreign) >= 13
    assert found["explain gluten"]["confidence"] > 0.5
