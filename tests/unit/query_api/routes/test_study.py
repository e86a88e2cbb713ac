"""Sets are made, kept for their caller, answered and deleted."""

from typing import Any

import httpx
import pytest

from query_api.study import kept_sets
from schemas.choices import STUDY_PATHS as PATHS
from schemas.choices import StudyKind
from tests.support.fakes.curation import CurationLog
from tests.support.fakes.service import Running
from tests.unit.query_api.routes.library import KEY, READ_KEY

pytestmark = pytest.mark.usefixtures("log_of_school")


async def send(school: Running, method: str, path: str, body: Any = None, key: str = KEY) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return await school.http.request(method, path, headers=headers, **({} if body is None else {"json": body}))


async def made(school: Running, kind: StudyKind, **asked: Any) -> dict[str, Any]:
    answer = await send(school, "POST", PATHS[kind], {"collection": "course"} | asked)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_set_is_kept_as_it_was_made(school: Running) -> None:
    quiz = await made(school, "quiz", count=3)
    assert (quiz["kind"], quiz["size"], quiz["scope"]["collection"], quiz["graph_position"]) == ("quiz", 3, "course", 3)
    assert (await send(school, "GET", f"{PATHS['quiz']}/{quiz['id']}")).json() == quiz
    again = await made(school, "quiz", count=3)
    assert again["id"] != quiz["id"]
    assert again["questions"] == quiz["questions"]


async def test_answers_are_assessed_with_their_sentences_and_kept(school: Running) -> None:
    quiz = await made(school, "quiz", count=3)
    first, second, _ = quiz["questions"]
    wrong = next(each for each in second["options"] if each != second["answer"])
    given = [{"question": 1, "answer": first["answer"]}, {"question": 2, "answer": wrong}]
    answer = await send(school, "POST", f"{PATHS['quiz']}/{quiz['id']}/results", {"answers": given})
    assert answer.status_code == 201
    result = answer.json()
    assert (result["right"], result["answered"], result["score"]) == (1, 2, 0.5)
    assert [each["right"] for each in result["answers"]] == [True, False]
    assert result["answers"][1]["expected"] == second["answer"]
    assert result["answers"][1]["explanation"] == second["explanation"]
    kept = (await send(school, "GET", f"{PATHS['quiz']}/{quiz['id']}")).json()
    assert [each["score"] for each in kept["results"]] == [0.5]


async def test_a_card_is_known_or_answered_in_any_case(school: Running) -> None:
    cards = await made(school, "cards", document="lisbon", count=1)
    answer = cards["questions"][0]["answer"]
    for given, right in (
        ({"known": True}, 1),
        ({"known": False}, 0),
        ({"answer": answer.upper()}, 1),
        ({"answer": "x"}, 0),
    ):
        body = {"answers": [{"question": 1, **given}]}
        assert (await send(school, "POST", f"{PATHS['cards']}/{cards['id']}/results", body)).json()["right"] == right
    kept = (await send(school, "GET", PATHS["cards"])).json()["sets"]
    assert [(each["id"], len(each["results"])) for each in kept] == [(cards["id"], 4)]


async def test_sets_of_a_kind_are_listed_by_pages_and_deleted(school: Running) -> None:
    ids = [(await made(school, kind))["id"] for kind in ("map", "map", "path", "map")]
    del ids[2]
    path = PATHS["map"]
    first = (await send(school, "GET", f"{path}?limit=2")).json()
    assert [each["id"] for each in first["sets"]] == ids[:0:-1]
    rest = (await send(school, "GET", f"{path}?cursor={first['next_cursor']}")).json()
    assert ([each["id"] for each in rest["sets"]], rest["next_cursor"]) == (ids[:1], None)
    assert (await send(school, "DELETE", f"{path}/{ids[0]}")).status_code == 204
    for method in ("GET", "DELETE"):
        assert (await send(school, method, f"{path}/{ids[0]}")).status_code == 404
    assert (await send(school, "GET", f"{path}?cursor=xyz")).status_code == 400


async def test_a_set_that_is_deleted_takes_no_answers(school: Running) -> None:
    address = f"{PATHS['cards']}/{(await made(school, 'cards'))['id']}"
    assert (await send(school, "DELETE", address)).status_code == 204
    body = {"answers": [{"question": 1, "known": True}]}
    assert (await send(school, "POST", f"{address}/results", body)).status_code == 404


async def test_a_set_is_of_the_caller_that_made_it(school: Running) -> None:
    cards = await made(school, "cards")
    assert (await send(school, "GET", f"{PATHS['cards']}/{cards['id']}", key=READ_KEY)).status_code == 404
    assert (await send(school, "GET", PATHS["cards"], key=READ_KEY)).json()["sets"] == []
    own = await send(school, "POST", PATHS["map"], {"collection": "course"}, READ_KEY)
    assert own.status_code == 201
    assert (await send(school, "GET", PATHS["cards"], key="wrong")).status_code == 401


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"kind": "quiz"}, 422, "collection"),
        ({"kind": "cards", "count": 0}, 422, "count"),
        ({"kind": "cards", "count": 1000}, 422, "count"),
        ({"kind": "cards", "count": True}, 422, "count"),
        ({"kind": "cards", "colour": "red"}, 422, "colour"),
        ({"kind": "cards", "document": "lisbon", "entity": "Lisbon"}, 422, "not of both"),
        ({"kind": "cards", "document": "nowhere"}, 404, "nowhere"),
        ({"kind": "cards", "entity": "Nobody"}, 404, "Nobody"),
        ({"kind": "cards", "collection": "empty"}, 404, "empty"),
        ({"kind": "cards"}, 422, "collection"),
        ({"kind": "cards", "collection": "other"}, 422, "states a fact"),
        ({"kind": "map", "document": "porto"}, 422, "facts between concepts"),
        ({"kind": "path", "entity": "Porto"}, 422, "requires"),
        ({"kind": "quiz", "entity": "oven"}, 422, "three other names"),
    ],
)
async def test_what_cannot_be_made_is_refused_with_what_to_do(
    school: Running, asked: dict[str, Any], status: int, words: str
) -> None:
    path = PATHS[asked["kind"]]
    body = {name: value for name, value in asked.items() if name != "kind"}
    answer = await send(school, "POST", path, body)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text
    assert (await send(school, "GET", path)).json()["sets"] == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "answers"),
        ([{"question": 9, "answer": "Lisbon"}], "questions 1 to 2"),
        ([{"question": 1, "answer": "Lisbon", "known": True}], "either"),
        ([{"question": 1}], "either"),
        ([{"question": 1, "known": True}], "one of"),
        ([{"question": 1, "answer": "Atlantis"}], "one of"),
        ([{"question": 1, "answer": "ANSWER"}, {"question": 1, "answer": "ANSWER"}], "twice"),
        ([{"question": "one", "answer": "Lisbon"}], "question"),
        ([{"question": 1, "answer": "x" * 5_000}], "answer"),
    ],
)
async def test_answers_that_do_not_fit_are_refused(school: Running, given: list[dict[str, Any]], words: str) -> None:
    quiz = await made(school, "quiz", count=2)
    answers = [
        each | ({"answer": quiz["questions"][0]["answer"]} if each.get("answer") == "ANSWER" else {}) for each in given
    ]
    answer = await send(school, "POST", f"{PATHS['quiz']}/{quiz['id']}/results", {"answers": answers})
    assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text
    assert (await send(school, "GET", f"{PATHS['quiz']}/{quiz['id']}")).json()["results"] == []


async def test_a_set_takes_so_many_results(school: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_sets, "MOST_RESULTS", 1)
    cards = await made(school, "cards")
    body = {"answers": [{"question": 1, "known": True}]}
    assert (await send(school, "POST", f"{PATHS['cards']}/{cards['id']}/results", body)).status_code == 201
    assert (await send(school, "POST", f"{PATHS['cards']}/{cards['id']}/results", body)).status_code == 409


async def test_what_another_program_saved_is_no_set(school: Running, log_of_school: CurationLog) -> None:
    cards = await made(school, "cards")
    await school.service.saved.put("full", "cards", "odd", {"kind": "poem"})
    assert [each["id"] for each in (await send(school, "GET", PATHS["cards"])).json()["sets"]] == [cards["id"]]
    assert (await send(school, "GET", f"{PATHS['cards']}/odd")).status_code == 404
