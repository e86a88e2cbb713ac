"""How a hit looks on a terminal."""

import io
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from query_api.cli.collections import COLLECTIONS
from query_api.cli.dead_letters import LETTERS
from query_api.cli.display import (
    SNIPPET_CHARACTERS,
    PlainConsole,
    lag_text,
    print_table,
    show_end,
    show_hit,
    worker_text,
)

HIT: dict[str, Any] = {
    "rank": 1,
    "title": "Weirs",
    "section": [],
    "collection": "wiki",
    "document_id": "weirs",
    "score": 1.25,
    "scores": {"vector": 0.5},
    "text": "A weir holds the river back.",
    "path": [],
}


def shown(**more: Any) -> str:
    output = io.StringIO()
    show_hit(Console(file=output, width=2_000), HIT | more)
    return output.getvalue()


def test_a_hit_tells_how_likely_it_is_and_what_says_the_same() -> None:
    copy = {"document_id": "copy", "collection": "wiki", "passage_id": "p", "similarity": 1.0}
    text = shown(confidence=0.873, likelihood="likely", duplicates=[copy])
    assert "likely   score 1.25" in text
    assert "87%" not in text
    assert "also in wiki/copy" in text
    assert "unlikely   score 1.25" in shown(confidence=0.007, likelihood="unlikely", unlikely=True)
    assert "confidence 87%" in shown(confidence=0.873, likelihood="likely", factors={"semantic": 0.5})


BEFORE, ANSWER, AFTER = "Before it. " * 30, "A weir holds the river back.", " After it." * 30


def test_a_long_text_is_cut_around_its_answer_and_the_questions_words_are_bold() -> None:
    start = len(BEFORE)
    hit = HIT | {"text": BEFORE + ANSWER + AFTER, "uri": "https://x.org/[a]"}
    hit |= {
        "answer": {"start": start, "end": start + len(ANSWER)},
        "highlights": [{"start": 0, "end": 6}, {"start": start + 2, "end": start + 6}],
    }
    output = io.StringIO()
    show_hit(Console(file=output, width=400, force_terminal=True), hit)
    line = output.getvalue().splitlines()[2]
    assert "A \x1b[1mweir\x1b[0m holds the river back.\x1b[2m After it." in line
    plain = shown(**hit).splitlines()
    assert plain[1].endswith("   https://x.org/[a]")
    assert plain[2].startswith(f"     … {ANSWER} After it.")
    assert plain[2].endswith(" After it. …")
    assert SNIPPET_CHARACTERS - 12 < len(plain[2].strip("… ")) <= SNIPPET_CHARACTERS


@pytest.mark.parametrize(
    ("length", "shown_of_it"),
    [(2 * SNIPPET_CHARACTERS - 8, 2 * SNIPPET_CHARACTERS - 8), (9 * SNIPPET_CHARACTERS, 2 * SNIPPET_CHARACTERS - 8)],
)
def test_an_answer_is_whole_unless_it_is_very_long(length: int, shown_of_it: int) -> None:
    text = BEFORE + "longwords " * (length // 10) + "end."
    answer = {"start": len(BEFORE), "end": len(text)}
    line = shown(text=text, answer=answer).splitlines()[2]
    assert abs(len(line.strip("… ")) - shown_of_it) < 12


@pytest.mark.parametrize("width", [60, 100, 200])
def test_on_a_terminal_wrapped_lines_stand_under_their_beginning(width: int) -> None:
    output = io.StringIO()
    console = PlainConsole(file=output, width=width, force_terminal=True, color_system=None, soft_wrap=True)
    show_hit(console, HIT | {"title": "Weirs and locks " * 8, "text": "word " * 40, "uri": "https://x.org/weirs"})
    first, *others = output.getvalue().rstrip().splitlines()
    assert first.startswith("  1  Weirs and locks")
    assert len(others) >= 2
    assert all(line.startswith("     ") and not line.startswith("      ") for line in others)
    assert all(len(line.rstrip()) <= width for line in (first, *others))


def test_a_text_without_an_answer_is_shown_from_its_beginning() -> None:
    assert shown(text="A weir\n[holds]  it.").splitlines()[2] == "     A weir [holds] it."
    line = shown(text="word " * 100).splitlines()[2]
    assert line.endswith("word …")
    assert len(line.strip()) <= SNIPPET_CHARACTERS + 2


def test_counted_values_stand_below_the_hits() -> None:
    values = [
        {"value": "Final [x]", "documents": 3, "filter": None},
        {"value": "Draft", "documents": 1, "filter": None},
    ]
    done = {"hits": 0, "timings": {"total": 0.1}, "failed_channels": {}, "retrieval_id": "r"}
    done["facets"] = [{"field": "status", "values": values, "other": 2, "missing": 0}]
    output = io.StringIO()
    show_end(PlainConsole(file=output, soft_wrap=True), done, {"snapshot": {"positions": "0:1", "generation": "g"}})
    assert "status: Final [x] 3, Draft 1, other 2\n" in output.getvalue()


def test_a_document_cannot_steer_the_terminal() -> None:
    output = io.StringIO()
    evil = "evil \x1b[31mRED\x1b]0;pwn\x07 \x9b2J\rgone \u202egnp.exe"
    hit = HIT | {"title": evil, "section": [evil], "text": evil, "path": [{"from": evil, "edge": evil, "to": "B"}]}
    hit |= {"document_id": evil, "matches": [evil], "parts": {evil: 1}}
    console = PlainConsole(file=output, width=200, force_terminal=True, color_system="truecolor")
    show_hit(console, hit)
    shown = output.getvalue()
    assert "\x1b[1m" in shown  # what is bold here still is
    for obeyed in ("\x1b[31mRED", "\x1b]0;", "\x07", "\x9b", "\r", "\u202e"):
        assert obeyed not in shown
    assert shown.count("evil \\x1b[31mRED\\x1b]0;pwn\\x07 \\x9b2J") >= 7
    assert "\\u202egnp.exe" in shown


def test_list_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "evil \x1b[31mRED\x07 [b]bold"
    collection = {"name": evil, "documents": 1, "chunks": 1, "chunking": None, "linking": None}
    letter = {"position": "0:1", "at": "2026-11-22T04:00:00", "reason": "malformed", "key": evil, "message": evil}
    letter |= {"bytes": 9, "omitted": None}
    for listing, member in ((COLLECTIONS, collection), (LETTERS, letter)):
        print_table(list(listing.columns), [[text(member) for text in listing.columns.values()]])
    assert capsys.readouterr().out.count("evil \\x1b[31mRED\\x07 [b]bold") == 3


def test_table_is_a_line_for_each_member_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["id", "text"], [["1", "word " * 400 + "\nmore"], ["2", ""]], numbers=["id"])
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["id", "text"]
    assert first.rstrip().endswith("word   more")
    assert second.split() == ["2"]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_table_fits_the_terminal_and_keeps_its_ids_whole(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(PlainConsole, "is_terminal", True)
    for length in (30, 150):
        print_table(["id", "text"], [["#" * length, "word " * 40 + "\nmore"]], with_ids=True)
        shown = Text.from_ansi(capsys.readouterr().out).plain
        assert max(map(len, shown.splitlines())) <= width
        assert shown.count("#") == length
        assert length > 30 or "#" * length in shown


def test_what_cannot_be_told_is_not_shown() -> None:
    for hit in (shown(confidence=None, duplicates=[]), shown()):
        assert "likely" not in hit
        assert "also in" not in hit


@pytest.mark.parametrize(
    ("step", "line"),
    [
        ({"from": "A", "edge": "continues", "to": "B", "by": "graph"}, "A ─continues→ B"),
        ({"from": "question", "edge": "names", "to": "B", "by": "question"}, "question ─names→ B"),
        ({"from": "A", "edge": "continues", "to": "B", "by": "words"}, "A, then B, by words (no link)"),
        ({"from": "A", "edge": "requires", "to": "B", "by": "graph", "inverse": True}, "A ←requires─ B"),
    ],
)
def test_only_an_edge_is_drawn_as_one(step: dict[str, object], line: str) -> None:
    assert line in shown(path=[step]).splitlines()[3]


@pytest.mark.parametrize(
    ("content_bytes", "size"),
    [(1_005, "(1,005 bytes, in an envelope of 1,200)"), (1_200, "(1,200 bytes)"), (None, "(1,200 bytes)")],
)
def test_a_dead_letter_tells_the_size_of_what_was_sent(content_bytes: int | None, size: str) -> None:
    letter = {"position": "0:1", "reason": "malformed", "key": "c/a", "message": "No.", "omitted": None}
    assert size in LETTERS.columns["document"](letter | {"bytes": 1_200, "content_bytes": content_bytes})


@pytest.mark.parametrize(
    ("worker", "text"),
    [
        ({"state": "running"}, "running"),
        ({"state": "running", "waiting_for": {"lance": "no room"}}, "running, waits for lance"),
        ({"state": "silent", "waiting_for": {"lance": "no room"}}, "silent, heard of 42 s ago"),
        ({"state": "starting", "crashes_in_ten_minutes": 4}, "starting, heard of 42 s ago, 4 crashes in ten minutes"),
        ({"state": "never_seen", "heard_seconds_ago": None}, "never seen"),
    ],
)
def test_the_worker_in_a_few_words(worker: dict[str, Any], text: str) -> None:
    assert worker_text({"heard_seconds_ago": 42.1, "waiting_for": {}, "crashes_in_ten_minutes": 0} | worker) == text


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"lag_records": 0, "lag_seconds": 0.0}, "none"),
        ({"lag_records": 1_200, "lag_seconds": 3.21}, "1,200 records, the oldest for 3.2 s"),
        ({"lag_records": None, "lag_known_seconds_ago": 42.3}, "unknown: Kafka last answered 42 s ago"),
        ({"lag_records": None, "lag_known_seconds_ago": None}, "unknown"),
    ],
)
def test_lag_known_unknown_and_since_when(status: dict[str, Any], text: str) -> None:
    assert lag_text(status) == text
