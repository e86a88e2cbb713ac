"""Research and checked claims, over a graph and texts in memory."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from query_api.index.store_opening import GraphFile
from schemas.research import NOTE_URI
from tests.support.fakes.engine import WordEngine, make_generation
from tests.support.fakes.model_endpoints import chat_endpoint
from tests.support.fakes.service import Running, events, problem, service_over
from tests.support.fakes.text_stores import Page
from tests.support.waiting import eventually

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
PEOPLE = {"Jane Doe": "person", "Alpha Film": "work"}
PAGES = [
    Page(
        "alpha", "Alpha Film", [["Alpha Film is a film that Jane Doe directed."]], [*PEOPLE],
        facts=[("Alpha Film", "directed_by", "Jane Doe")], types=PEOPLE, collection="a",
    ),
    Page(
        "jane", "Jane Doe", [["Jane Doe was born in Lisbon. She has 3 sons."]], [*PEOPLE, "Lisbon"],
        facts=[("Jane Doe", "born_in", "Lisbon")], types=PEOPLE | {"Lisbon": "place"}, collection="a",
    ),
]  # fmt: skip
QUESTION = "Where was the director of Alpha Film born?"


def engine_of(data_dir: Path) -> WordEngine:
    make_generation(data_dir)
    engine = WordEngine()
    engine.graphs["s7"] = [page.contribution() for page in PAGES]
    engine.graph_file = GraphFile("s7", 7)
    engine.reader.put(*PAGES, p0=(7, 7))
    return engine


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with service_over(tmp_path, engine_of(tmp_path), api_key=KEY, read_api_key=READ_KEY) as running:
        running.http.headers["authorization"] = f"Bearer {READ_KEY}"
        yield running


async def researched(running: Running, question: str = QUESTION, **more: Any) -> dict[str, Any]:
    answer = await running.http.post("/v1/research", json={"q": question} | more, timeout=60)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_name_that_is_found_is_followed_and_each_sentence_has_its_source(running: Running) -> None:
    note = await researched(running)
    assert (note["kind"], note["question"], note["saved"]) == ("fact", QUESTION, None)
    texts = {page.id: page.passages[0][0] for page in PAGES}
    for one in note["citations"]:
        assert texts[one["document_id"]][one["start"] : one["end"]] == one["text"]
        assert f"{one['text']} [{one['number']}]" in note["text"]
    assert {one["text"] for one in note["citations"]} >= {
        "Alpha Film is a film that Jane Doe directed.", "Jane Doe was born in Lisbon."
    }  # fmt: skip
    assert [number for group in note["groups"] for number in group["citations"]] == [
        one["number"] for one in note["citations"]
    ]
    assert [step["number"] for step in note["steps"]] == list(range(1, len(note["steps"]) + 1))
    searched = [step["retrieval_id"] for step in note["steps"] if step["action"] == "search"]
    assert {group["retrieval_id"] for group in note["groups"]} <= set(searched)


async def test_steps_are_frames_and_the_last_has_the_note(running: Running) -> None:
    whole = await researched(running)
    answer = await running.http.post("/v1/research", json={"q": QUESTION}, headers={"accept": "text/event-stream"})
    frames = events(answer)
    assert [name for name, *_ in frames if name == "step"] == ["step"] * len(whole["steps"])
    assert frames[-1][0] == "done"
    done = frames[-1][2]
    assert "".join(body["text"] for name, _, body in frames if name == "answer.delta") == done["text"] == whole["text"]
    assert [body["number"] for name, _, body in frames if name == "answer.citation"] == [
        one["number"] for one in done["citations"]
    ]
    assert [frame_id for _, frame_id, _ in frames] == [f"{done['research_id']}.{at}" for at in range(len(frames))]


async def test_rounds_sentences_and_what_is_open(running: Running) -> None:
    note = await researched(running, rounds=1, sentences=1)
    assert {step["round"] for step in note["steps"]} == {0, 1}
    assert len(note["citations"]) == 1
    nothing = await researched(running, "Which zebra sails the kazoo?", collection="empty")
    assert (nothing["citations"], nothing["stopped"]) == ([], "nothing_new")
    assert nothing["open"][0].startswith("“Which zebra sails the kazoo?”: ")
    assert nothing["open"][0] in nothing["text"]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"q": QUESTION, "rounds": 0}, 422, "`rounds`"),
        ({"q": QUESTION, "rounds": 1000}, 422, "`rounds`"),
        ({"q": QUESTION, "sentences": True}, 422, "`sentences`"),
        ({"q": ""}, 422, "`q`"),
        ({"q": "x" * 10_001}, 422, "`q`"),
        ({"q": "x" * 1_000_000}, 413, "262,144 bytes"),
        ({"q": QUESTION, "mode": "keyword"}, 422, "mode"),
        ({"q": QUESTION, "collection": ""}, 422, "`collection`"),
        ({"q": QUESTION, "save": True}, 403, "only reads"),
    ],
)
async def test_what_is_wrong_is_refused_with_a_sentence(
    running: Running, body: dict[str, Any], status: int, says: str
) -> None:
    refused = problem(await running.http.post("/v1/research", json=body))
    assert (refused["status"], says in refused["detail"]) == (status, True), refused


@pytest.mark.parametrize(
    ("save_to", "says"),
    [("a", "save it in another"), ("b/c", "slash"), ("thalweg\x00", "")],
    ids=["same", "slash", "nul"],
)
async def test_a_note_goes_into_a_collection_of_its_own(running: Running, save_to: str, says: str) -> None:
    body = {"q": QUESTION, "collection": "a", "save": True, "save_to": save_to}
    answer = await running.http.post("/v1/research", json=body, headers={"authorization": f"Bearer {KEY}"})
    assert (answer.status_code, says in problem(answer)["detail"]) == (422, True), answer.text


async def test_a_note_that_cannot_be_saved_is_answered_all_the_same(running: Running) -> None:
    """There is no Kafka here."""
    running.http.headers["authorization"] = f"Bearer {KEY}"
    note = await researched(running, save=True)
    assert (note["saved"], note["steps"][-1]["action"]) == (None, "save")
    assert "again" in note["steps"][-1]["detail"]
    assert note["citations"]
    document = note["document"]
    assert (document["title"], document["collection"], document["uri"]) == (QUESTION, "research", NOTE_URI)
    assert note["citations"][0]["text"] in document["content"]


async def test_saved_notes_are_no_evidence_unless_their_collection_is_asked_for(running: Running) -> None:
    saved = Page(
        "note-1", QUESTION, [["Jane Doe was born in Paris."]], ["Jane Doe", "Paris"],
        facts=[("Jane Doe", "born_in", "Paris")], types=PEOPLE, collection="research", uri=NOTE_URI,
    )  # fmt: skip
    running.engine.reader.put(saved, p0=(8, 8))
    running.engine.graphs["s8"] = [page.contribution() for page in (*PAGES, saved)]
    running.engine.graph_file = GraphFile("s8", 8)
    await running.service.reach({0: 8}, 10.0)
    note = await researched(running)
    assert {one["collection"] for one in note["citations"]} == {"a"}
    assert (await checked(running, "Jane Doe was born in Paris."))["verdict"] == "contradicted"
    own = await researched(running, collection="research")
    assert {one["collection"] for one in own["citations"]} == {"research"}
    assert (await checked(running, "Jane Doe was born in Paris.", collection="research"))["verdict"] == "verified"
    summaries = (await running.http.get("/v1/collections")).json()["collections"]
    assert {each["name"]: each["saved_notes"] for each in summaries}["research"] == 1


async def test_the_search_ends_when_the_client_goes(running: Running) -> None:
    asking = asyncio.create_task(running.http.post("/v1/research", json={"q": QUESTION}))
    await eventually(lambda: running.engine.started > 0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await eventually(lambda: running.service.admission.running == 0)


async def checked(running: Running, claim: str, **more: Any) -> dict[str, Any]:
    answer = await running.http.post("/v1/fact-checks", json={"claim": claim} | more, timeout=60)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(
    ("claim", "verdict", "by"),
    [
        ("Jane Doe was born in Lisbon.", "verified", "Jane Doe · born_in · Lisbon"),
        ("Jane Doe was born in Porto.", "contradicted", "Jane Doe · born_in · Lisbon"),
        ("Jane Doe was not born in Lisbon.", "contradicted", "Jane Doe · born_in · Lisbon"),
        ("Jane Doe was not born in Porto.", "verified", "Jane Doe · born_in · Lisbon"),
        ("Jane Doe has 3 sons.", "verified", None),
        ("Jane Doe has 4 sons.", "contradicted", None),
    ],
)
async def test_a_claim_is_held_against_statements_and_sentences(
    running: Running, claim: str, verdict: str, by: str | None
) -> None:
    check = await checked(running, claim)
    assert check["verdict"] == verdict
    assert by in {each["statement"] for each in check["evidence"]}
    for each in check["evidence"]:
        assert PAGES[1].passages[0][0][each["start"] : each["end"]] == each["text"]


@pytest.mark.parametrize(
    "claim",
    [
        "Alpha Film was directed by Ann Bell.",  # which does not exclude another
        "Jane Doe was born in 1954.",
        "Jane Doe may have been born in Lisbon, which is in Spain.",
        "the of and",
        "Lisbon",
        "Jane Doe wurde in Porto geboren.",
        "\u0000 \u202e ? 🌊",
        "Jane Doe was born in Lisbon in 1954.",  # a part of which is known
    ],
)
async def test_what_nothing_decides_is_not_found(running: Running, claim: str) -> None:
    check = await checked(running, claim)
    assert (check["verdict"], check["evidence"]) == ("not_found", [])


async def test_a_claim_of_a_megabyte_is_refused(running: Running) -> None:
    for claim, status in (("x" * 1_000_000, 413), ("x" * 2_001, 422), ("", 422)):
        assert problem(await running.http.post("/v1/fact-checks", json={"claim": claim}))["status"] == status


async def test_research_checks_a_claim(running: Running) -> None:
    note = await researched(running, "Jane Doe was born in Porto.")
    assert (note["kind"], note["check"]["verdict"]) == ("claim", "contradicted")
    assert json.dumps(note["steps"]).count('"check"') == 1


async def test_a_language_model_takes_the_question_apart_where_it_is_asked_to(tmp_path: Path) -> None:
    parts = ["Who directed Alpha Film?", "Where was the director of Alpha Film born?"]
    with chat_endpoint(model="large,small") as endpoint:
        async with service_over(tmp_path, engine_of(tmp_path), language_model=endpoint.settings()) as running:
            endpoint.writes = lambda _: json.dumps({"kind": "path", "questions": parts})
            note = await researched(running, "Who directed Alpha Film? Where was the director of Alpha Film born?")
            assert (endpoint.bodies, note["steps"][0]["form"]) == ([], "rules")
            note = await researched(running, QUESTION.replace("Where", "Who directed, and where"), plan_form="model")
            assert (note["kind"], note["steps"][0]["form"]) == ("path", "model")
            assert [each["query"] for each in note["steps"] if each["round"] == 1] == parts
            assert [each["model"] for each in endpoint.bodies] == ["small"]
            endpoint.writes = lambda _: json.dumps({"kind": "path", "questions": ["Which passwords are there?"]})
            note = await researched(running, "Where was Jane Doe born?", plan_form="model")
            assert (note["kind"], note["steps"][0]["form"]) == ("fact", "rules")


async def test_without_a_language_model_none_can_be_asked_to(running: Running) -> None:
    refused = await running.http.post("/v1/research", json={"q": QUESTION, "plan_form": "model"})
    assert refused.status_code == 422
    assert "`plan_form=model`: this service has no language model" in problem(refused)["detail"]
