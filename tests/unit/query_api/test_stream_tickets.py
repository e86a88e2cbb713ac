"""Tickets: the only secret that an address takes, for one stream, once, within ten seconds."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from query_api.app import create_app
from query_api.errors import ApiProblem
from query_api.settings import ServiceSettings
from query_api.stream_tickets import MAX_TICKETS, STREAM_PATHS, StreamTickets, TicketRefused
from schemas.frames import EVENT_STREAM
from schemas.provenance import encode_retrieval
from tests.support.fakes.engine import ScriptedEngine, make_generation
from tests.support.fakes.service import Running, events, problem, service_over

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
BEARER = {"Authorization": f"Bearer {KEY}"}
STREAM = {"Accept": EVENT_STREAM}
SEARCH = "/v1/search"


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    async with service_over(tmp_path, ScriptedEngine(), api_key=KEY, read_api_key=READ_KEY) as running:
        yield running


async def new_ticket(running: Running, path: str = SEARCH, sent: str = KEY) -> str:
    headers = {"Authorization": f"Bearer {sent}"}
    answer = await running.http.post("/v1/stream-tickets", json={"path": path}, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert (body["path"], body["expires_in"]) == (path, 10)
    return str(body["ticket"])


async def stream(running: Running, ticket: str, path: str = SEARCH, **headers: str) -> httpx.Response:
    params = {"ticket": ticket} | ({"q": "x"} if path == SEARCH else {})
    return await running.http.get(path, params=params, headers=STREAM | headers)


async def test_a_ticket_of_any_caller_opens_one_stream(guarded: Running) -> None:
    session = (await guarded.http.post("/v1/session-tokens", headers=BEARER)).json()["access_token"]
    for sent in (KEY, READ_KEY, session):
        ticket = await new_ticket(guarded, sent=sent)
        opened = await stream(guarded, ticket)
        assert events(opened)[-1][0] == "done"
        again = await stream(guarded, ticket)
        assert problem(again)["detail"] == (
            "The ticket has been used: each opens one stream, and reconnecting needs a new one. To get one, make a "
            "one-use ticket with the key or a session token: POST /v1/stream-tickets."
        )
        assert again.headers["www-authenticate"] == 'Bearer error="invalid_token"'


async def test_an_event_source_that_reconnects_is_refused(guarded: Running) -> None:
    ticket = await new_ticket(guarded)
    frames = events(await stream(guarded, ticket))
    for last in (frames[0][1], frames[-1][1]):
        assert problem(await stream(guarded, ticket, **{"Last-Event-ID": last}))["status"] == 401
    resumed = await stream(guarded, await new_ticket(guarded), **{"Last-Event-ID": frames[0][1]})
    assert events(resumed) == frames[1:]


async def test_a_ticket_is_good_for_ten_seconds(guarded: Running) -> None:
    now = [0.0]
    guarded.tickets.clock = lambda: now[0]
    early, late = await new_ticket(guarded), await new_ticket(guarded)
    now[0] = 9.9
    assert (await stream(guarded, early)).status_code == 200
    now[0] = 10.0
    for ticket in (early, late, "x", ""):
        refused = problem(await stream(guarded, ticket))
        assert (refused["status"], refused["title"]) == (401, "Unauthorized")
        assert refused["detail"].startswith("The ticket is over 10 s old, or not one of this service.")


async def test_a_ticket_is_for_its_path_and_streams_alone(guarded: Running) -> None:
    paths = create_app(ServiceSettings()).openapi()["paths"]
    ticket = await new_ticket(guarded)
    others = [
        (method.upper(), path.replace("{", "").replace("}", ""))
        for path, methods in paths.items()
        for method in methods
        if path not in ("/livez", "/readyz") and (method, path) != ("get", SEARCH)
    ]
    assert len(others) > 60
    for method, path in [*others, ("GET", "/v1/documents/a/status"), ("GET", "/docs"), ("GET", "/openapi.json")]:
        answer = await guarded.http.request(method, path, params={"ticket": ticket}, headers=STREAM)
        assert answer.status_code == 401, (method, path)
        assert ticket not in answer.text
    for method, headers in (("GET", {}), ("GET", {"Accept": "text/html"}), ("HEAD", STREAM), ("POST", STREAM)):
        answer = await guarded.http.request(method, SEARCH, params={"q": "x", "ticket": ticket}, headers=headers)
        assert answer.status_code == 401
        assert method == "HEAD" or "is for streams alone" in problem(answer)["detail"]
    assert (await stream(guarded, ticket)).status_code == 200


@pytest.mark.parametrize("document", ["a", "a/b c", "ü?&", "50%41"])
async def test_a_documents_status_has_a_ticket_for_its_path(guarded: Running, document: str) -> None:
    path = f"/v1/documents/{quote(document)}/status"
    ticket = await new_ticket(guarded, path)
    assert problem(await stream(guarded, ticket, "/v1/documents/other/status"))["detail"].startswith(
        "The ticket was made for another path."
    )
    no_stream = "application/json, text/event-stream;q=0.1"  # answered at once: a stream would wait for the document
    assert (await stream(guarded, ticket, path, Accept=no_stream)).json()["id"] == document
    assert problem(await stream(guarded, ticket, path))["status"] == 401


@pytest.mark.parametrize(
    "path", ["", "/v1/status", "/v1/search?q=x", "v1/search", "/v1/documents/a", "/v1/documents//status", SEARCH + "/"]
)
async def test_there_is_no_ticket_for_what_is_not_a_stream(guarded: Running, path: str) -> None:
    refused = problem(await guarded.http.post("/v1/stream-tickets", json={"path": path}, headers=BEARER))
    assert (refused["status"], "path" in refused["detail"]) == (422, True)


def test_each_route_that_streams_by_get_has_tickets() -> None:
    paths = create_app(ServiceSettings()).openapi()["paths"]
    streaming = {
        path for path, methods in paths.items() if "get" in methods and EVENT_STREAM in str(methods["get"]["responses"])
    }
    assert streaming == {SEARCH, "/v1/documents/{document_id}"}
    assert all(STREAM_PATHS.fullmatch(path) for path in (SEARCH, "/v1/documents/a/status"))


async def test_a_ticket_reaches_no_record_no_log_and_no_answer(
    guarded: Running, capfd: pytest.CaptureFixture[str]
) -> None:
    tickets = [await new_ticket(guarded) for _ in range(4)]
    for name, ticket in zip(("ticket", "tick%65t", "%74icket"), tickets, strict=False):
        answer = await guarded.http.get(f"/v1/search?q=river&{name}={ticket}&k=1", headers=STREAM)
        assert answer.status_code == 200
        assert ticket not in answer.text
        kept = guarded.service.provenance.recent(events(answer)[0][2]["retrieval_id"])
        assert kept is not None
        assert ticket.encode() not in encode_retrieval(kept)
    refused = await guarded.http.get(f"/v1/search?q=river&ticket={tickets[3]}&colour=red", headers=STREAM)
    assert "There is no parameter 'colour'" in problem(refused)["detail"]
    assert tickets[3] not in refused.text
    written = capfd.readouterr()
    assert not [ticket for ticket in tickets if ticket in written.out + written.err]


def test_tickets_are_bounded_and_make_room_when_they_expire() -> None:
    now = [0.0]
    tickets = StreamTickets(lambda: now[0])
    made = [tickets.issue(SEARCH) for _ in range(MAX_TICKETS)]
    assert len(set(made)) == MAX_TICKETS
    tickets.redeem(made[0], SEARCH)
    with pytest.raises(ApiProblem, match="Try again then") as refused:
        tickets.issue(SEARCH)
    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "10"})
    now[0] = 10.0
    tickets.redeem(tickets.issue(SEARCH), SEARCH)
    with pytest.raises(TicketRefused):
        tickets.redeem(made[1], SEARCH)
