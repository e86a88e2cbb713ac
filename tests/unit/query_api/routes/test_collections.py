"""How a collection is cut, over HTTP: what is refused before it reaches the log."""

import asyncio
from typing import Any

import pytest

from query_api.ingest.producer import OutgoingRecord
from schemas.curation import ChunkingChoice, LinkingChoice, chunking_key, encode_choice, linking_key
from tests.support.fakes.curation import CurationLog
from tests.support.fakes.service import Running, problem
from tests.support.waiting import eventually

PATH = "/v1/collections/notes/chunking"


async def test_a_choice_goes_to_the_curation_topic(running: Running, sent: list[OutgoingRecord]) -> None:
    chosen = await running.http.put(PATH, json={"method": "semantic", "parent_characters": 900})
    assert (chosen.status_code, chosen.json()) == (202, {"position": "0:0", "documents": 0})
    reset = await running.http.delete(PATH)
    assert (reset.status_code, reset.json()) == (202, {"position": "0:1", "documents": 0})
    assert sent == [
        OutgoingRecord(b"notes/settings/chunking", b'{"parent_characters":900,"method":"semantic"}'),
        OutgoingRecord(b"notes/settings/chunking", None),
    ]


@pytest.mark.parametrize(
    ("path", "choice", "says"),
    [
        (PATH, {"child_characters": 1_000}, "too small for children of 1,000"),
        (PATH, {"child_characters": 200, "child_overlap": 200}, "at most half of child_characters"),
        (PATH, {"parent_overlap": 1_400}, "at most half of parent_characters"),
        (PATH, {"parent_characters": 10}, "`parent_characters`"),
        (PATH, {"method": "pages"}, "'sentences' or 'semantic'"),
        (PATH, {"language": "klingon"}, "`language`"),
        (PATH, {"colour": "red"}, "colour"),
        (PATH, {"child_characters": "300"}, "`child_characters`"),
        (f"/v1/collections/{'x' * 129}/chunking", {}, "1 to 128"),
    ],
)
async def test_what_the_worker_would_not_take_is_refused(
    running: Running, path: str, choice: dict[str, Any], says: str
) -> None:
    body = problem(await running.http.put(path, json=choice))
    assert body["status"] == 422
    assert says in body["detail"]


async def test_what_applies_is_shown_with_what_was_chosen(running: Running, log: CurationLog) -> None:
    default = (await running.get(PATH)).json()
    await log.put(chunking_key("notes"), encode_choice(ChunkingChoice(child_characters=200)))
    await log.put(chunking_key("notes"), b"{")  # refused as malformed, so that the choice stays
    await log.put(chunking_key("others"), encode_choice(ChunkingChoice(child_characters=100)))
    chosen = (await running.get(PATH)).json()
    assert (chosen["child_characters"], chosen["position"]) == (200, "0:0")
    assert {name: value for name, value in chosen["chosen"].items() if value is not None} == {"child_characters": 200}
    assert (default["child_characters"], default["position"]) == (300, None)


async def test_setting_is_shown_once_the_topic_is_read_to_its_end(running: Running, log: CurationLog) -> None:
    log.follows = False
    await log.put(chunking_key("notes"), encode_choice(ChunkingChoice(child_characters=200)))
    asked = asyncio.create_task(running.get(PATH))
    await eventually(lambda: log.ends_asked == 1)
    assert not asked.done()
    await log.follow()
    assert (await asked).json()["child_characters"] == 200


async def test_the_collections_there_are_with_what_they_hold_and_what_was_chosen(
    running: Running, log: CurationLog
) -> None:
    await log.put(linking_key("a"), encode_choice(LinkingChoice(max_related=2)))
    await log.put(chunking_key("a"), None)
    await log.put(chunking_key("ahead"), encode_choice(ChunkingChoice(method="semantic")))
    answer = (await running.get("/v1/collections")).json()
    there, ahead = answer["collections"]
    assert (there["name"], there["documents"], there["chunking"], answer["notes"]) == ("a", 3, None, [])
    assert there["linking"]["max_related"] == 2
    assert (ahead["name"], ahead["documents"], ahead["chunks"], ahead["linking"]) == ("ahead", 0, 0, None)
    assert ahead["chunking"]["method"] == "semantic"


async def test_without_kafka_collections_are_listed_and_a_note_says_what_is_not_known(running: Running) -> None:
    answer = (await running.get("/v1/collections")).json()
    assert [each["name"] for each in answer["collections"]] == ["a"]
    assert "What was chosen for them is not known" in answer["notes"][0]


@pytest.mark.usefixtures("log")
async def test_a_setting_tells_how_many_documents_it_meets(running: Running) -> None:
    held = [(await running.get(f"/v1/collections/{name}/chunking")).json()["documents"] for name in ("a", "notes")]
    assert held == [3, 0]


async def test_without_kafka_nothing_is_chosen_and_nothing_guessed(running: Running) -> None:
    for answer in (
        await running.http.put(PATH, json={"method": "semantic"}),
        await running.http.delete(PATH),
        await running.get(PATH),
    ):
        assert problem(answer)["status"] == 503
        assert answer.headers["retry-after"]
