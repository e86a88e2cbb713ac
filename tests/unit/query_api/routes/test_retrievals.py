"""`/v1/retrievals`: listed, shown whole, and rated hit by hit."""

from typing import Any

import pytest
from msgspec.structs import replace

from query_api.ingest.producer import BrokerUnavailable, OutgoingRecord
from schemas.ids import Position
from schemas.provenance import Feedback, decode_provenance
from tests.support.fakes.service import Running, problem
from tests.support.fakes.usage import made_feedback, made_retrieval


class Log:
    """A log that takes what it is given while it is there."""

    def __init__(self, *, away: bool = False) -> None:
        self.away = away
        self.taken: list[tuple[str, OutgoingRecord]] = []

    async def publish(self, topic: str, records: list[OutgoingRecord]) -> list[Position]:
        if self.away:
            raise BrokerUnavailable("Kafka did not confirm the write")
        self.taken += [(topic, record) for record in records]
        return [Position(2, 31)]

    async def close(self) -> None:
        return


def with_log(running: Running, **how: Any) -> Log:
    log = Log(**how)
    running.service.writer = log  # type: ignore[assignment]
    return log


async def test_a_retrieval_is_shown_whole_with_what_was_said_of_it(running: Running) -> None:
    usage = running.engine.reader.usage
    usage.retrievals.append(made_retrieval("the river", ["c1"], 60_000, cached=True))
    [held] = usage.retrievals
    usage.feedback.append(made_feedback(held, "c1", -0.5, "ada", 61_000))
    shown = (await running.get(f"/v1/retrievals/{held.retrieval_id}")).json()
    assert shown["query"] == "the river"
    assert shown["at"] == "1970-01-01T00:01:00+00:00"
    assert shown["parameters"] == {"k": 10, "offset": 0}
    assert (shown["hits"][0]["ranks"], shown["hits"][0]["scores"]) == ({"vector": 1}, {"vector": 0.5})
    assert shown["hits"][0]["confidence"] == 0.7
    assert (shown["stages"], shown["failed_channels"], shown["outcome"], shown["cached"]) == ({}, {}, "done", True)
    assert [(said["rating"], said["caller"]) for said in shown["feedback"]] == [(-0.5, "ada")]


async def test_hits_of_a_retrieval_have_the_title_their_document_has_now(running: Running) -> None:
    live, gone = made_retrieval("the river", ["c1", "c2"], 60_000).hits
    hits = [replace(live, document_id="notes/river.md"), gone]
    running.engine.reader.usage.retrievals.append(held := made_retrieval("the river", hits=hits))
    shown = (await running.get(f"/v1/retrievals/{held.retrieval_id}")).json()
    document = (await running.get("/v1/documents/notes%2Friver.md", collection="a")).json()
    assert document["title"]
    assert [hit["title"] for hit in shown["hits"]] == [document["title"], None]


async def test_retrievals_are_listed_newest_first_page_by_page(running: Running) -> None:
    usage = running.engine.reader.usage
    usage.retrievals += [made_retrieval(f"question {at}", at_ms=at // 2) for at in range(7)]
    listed: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(4):
        page = (await running.get("/v1/retrievals", limit=2, **cursor)).json()
        listed += [each["query"] for each in page["retrievals"]]
        cursor = {"cursor": page["next_cursor"]}
    assert listed == [f"question {at}" for at in (6, 5, 4, 3, 2, 1, 0)]
    assert page["next_cursor"] is None
    usage.retrievals.append(made_retrieval("elsewhere", at_ms=9, collection="b"))
    only = (await running.get("/v1/retrievals", collection="b")).json()
    assert [each["query"] for each in only["retrievals"]] == ["elsewhere"]
    since = (await running.get("/v1/retrievals", since="1970-01-01T00:00:00.003Z")).json()
    assert [each["query"] for each in since["retrievals"]] == ["elsewhere", "question 6"]


@pytest.mark.parametrize(
    ("params", "status"), [({"cursor": "x"}, 400), ({"since": "soon"}, 422), ({"limit": 0}, 422), ({"limit": 201}, 422)]
)
async def test_a_list_that_cannot_be_made_is_refused(running: Running, params: dict[str, Any], status: int) -> None:
    assert problem(await running.get("/v1/retrievals", **params))["status"] == status


@pytest.mark.parametrize(
    ("body", "rank", "rating"),
    [
        ({"rank": 2, "rating": "helpful"}, 2, 1.0),
        ({"rank": 1, "rating": "unhelpful", "comment": "It fell long ago.", "caller": "ada"}, 1, -1.0),
        ({"chunk_id": f"{2:032x}", "rating": 0.25}, 2, 0.25),
    ],
)
async def test_feedback_goes_to_the_log_under_its_retrieval(
    running: Running, body: dict[str, Any], rank: int, rating: float
) -> None:
    log = with_log(running)
    retrieval_id = (await running.get("/v1/search", q="river")).json()["retrieval_id"]
    response = await running.http.post(f"/v1/retrievals/{retrieval_id}/feedback", json=body)
    assert response.status_code == 202
    assert response.json() == {
        "position": "2:31", "retrieval_id": retrieval_id, "chunk_id": f"{rank:032x}", "rating": rating
    }  # fmt: skip
    [(topic, record)] = log.taken
    assert (topic, record.key) == ("thalweg.provenance.v1", retrieval_id.encode())
    said = decode_provenance(record.value or b"")
    assert isinstance(said, Feedback)
    assert (said.rank, said.rating, said.document_id) == (rank, rating, f"notes/{rank}.md")
    assert (said.comment, said.caller) == (body.get("comment"), body.get("caller", ""))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"rank": 9, "rating": 1}, "no hit with rank 9"),
        ({"chunk_id": "x", "rating": 1}, "no hit with the chunk 'x'"),
        ({"rating": 1}, "one of them"),
        ({"rank": 1, "chunk_id": "x", "rating": 1}, "one of them"),
        ({"rank": 1}, "`rating` is missing"),
        ({"rank": 1, "rating": 2}, "from -1 to 1"),
        ({"rank": 1, "rating": True}, "`rating`: give a number; true is none"),
        ({"rank": True, "rating": 1}, "`rank`: give a number; true is none"),
        ({"rank": 1, "rating": "great"}, "rating"),
        ({"rank": 0, "rating": 1}, "`rank`"),
        ({"rank": 1, "rating": 1, "comment": "x" * 2_001}, "`comment`"),
        ({"rank": 1, "rating": 1, "stars": 5}, "'stars'"),
    ],
)
async def test_feedback_that_does_not_fit_is_refused(running: Running, body: dict[str, Any], says: str) -> None:
    log = with_log(running)
    retrieval_id = (await running.get("/v1/search", q="river")).json()["retrieval_id"]
    refused = problem(await running.http.post(f"/v1/retrievals/{retrieval_id}/feedback", json=body))
    assert refused["status"] == 422
    assert says in refused["detail"]
    assert log.taken == []


async def test_feedback_on_nothing_is_a_404_and_without_a_log_a_503(running: Running) -> None:
    with_log(running, away=True)
    body = {"rank": 1, "rating": "helpful"}
    assert problem(await running.http.post("/v1/retrievals/r_no/feedback", json=body))["status"] == 404
    retrieval_id = (await running.get("/v1/search", q="river")).json()["retrieval_id"]
    response = await running.http.post(f"/v1/retrievals/{retrieval_id}/feedback", json=body)
    assert problem(response)["status"] == 503
    assert response.headers["retry-after"]
