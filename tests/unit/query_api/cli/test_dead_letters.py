"""The commands `thalweg dead-letters …`."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import app, dead_letters
from schemas.errors import Exit

POISON = b'{"id": \x00\xff'
LETTER = {
    "position": "3:17", "key": "docs/[bold]a", "source": {"topic": "t", "partition": 3, "offset": 9}, "stage": "decode",
    "reason": "not_json", "message": "The record is not JSON.", "at": "2026-11-22T04:00:00+00:00", "bytes": 9,
    "omitted": None, "headers": {"content-type": "text/plain"}, "preview": '{"id": \\x00\\xff', "preview_is_all": True,
}  # fmt: skip


class StubClient:
    """A service that holds these dead letters, and answers from a list of states."""

    def __init__(
        self, *states: dict[str, Any], letters: Sequence[dict[str, Any]] = (), cursor: str | None = None
    ) -> None:
        self.asked: list[tuple[str, dict[str, Any] | None]] = []
        self.posted: dict[str, Any] | None = None
        self._states = list(states)
        self._letters = letters
        self._cursor = cursor

    def get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.asked.append((path, params))
        if path == "/v1/dead-letters":
            return {"dead_letters": self._letters, "next_cursor": self._cursor, "looked_at": 1}
        return self._states.pop(0) if path == "/v1/dead-letters/redrive/d_1" else self._letters[-1]

    def get_bytes(self, path: str, params: dict[str, Any]) -> bytes:
        assert (path, params) == ("/v1/dead-letters/3:17", {"raw": True})
        return POISON

    def post(self, path: str, body: bytes) -> dict[str, Any]:
        assert path == "/v1/dead-letters/redrive"
        self.posted = json.loads(body)
        return state(state="running")

    def close(self) -> None:
        return


def connect_to(monkeypatch: pytest.MonkeyPatch, stub: StubClient) -> None:
    for module in (app, dead_letters):
        monkeypatch.setattr(module, "service_client", lambda url, data_dir: stub)
    monkeypatch.setattr(dead_letters, "POLL_SECONDS", 0.0)


def state(**changed: Any) -> dict[str, Any]:
    """That of a redrive of nothing."""
    order = {"dry_run": False}
    counts = dict.fromkeys(("to_look_at", "looked_at", "matched", "redriven", "resolved"), 0)
    counts |= dict.fromkeys(("already_redriven", "refused"), 0)
    rest = {"id": "d_1", "order": order, "state": "done", "stage": "ended", "failed_again": None, "token": None}
    return rest | counts | {"letters": [], "message": None} | changed


def dead_letters_command(monkeypatch: pytest.MonkeyPatch, stub: StubClient, *arguments: str) -> Any:
    connect_to(monkeypatch, stub)
    return CliRunner().invoke(dead_letters.app, ["dead-letters", *arguments])


def test_letters_are_shown_with_what_to_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    stub = StubClient(letters=[LETTER], cursor="3:17")
    listed = dead_letters_command(monkeypatch, stub, "list", "--reason", "not_json", "--since", "2h", "--limit", "1")
    assert listed.exit_code == Exit.OK
    assert stub.asked.pop() == ("/v1/dead-letters", {"reason": "not_json", "since": "2h", "limit": 1})
    assert all(word in listed.output for word in ("3:17", "not_json", "docs/[bold]a", "not JSON.", "--cursor 3:17"))
    shown = dead_letters_command(monkeypatch, stub, "show", "3:17")
    assert stub.asked.pop()[0] == "/v1/dead-letters/3:17"
    assert all(word in shown.output for word in ("t 3:9", "at the stage decode", '{"id": \\x00\\xff', "content-type"))
    assert json.loads(dead_letters_command(monkeypatch, stub, "show", "3:17", "--json").stdout) == LETTER
    assert dead_letters_command(monkeypatch, stub, "show", "3:17", "--raw").stdout_bytes == POISON


def test_open_letters_are_listed_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    explained = {"reason_title": "Not JSON", "advice": "Correct it."}
    since = {"state": "resolved", "state_message": "It was indexed since.", "reason": "malformed"}
    stub = StubClient(letters=[LETTER | explained | {"state": "open"}, LETTER | explained | since])
    options = ["--open", "--collection", "docs", "--document", "a"]
    listed = dead_letters_command(monkeypatch, stub, "list", *options)
    assert listed.exit_code == Exit.OK, listed.output
    assert stub.asked.pop()[1] == {"state": "open", "collection": "docs", "document": "a", "limit": 20}
    assert "not_json: Not JSON. Correct it." in listed.output
    assert "malformed:" not in listed.output, "nothing is to be done about what is resolved"
    assert "resolved" in listed.output
    shown = dead_letters_command(monkeypatch, stub, "show", "3:17")
    assert "advice    Not JSON. Correct it." in shown.output
    assert "since     resolved: It was indexed since." in shown.output


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ([], "There are no dead letters."),
        (["--limit", "5"], "There are no dead letters."),
        (["--reason", "not_json"], "There are no such dead letters."),
        (["--since", "2h"], "There are no such dead letters."),
    ],
)
def test_no_letters_are_no_failure(monkeypatch: pytest.MonkeyPatch, options: list[str], reported: str) -> None:
    listed = dead_letters_command(monkeypatch, StubClient(), "list", *options)
    assert (listed.exit_code, listed.output) == (Exit.OK, f"{reported}\n")
    as_json = dead_letters_command(monkeypatch, StubClient(), "list", *options, "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["dead_letters"]) == (Exit.OK, [])


def letter(position: str, outcome: str, message: str | None = None) -> dict[str, Any]:
    return {"position": position, "key": "docs/[b]a", "reason": "too_large", "outcome": outcome, "message": message}


def redrive(monkeypatch: pytest.MonkeyPatch, stub: StubClient, *arguments: str) -> Any:
    return dead_letters_command(monkeypatch, stub, "redrive", *arguments)


@pytest.mark.parametrize(
    ("arguments", "order"),
    [
        (["--all"], {"all": True}),
        (["3:17", "0:4"], {"ids": ["3:17", "0:4"]}),
        (["--reason", "a", "--reason", "b", "--dry-run"], {"reason": ["a", "b"], "dry_run": True}),
        (["--collection", "docs", "--since", "2h"], {"collection": "docs", "since": "2h"}),
    ],
)
def test_redrive_is_ordered_followed_and_summed_up(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], order: dict[str, Any]
) -> None:
    done = state(
        matched=5, redriven=2, resolved=1, already_redriven=2, failed_again=0, token="0:9@5f3a9c1e",
        letters=[letter("3:17", "redriven"), letter("3:18", "resolved", "It was indexed since.")],
    )  # fmt: skip
    stub = StubClient(state(state="running", stage="reading"), state(state="running", stage="redriving"), done)
    result = redrive(monkeypatch, stub, *arguments)
    assert result.exit_code == Exit.OK, result.output
    assert stub.posted == order
    assert "2 redriven, 1 replaced since by a newer record, 2 redriven before." in result.stdout
    assert "3:18  newer     too_large  docs/[b]a  It was indexed since." in result.stdout
    assert "3:17" not in result.stdout, "what was redriven needs no line"
    assert "… and 3 more" in result.stdout
    assert "token 0:9@5f3a9c1e" in result.stdout


def test_dry_run_lists_what_would_be_redriven(monkeypatch: pytest.MonkeyPatch) -> None:
    would = state(order={"dry_run": True}, matched=1, redriven=1, letters=[letter("3:17", "redriven")])
    result = redrive(monkeypatch, StubClient(would), "--all", "--dry-run")
    assert (result.exit_code, "3:17  redrive " in result.stdout) == (Exit.OK, True)
    assert "1 would be redriven." in result.stdout


@pytest.mark.parametrize(
    ("ended", "reported"),
    [
        ({"matched": 1, "refused": 1, "letters": [letter("3:17", "refused", "Too large.")]}, "1 cannot be redriven."),
        ({"matched": 1, "redriven": 1, "failed_again": 1}, "1 failed again: 'thalweg dead-letters list' shows why."),
        ({"state": "failed", "message": "Kafka is away. Run it again."}, "thalweg: Kafka is away. Run it again."),
    ],
)
def test_redrive_that_could_not_do_all_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, ended: dict[str, Any], reported: str
) -> None:
    result = redrive(monkeypatch, StubClient(state(**ended)), "--all")
    assert result.exit_code == Exit.FAILED
    assert reported in result.output


def test_redrive_of_nothing_is_reported_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = state(message="There is no dead letter with the reason typo. Among those there are: 3 too_large.")
    result = redrive(monkeypatch, StubClient(nothing), "--reason", "typo")
    assert result.exit_code == Exit.OK
    assert result.stdout == f"{nothing['message']}\n"


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [([], "Say which dead letters"), (["--all", "3:17"], "Give positions or --all, not both")],
)
def test_unclear_order_is_not_sent(monkeypatch: pytest.MonkeyPatch, arguments: list[str], reported: str) -> None:
    stub = StubClient()
    result = redrive(monkeypatch, stub, *arguments)
    assert (result.exit_code, stub.posted) == (Exit.USAGE, None)
    assert reported in result.output


def test_program_gets_the_state_and_need_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    done = state(matched=1, redriven=1, failed_again=0)
    assert json.loads(redrive(monkeypatch, StubClient(done), "--all", "--json").stdout) == done
    begun = redrive(monkeypatch, StubClient(), "--all", "--no-wait")
    assert begun.exit_code == Exit.OK
    assert "GET /v1/dead-letters/redrive/d_1" in begun.stdout
