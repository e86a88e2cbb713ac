"""Study aids from loaded documents: made by the command, answered, and there again after the service restarts."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

COLLECTION = "school"
TEXTS = {
    "lisbon.md": "# Lisbon\n\nLisbon is the capital of Portugal and lies on the river Tagus.",
    "madrid.md": "# Madrid\n\nMadrid is the capital of Spain and has the largest museum of the country.",
    "vienna.md": "# Vienna\n\nVienna is the capital of Austria and was the home of Sigmund Freud.",
    "athens.md": "# Athens\n\nAthens is the capital of Greece and was the home of Socrates.",
    "oslo.md": "# Oslo\n\nOslo is the capital of Norway and stands at the end of a long fjord.",
    "beacon.md": "# Beacon\n\nBeacon is a notification service. Beacon requires Kafka. Harbor depends on Beacon.",
    "evil.md": '# Trap\n\nTrap "]; click n0 <img src=x onerror=alert(1)> is a %%{init: {}}%% service. '
    "Trap requires Lure </script>.",
}


@pytest.fixture(scope="module")
def school(thalweg: Installation, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder: Path = tmp_path_factory.mktemp("school")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    thalweg.run("load", str(folder), "--collection", COLLECTION)
    wait_until(lambda: thalweg.verify()["ok"], "the graph has all documents", 120)
    return thalweg


def study(running: Installation, *arguments: str) -> Any:
    return running.run_json("study", *arguments, "--collection", COLLECTION)


def test_a_quiz_is_made_answered_and_kept_over_a_restart(school: Installation) -> None:
    quiz = study(school, "quiz", "--count", "4")
    assert quiz["size"] >= 2
    for each in quiz["questions"]:
        source = each["explanation"]
        assert source["sentence"] in TEXTS[source["document_id"]]
        stored = httpx.get(
            f"{school.url}/v1/documents/{source['document_id']}", params={"collection": COLLECTION}
        ).json()
        passage = next(each for each in stored["passages"] if each["start"] <= source["start"] < each["end"])
        start, end = (source[at] - passage["start"] for at in ("start", "end"))
        assert passage["text"][start:end] == source["sentence"]
        assert len({*each["options"]}) == 4
        assert each["answer"] in each["options"]
    address = f"{school.url}/v1/quizzes/{quiz['id']}"
    given = [{"question": each["question"], "answer": each["answer"]} for each in quiz["questions"]]
    assert httpx.post(f"{address}/results", json={"answers": given}).json()["score"] == 1
    service = school.child("serve")
    service.terminate()
    service.wait(60)

    def is_there() -> bool:
        try:
            return httpx.get(address).status_code == 200
        except httpx.TransportError:
            return False

    wait_until(is_there, "the service is there again and has read what was saved", 90)
    kept = httpx.get(address).json()
    assert [each["score"] for each in kept["results"]] == [1]
    assert kept["questions"] == quiz["questions"]
    assert quiz["id"] in [each["id"] for each in httpx.get(f"{school.url}/v1/quizzes").json()["sets"]]
    assert httpx.delete(address).status_code == 204
    assert httpx.get(address).status_code == 404


def test_cards_for_a_reader(school: Installation) -> None:
    shown = school.run("study", "cards", "--document", "lisbon.md", "--collection", COLLECTION).stdout
    assert "_____" in shown
    assert f"Lisbon is the capital of Portugal and lies on the river Tagus. [{COLLECTION}/lisbon.md]" in shown
    assert "asked for: a card needs" in shown


def test_a_path_leads_from_what_is_needed(school: Installation) -> None:
    steps = [each["concept"]["label"] for each in study(school, "path", "--entity", "Harbor")["steps"]]
    assert steps == ["Kafka", "Beacon", "Harbor"]


def test_nothing_of_a_hostile_document_is_markup_in_a_map(school: Installation) -> None:
    drawn = study(school, "map", "--count", "50")
    lines = drawn["mermaid"].splitlines()
    assert lines[0] == "flowchart LR"
    assert all(re.fullmatch(r'  n\d+(\[| -->\|)"[\w ,#;]+"(\]|\| n\d+)', line) for line in lines[1:])


def test_what_cannot_be_made_says_so(school: Installation) -> None:
    for arguments, words in (
        (("cards", "--document", "nowhere.md"), "There is no document"),
        (("cards", "--entity", "Nobody Atall"), "GET /v1/entities"),
        (("poem",), "is not one of"),
        (("cards", "--count", "1000"), "50"),
    ):
        done = school.run("study", *arguments, "--collection", COLLECTION, check=False)
        assert done.returncode != 0
        assert words in done.stderr
