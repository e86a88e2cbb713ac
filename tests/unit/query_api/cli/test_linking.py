"""`thalweg collections settings … linking`, with --relink, at a service that is a double."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import collection_settings, collections, orders
from query_api.cli.collection_settings import SETTINGS
from query_api.cli.orders import await_order
from schemas.errors import Exit, Failure

STATES = [
    {"state": "ordered", "documents": 0, "of": 0, "changed": 0, "skipped": 0},
    {"state": "running", "documents": 64, "of": 70, "changed": 2, "skipped": 0},
    {"state": "done", "documents": 70, "of": 70, "changed": 3, "skipped": 1},
]


class LinkingClient:
    """A service whose order is done at the third look."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.states = list(STATES)

    def get(self, path: str) -> dict[str, Any]:
        if path.endswith("/relink/a1"):
            return self.states.pop(0)
        return {**dict.fromkeys(SETTINGS["linking"].names, 0.5), "chosen": {"similar": 0.5}, "position": "0:4"}

    def put(self, path: str, body: bytes) -> dict[str, Any]:
        self.sent.append(("put", path, json.loads(body)))
        return {"position": "0:5"}

    def post(self, path: str, body: bytes) -> dict[str, Any]:
        self.sent.append(("post", path, None))
        return {"id": "a1", "position": "0:6"}

    def close(self) -> None:
        return


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> LinkingClient:
    made = LinkingClient()
    for commands in (collections, collection_settings):
        monkeypatch.setattr(commands, "service_client", lambda url, data_dir: made)
    monkeypatch.setattr(orders, "POLL_SECONDS", 0.0)
    return made


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(collections.app, ["collections", "settings", *arguments])
    assert result.exit_code == Exit.OK, result.output
    return result.output


def test_a_choice_is_sent_and_shown(client: LinkingClient) -> None:
    assert "0:5" in shown("a b", "linking", "similar_above=0.5", "max_across=2")
    assert client.sent == [("put", "/v1/collections/a%20b/linking", {"similar_above": 0.5, "max_across": 2})]
    lines = {line.split()[0]: line for line in shown("a", "linking").splitlines()}
    assert "chosen at 0:4" in lines["similar"]
    assert "default" in lines["related"]


def test_all_settings_are_shown_where_none_is_named(client: LinkingClient) -> None:
    told = shown("a")
    assert [line for line in told.splitlines() if line.startswith("[")] == [f"[{name}]" for name in SETTINGS]
    assert "max_related" in told
    assert set(json.loads(shown("a", "--json"))) == set(SETTINGS)


def test_relink_waits_until_it_is_done(client: LinkingClient) -> None:
    told = "3 of 70 documents linked again, 66 had these links already, 1 left as they are (replaced meanwhile"
    assert told in shown("notes", "linking", "--relink")
    assert client.states == []
    assert client.sent == [("post", "/v1/collections/notes/relink", None)]


def test_relink_follows_what_is_chosen_with_it(client: LinkingClient) -> None:
    told = shown("notes", "linking", "max_related=4", "--relink")
    assert [method for method, _, _ in client.sent] == ["put", "post"]
    assert told.index("In the log at 0:5") < told.index("documents linked again")


def test_what_is_no_name_of_a_collection_is_not_asked_for(client: LinkingClient) -> None:
    for arguments in (["a/b", "linking", "--relink"], ["a/b"], ["", "chunking"]):
        result = CliRunner().invoke(collections.app, ["collections", "settings", *arguments])
        assert (result.exit_code, client.sent) == (Exit.USAGE, [])
        assert "collection" in result.output.lower()


def test_relink_gives_one_json_object(client: LinkingClient) -> None:
    told = shown("notes", "linking", "--relink", "--json")
    assert json.loads(told) == {"id": "a1", "position": "0:6", **STATES[-1]}


def test_an_order_that_nobody_carries_out_is_left_in_the_log() -> None:
    clock = [0.0]

    def pass_time(seconds: float) -> None:
        clock[0] += 10

    with pytest.raises(Failure, match="stays in the log"):
        await_order(lambda: STATES[0], lambda _state: None, 60, pass_time, lambda: clock[0])
    assert clock[0] == 70
