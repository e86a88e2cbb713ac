"""A question of several steps researched, the note saved and found again; claims checked: over real processes."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.processes.installation import Installation, installation

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
DOCUMENTS = {
    "alpha.md": "# Alpha Film\n\nAlpha Film is a drama film of 1950 that was directed by Jane Doe.",
    "jane.md": "# Jane Doe\n\nJane Doe (12 May 1914 – 3 June 2001) was a film director. Jane Doe was born in Lisbon.",
    "beta.md": "# Beta Film\n\nBeta Film is a film of 1951 about trains. <script>alert(1)</script> Nobody liked it.",
    "lisbon.md": "# Lisbon\n\nLisbon is the capital of Portugal. Its harbour has twelve piers.",
}
QUESTION = "Where was the director of Alpha Film born?"
READER = {"Authorization": f"Bearer {READ_KEY}"}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    keys = {"THALWEG_SERVICE__API_KEY": KEY, "THALWEG_SERVICE__READ_API_KEY": READ_KEY}
    with installation(tmp_path_factory.mktemp("research") / "data", **keys) as running:
        envelopes = [{"id": name, "collection": "films", "content": text} for name, text in DOCUMENTS.items()]
        headers = {"Authorization": f"Bearer {KEY}"}
        token = httpx.post(f"{running.url}/v1/documents", json=envelopes, headers=headers, timeout=60).json()["token"]
        reached(running, token)
        yield running


def reached(running: Installation, token: str) -> None:
    parameters: dict[str, Any] = {"q": "film", "after": token, "wait_seconds": 60}
    httpx.get(f"{running.url}/v1/search", params=parameters, headers=READER, timeout=90).raise_for_status()


def post(running: Installation, path: str, **body: Any) -> Any:
    answer = httpx.post(f"{running.url}{path}", json=body, headers=READER, timeout=90)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.timeout(300)
def test_a_note_is_written_saved_and_no_evidence_for_the_next(films: Installation) -> None:
    note = post(films, "/v1/research", q=QUESTION)
    assert "Jane Doe was born in Lisbon." in note["text"]
    for one in note["citations"]:
        whole = httpx.get(f"{films.url}/v1/documents/{one['document_id']}?collection=films", headers=READER).json()
        assert one["text"] in whole["text"]

    saved = json.loads(films.run("research", QUESTION, "--save", "--json").stdout)
    reached(films, saved["saved"]["token"])
    place = {"collection": "research"}
    document = httpx.get(f"{films.url}/v1/documents/{saved['saved']['id']}", params=place, headers=READER).json()
    assert document["metadata"]["question"] == QUESTION
    assert set(document["metadata"]["retrievals"]) == {group["retrieval_id"] for group in saved["groups"]}
    assert [one["start"] for one in document["metadata"]["sources"]] == [one["start"] for one in saved["citations"]]
    assert all(line in document["text"] for line in saved["text"].splitlines())

    again = post(films, "/v1/research", q=QUESTION)
    assert {one["collection"] for one in again["citations"]} == {"films"}
    assert again["text"] == note["text"]
    own = post(films, "/v1/research", q=QUESTION, collection="research")
    assert {one["collection"] for one in own["citations"]} <= {"research"}
    assert films.run_json("research", QUESTION, "--save")["saved"]["id"] == saved["saved"]["id"]  # the same note
    assert "[1]" in films.run("research", QUESTION, "--rounds", "1").stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("Jane Doe was born in Lisbon.", "verified"),
        ("Jane Doe was born on 12 May 1914.", "verified"),
        ("Jane Doe was born on 13 May 1914.", "contradicted"),
        ("Jane Doe was born in Porto.", "contradicted"),
        ("Lisbon is the capital of Portugal.", "verified"),
        ("Porto is the capital of Portugal.", "contradicted"),
        ("Lisbon is not the capital of Portugal.", "contradicted"),
        ("Alpha Film is a drama film of 1950.", "verified"),
        ("Jane Doe was born in Portugal.", "not_found"),
        ("Alpha Film was written by Jane Doe.", "not_found"),
        ("Jane Doe wurde in Porto geboren.", "not_found"),
        ("the of and", "not_found"),
        ("twelve harbour piers", "not_found"),
    ],
)
def test_claims_are_checked(films: Installation, claim: str, verdict: str) -> None:
    check = post(films, "/v1/fact-checks", claim=claim, collection="films")
    assert check["verdict"] == verdict, check
    assert bool(check["evidence"]) == (verdict != "not_found")
    for one in check["evidence"]:
        whole = httpx.get(f"{films.url}/v1/documents/{one['document_id']}?collection=films", headers=READER).json()
        assert one["text"] in whole["text"]


def test_the_steps_stream_and_a_client_that_leaves_ends_the_work(films: Installation) -> None:
    headers = READER | {"Accept": "text/event-stream"}
    with httpx.stream("POST", f"{films.url}/v1/research", json={"q": QUESTION}, headers=headers, timeout=60) as stream:
        names = [line.removeprefix("event: ") for line in stream.iter_lines() if line.startswith("event: ")]
    assert (names[0], names[-1], {"step", "answer.citation", "answer.delta"} <= set(names)) == ("step", "done", True)
    with httpx.stream("POST", f"{films.url}/v1/research", json={"q": QUESTION}, headers=headers, timeout=60) as stream:
        next(stream.iter_lines())
    status = httpx.get(f"{films.url}/v1/status", headers=READER).json()
    assert status["searches_running"] <= 1


def test_what_is_wrong_is_refused(films: Installation) -> None:
    for body, expected in (
        ({"q": QUESTION, "rounds": 0}, 422),
        ({"q": QUESTION, "rounds": 1000}, 422),
        ({"q": "x" * 1_000_000}, 413),
        ({"q": QUESTION, "save": True}, 403),
    ):
        assert httpx.post(f"{films.url}/v1/research", json=body, headers=READER, timeout=60).status_code == expected
    assert post(films, "/v1/research", q="the of and")["citations"] == []
    assert post(films, "/v1/research", q="Wer hat den Nobelpreis für Zahnbürsten erfunden?")["open"]
