"""How a collection is cut, over HTTP: what is refused before it reaches the log."""

from typing import Any

import pytest

from query_api.index.collection_settings import NewestRecord
from query_api.ingest.producer import OutgoingRecord
from query_api.routes import collections
from schemas.curation import ChunkingChoice, ChunkingEvent, LinkingChoice, LinkingEvent
from schemas.ids import Position
from tests.support.fakes.service import Running, problem

PATH = "/v1/collections/notes/chunking"


async def test_a_choice_goes_to_the_curation_topic(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, OutgoingRecord]] = []

    async def publish(topic: str, records: list[OutgoingRecord]) -> list[Position]:
        sent.extend((topic, record) for record in records)
        return [Position(0, len(sent))]

    monkeypatch.setattr(running.service.writer, "publish", publish)
    chosen = await running.http.put(PATH, json={"method": "semantic", "parent_characters": 900})
    assert (chosen.status_code, chosen.json()) == (202, {"position": "0:1", "documents": 0})
    reset = await running.http.delete(PATH)
    assert (reset.status_code, reset.json()) == (202, {"position": "0:2", "documents": 0})
    assert sent == [
        (
            "thalweg.curation.v1",
            OutgoingRecord(b"notes/settings/chunking", b'{"parent_characters":900,"method":"semantic"}'),
        ),
        ("thalweg.curation.v1", OutgoingRecord(b"notes/settings/chunking", None)),
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


async def test_what_applies_is_shown_with_what_was_chosen(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    newest = [
        NewestRecord(ChunkingEvent("notes", ChunkingChoice(child_characters=200)), Position(0, 9)),
        NewestRecord(),
    ]

    class Reader:
        def __init__(self, *_: object) -> None:
            pass

        async def newest(self, key: bytes) -> NewestRecord:
            asked.append(key)
            return newest.pop(0)

    monkeypatch.setattr(collections, "SettingsReader", Reader)
    chosen, default = (await running.get(PATH)).json(), (await running.get(PATH)).json()
    assert (chosen["child_characters"], chosen["position"]) == (200, "0:9")
    assert {name: value for name, value in chosen["chosen"].items() if value is not None} == {"child_characters": 200}
    assert (default["child_characters"], default["position"]) == (300, None)
    assert asked == [b"notes/settings/chunking"] * 2


async def test_the_collections_there_are_with_what_they_hold_and_what_was_chosen(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Reader:
        def __init__(self, *_: object) -> None:
            pass

        async def settings(self) -> list[NewestRecord]:
            return [
                NewestRecord(LinkingEvent("a", LinkingChoice(max_related=2)), Position(0, 3)),
                NewestRecord(ChunkingEvent("a", None), Position(0, 4)),
                NewestRecord(ChunkingEvent("ahead", ChunkingChoice(method="semantic")), Position(0, 5)),
            ]

    monkeypatch.setattr(collections, "SettingsReader", Reader)
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


async def test_a_setting_tells_how_many_documents_it_meets(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    class Reader:
        def __init__(self, *_: object) -> None:
            pass

        async def newest(self, key: bytes) -> NewestRecord:
            return NewestRecord()

    monkeypatch.setattr(collections, "SettingsReader", Reader)
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
