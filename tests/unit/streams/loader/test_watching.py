"""Following a folder: what is sent, what is told, and what waits until it can be sent."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import Unreachable, WrongSetting
from schemas.receipts import Receipt
from streams.loader.folders import SOURCE_HEADER, KnownDocument, Selection
from streams.loader.loader import Loader
from streams.loader.publishing import Followed, Published
from streams.loader.sources import Record
from streams.loader.watching import Event, Picture, Watcher
from streams.settings import WorkerSettings


@dataclass
class RecordingPublisher:
    """Indexes everything, but fails as often as `away` says."""

    away: int = 0
    sent: list[tuple[str, bytes | None]] = field(default_factory=list)
    held: dict[str, str | None] = field(default_factory=dict)

    def send(self, records: Iterable[Record], published: Published, _bars: Any, _patience: float | None) -> Followed:
        if self.away:
            self.away -= 1
            raise Unreachable("Kafka is away.")
        followed = Followed()
        for number, record in enumerate(records):
            self.sent.append((record.key.document_id, record.value))
            self.held.pop(record.key.document_id, None)
            if record.value is not None:
                mark = dict(record.headers).get(SOURCE_HEADER)
                self.held[record.key.document_id] = mark.decode() if mark else None
            outcome: Any = "deleted" if record.value is None else "indexed"
            followed.take(Receipt(key=str(record.key), outcome=outcome, partition=0, offset=number, generation="g"))
        return followed

    def documents(self, _collection: str) -> list[KnownDocument]:
        return [KnownDocument(document_id, mark) for document_id, mark in self.held.items()]


@dataclass
class Story:
    """A folder that is watched, what was told, and what was complained of."""

    folder: Path
    publisher: RecordingPublisher
    events: list[Event] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        loader = Loader(WorkerSettings(), self.publisher, wait=True, timeout_seconds=1, quiet=True)
        self.watcher = Watcher(
            loader,
            [str(self.folder)],
            Selection("m", marked=True),
            self.events.append,
            self.complaints.append,
            self.pauses.append,
        )
        self.picture = Picture({}, [])
        self.wake()
        self.publisher.sent.clear()

    def wake(self) -> list[tuple[str, str, str]]:
        """What is told of the changes since the last time."""
        self.events.clear()
        self.picture = self.watcher._catch_up(self.picture)
        return [(event.change, event.document_id, event.outcome) for event in self.events]


@pytest.fixture
def story(tmp_path: Path) -> Story:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(f"# {name}")
    return Story(tmp_path, RecordingPublisher())


def test_each_change_is_sent_and_told(story: Story) -> None:
    (story.folder / "a.md").write_text("# Changed words")
    (story.folder / "c.md").write_text("# New")
    (story.folder / "b.md").unlink()
    assert story.wake() == [
        ("changed", "a.md", "indexed"),
        ("created", "c.md", "indexed"),
        ("deleted", "b.md", "deleted"),
    ]
    assert story.publisher.sent == [("a.md", b"# Changed words"), ("c.md", b"# New"), ("b.md", None)]
    assert story.wake() == []


def test_file_written_in_place_with_its_old_size_and_time_is_sent(story: Story) -> None:
    file = story.folder / "a.md"
    before = file.stat()
    file.write_text("# z.md")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert story.wake() == [("changed", "a.md", "indexed")]


def test_a_renamed_file_is_sent_under_its_new_id_before_the_old_one_is_deleted(story: Story) -> None:
    (story.folder / "sub").mkdir()
    (story.folder / "a.md").rename(story.folder / "sub" / "new.md")
    assert story.wake() == [("renamed", "sub/new.md", "indexed")]
    assert story.events[0].sentence()[10:] == "renamed  a.md → sub/new.md: indexed"
    assert story.publisher.sent == [("sub/new.md", b"# a.md"), ("a.md", None)]


def test_changed_ignore_file_takes_documents_out_and_back(story: Story) -> None:
    (story.folder / ".gitignore").write_text("/a.md\n")
    assert story.wake() == [("ignored", "a.md", "deleted")]
    assert story.events[0].sentence()[10:] == "ignored  a.md (by .gitignore): deleted"
    assert story.publisher.sent == [("a.md", None)]
    (story.folder / ".gitignore").write_text("/b.md\n")
    assert story.wake() == [("created", "a.md", "indexed"), ("ignored", "b.md", "deleted")]
    (story.folder / ".gitignore").write_bytes("/b.md\n".encode("utf-16"))
    (story.folder / "a.md").unlink()
    assert story.wake() == []
    assert "not text in UTF-8" in story.complaints[0]
    (story.folder / ".gitignore").unlink()
    assert story.wake() == [("created", "b.md", "indexed"), ("deleted", "a.md", "deleted")]


def test_what_editors_write_beside_a_file_is_nothing(story: Story) -> None:
    for name in (".a.md.swp", "a.md~", "#a.md#", "a.md.tmp"):
        (story.folder / name).write_text("x")
    assert story.wake() == []


def test_a_file_that_would_be_refused_is_told_and_the_others_go_in(story: Story) -> None:
    (story.folder / "a.md").write_text("")
    (story.folder / "b.md").write_text("# More")
    assert story.wake() == [("changed", "a.md", "refused: The file is empty."), ("changed", "b.md", "indexed")]


def test_while_kafka_is_away_changes_wait_and_the_newest_are_sent(story: Story) -> None:
    story.publisher.away = 3
    (story.folder / "a.md").write_text("# Later")
    assert story.wake() == [("changed", "a.md", "indexed")]
    assert story.pauses == [1.0, 2.0, 4.0]
    assert story.complaints[0] == "Kafka is away. Trying again in 1 s: 1 changes wait."
    assert story.publisher.sent == [("a.md", b"# Later")]


def test_a_folder_that_is_gone_keeps_its_documents_until_it_is_back(story: Story) -> None:
    moved = story.folder.with_name("elsewhere")
    story.folder.rename(moved)
    assert story.wake() == []
    assert story.wake() == []
    [said] = story.complaints
    assert said.endswith("is gone, or another disk: its documents stay as they are until it is back.")
    moved.rename(story.folder)
    (story.folder / "a.md").unlink()
    assert story.wake() == [("deleted", "a.md", "deleted")]


def test_while_a_folder_inside_cannot_be_read_nothing_is_deleted(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    (story.folder / "shut").mkdir()
    (story.folder / "shut" / "c.md").write_text("# c")
    story.wake()
    scandir = os.scandir

    def failing(path: str) -> object:
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", failing)
        (story.folder / "a.md").unlink()
        assert story.wake() == []
    assert story.wake() == [("deleted", "a.md", "deleted")]


def test_lines_of_a_file_count_together_and_stay_when_it_goes(story: Story) -> None:
    lines = story.folder / "some.jsonl"
    lines.write_text('{"id": "x", "content": "one"}\n{"id": "y", "content": "two"}\n')
    assert story.wake() == [("created", "some.jsonl", "2 indexed")]
    lines.write_text('{"id": "x", "content": "more"}\n{"id": "z"}\n')
    [(change, _, outcome)] = story.wake()
    assert (change, outcome.partition(":")[0]) == ("changed", "indexed; refused")
    lines.unlink()
    assert story.wake() == [("deleted", "some.jsonl", "no document came from it")]
    assert {"x", "y"} <= story.publisher.held.keys()


def test_a_document_that_came_from_elsewhere_since_stays_when_its_file_goes(story: Story) -> None:
    story.publisher.held["a.md"] = None
    for name in ("a.md", "b.md"):
        (story.folder / name).unlink()
    assert story.wake() == [("deleted", "a.md", "no document came from it"), ("deleted", "b.md", "deleted")]
    assert story.publisher.sent == [("b.md", None)]


def test_a_name_that_is_not_utf_8_is_refused_when_it_comes_and_nothing_when_it_goes(story: Story) -> None:
    odd = story.folder / os.fsdecode(b"caf\xe9.md")
    odd.write_text("# Words")
    [(_, _, outcome)] = story.wake()
    assert outcome == "refused: The file's name is not UTF-8; rename it."
    odd.unlink()
    assert story.wake() == [("deleted", "caf\udce9.md", "no document came from it")]
    assert story.publisher.sent == []


def test_without_waiting_what_was_sent_counts_before_it_is_listed(story: Story) -> None:
    story.watcher.loader = replace(story.watcher.loader, wait=False)
    story.publisher.held.clear()
    (story.folder / "a.md").unlink()
    assert story.wake() == [("deleted", "a.md", "deleted")]


def test_a_file_cannot_be_watched(story: Story) -> None:
    for path, said in ((str(story.folder / "a.md"), "a.md' is none"), ("-", "standard input is none")):
        with pytest.raises(WrongSetting, match=said):
            Watcher(story.watcher.loader, [path], Selection(), print, print)
