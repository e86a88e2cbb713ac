"""Made questions are judged by people: added once, listed by what was said, corrected, taken back."""

from typing import Any

import pytest

from query_api.saved import ground_truth
from schemas.ground_truth import GROUND_TRUTH_PATH
from tests.support.fakes.service import Running, problem
from tests.unit.query_api.routes.library import KEY, READ_KEY

pytestmark = pytest.mark.usefixtures("log_of_school")

ASKED = {"text": "Which city lies on the Tagus?", "documents": ["lisbon"], "answer": "Lisbon", "kind": "semantic"}


async def send(school: Running, method: str, path: str, body: Any = None, *, key: str = KEY, status: int = 200) -> Any:
    headers = {"Authorization": f"Bearer {key}"}
    answer = await school.http.request(
        method, GROUND_TRUTH_PATH + path, headers=headers, **({} if body is None else {"json": body})
    )
    assert answer.status_code == status, answer.text
    return problem(answer) if status >= 400 else answer.json()


async def add(school: Running, **asked: Any) -> int:
    return int((await send(school, "POST", "", {"collection": "course"} | asked, status=201))["added"])


async def listed(school: Running, query: str = "?collection=course", key: str = KEY) -> Any:
    return await send(school, "GET", query, key=key)


async def test_questions_are_made_once_each_with_the_sentence_that_answers(school: Running) -> None:
    assert await add(school, count=2) == 2
    first = await listed(school)
    assert first["counts"] == {"open": 2}
    for each in first["questions"]:
        [passage] = each["passages"]
        assert (each["judgement"], each["documents"]) == ("open", [passage["document_id"]])
        assert each["answer"] in passage["sentence"]
        assert each["answer"] not in each["text"]
        assert passage["end"] - passage["start"] == len(passage["sentence"])
    assert await add(school, count=2) == 2
    texts = [each["text"] for each in (await listed(school))["questions"]]
    assert len(set(texts)) == 4
    assert texts[2:] == [each["text"] for each in first["questions"]], "what was made last comes first"
    while await add(school, count=50):
        pass
    assert await add(school) == 0


async def test_a_question_is_confirmed_corrected_rejected_and_taken_back(school: Running) -> None:
    assert await add(school, questions=[ASKED, ASKED | {"text": "Where did Socrates live?"}]) == 2
    confirmed, rejected = (await listed(school))["questions"]
    assert (confirmed["text"], confirmed["answer"], confirmed["kind"]) == (ASKED["text"], "Lisbon", "semantic")
    better = {"text": "What lies on the Tagus?", "documents": ["lisbon", "porto"], "answer": "the city of Lisbon"}
    said = {"judgement": "confirmed", "corrected": better}
    now = await send(school, "PUT", f"/{confirmed['id']}", said)
    assert {name: now[name] for name in better} == better
    assert now["made"] == {name: ASKED[name] for name in better}
    await send(school, "PUT", f"/{rejected['id']}", {"judgement": "rejected"})
    page = await listed(school, "?collection=course&judgement=confirmed")
    assert (page["questions"], page["counts"]) == ([now], {"confirmed": 1, "rejected": 1})
    assert await add(school, questions=[ASKED]) == 0, "what is made again stays as it is judged"
    again = await send(school, "PUT", f"/{confirmed['id']}", {"judgement": "open"})
    assert again == confirmed
    assert (await listed(school, "?judgement=open"))["questions"] == [confirmed]


async def test_questions_are_of_their_caller_and_collection_and_come_in_pages(school: Running) -> None:
    texts = [f"Question {number}?" for number in range(5)]
    assert await add(school, questions=[ASKED | {"text": text} for text in texts]) == 5
    await add(school, collection="other", questions=[{"text": "Lone?", "documents": ["lone"]}])
    assert (await listed(school, key=READ_KEY))["questions"] == []
    own = {"collection": "other", "questions": [{"text": "Own?", "documents": ["lone"]}]}
    await send(school, "POST", "", own, key=READ_KEY, status=201)
    assert [each["text"] for each in (await listed(school, "", READ_KEY))["questions"]] == ["Own?"]
    assert (await listed(school, "?collection=other"))["counts"] == {"open": 1}
    found, query = [], "?collection=course&limit=2"
    while True:
        page = await listed(school, query)
        found += [each["text"] for each in page["questions"]]
        assert page["counts"] == {"open": 5}
        if page["next_cursor"] is None:
            break
        query = f"?collection=course&limit=2&cursor={page['next_cursor']}"
    assert found == texts


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"questions": [ASKED | {"documents": ["nowhere"]}]}, 422, "holds no 'nowhere'"),
        ({"questions": [ASKED | {"documents": []}]}, 422, "documents"),
        ({"questions": [ASKED | {"text": " "}]}, 422, "text"),
        ({"questions": []}, 422, "questions"),
        ({"count": 0}, 422, "count"),
        ({"count": True}, 422, "count"),
        ({"collection": "none"}, 404, "none"),
        ({"collection": None}, 422, "There are 2 collections"),
        ({"collection": "other"}, 422, "Nothing of the kind"),
        ({"more": 1}, 422, "more"),
    ],
)
async def test_what_cannot_be_made_is_refused(school: Running, body: dict[str, Any], status: int, says: str) -> None:
    refused = await send(school, "POST", "", {"collection": "course"} | body, status=status)
    assert says in refused["detail"]


async def test_what_cannot_be_said_is_refused(school: Running) -> None:
    await add(school, questions=[ASKED])
    path = f"/{(await listed(school))['questions'][0]['id']}"
    right = {"text": "x?", "documents": ["lisbon"]}
    for body, says in (
        ({"judgement": "maybe"}, "judgement"),
        ({"judgement": "rejected", "corrected": right}, "what is `corrected` is `confirmed`"),
        ({"judgement": "confirmed", "corrected": right | {"documents": ["lone"]}}, "holds no 'lone'"),
        ({"judgement": "confirmed", "corrected": right | {"documents": ["x"] * 101}}, "documents"),
    ):
        assert says in (await send(school, "PUT", path, body, status=422))["detail"]
    await send(school, "PUT", "/none", {"judgement": "confirmed"}, status=404)
    await send(school, "PUT", path, {"judgement": "confirmed"}, key=READ_KEY, status=404)
    await send(school, "GET", "?judgement=maybe", status=422)
    await send(school, "GET", "?cursor=xyz", status=400)


async def test_a_collection_has_no_more_questions_than_an_evaluation_takes(
    school: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground_truth, "MAX_QUESTIONS", 3)
    assert await add(school, questions=[ASKED | {"text": f"{number}?"} for number in range(3)]) == 3
    refused = await send(school, "POST", "", {"collection": "course", "questions": [ASKED]}, status=409)
    assert "judge those" in refused["detail"]
