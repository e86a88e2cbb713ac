"""`thalweg load --sync`: what is asked, what is refused, and what is sent and deleted."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from schemas.errors import Exit
from schemas.receipts import Receipt
from streams.cli.load import app
from streams.loader.folders import KnownDocument, Selection
from streams.loader.loader import Loader
from streams.loader.publishing import Followed, Published
from streams.loader.sources import Record
from streams.settings import WorkerSettings


@dataclass
class Collection:
    """Holds documents of one collection, with their marks."""

    held: dict[str, str | None] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)

    def send(self, records: Iterable[Record], published: Published, _bars: Any, _patience: float | None) -> Followed:
        followed = Followed()
        for record in records:
            deletes = record.value is None
            self.sent.append(("-" if deletes else "+") + record.key.document_id)
            outcome: Any = "deleted" if deletes else "indexed"
            receipt = Receipt(
                key=str(record.key), outcome=outcome, partition=0, offset=published.records, generation="g"
            )
            published.records += 1
            followed.take(receipt)
        return followed

    def documents(self, _collection: str) -> list[KnownDocument]:
        return [KnownDocument(document_id, mark) for document_id, mark in self.held.items()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text("# Words")
    return folder


@pytest.fixture
def collection(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """Holds the two files, one that left the folder, and one that was never in it."""
    mine = Selection(marked=True).mark_of(folder)
    collection = Collection({"a.md": mine, "b.md": mine, "left.md": mine, "posted.md": None})
    loader = Loader(WorkerSettings(), collection, wait=True, timeout_seconds=1, quiet=True)
    monkeypatch.setattr(Loader, "connect", lambda *_, **__: loader)
    return collection


def load(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["load", *map(str, arguments)])


def test_what_left_the_folder_is_deleted_after_what_is_there_was_sent(folder: Path, collection: Collection) -> None:
    done = load(folder, "--sync", "--yes")
    assert collection.sent == ["+a.md", "+b.md", "-left.md"]
    assert done.exit_code == Exit.OK
    assert "Left the folder, to be deleted (1 of 3): left.md." in done.stderr
    assert "so they stay (1): posted.md." in done.stderr
    assert json.loads(load(folder, "--sync", "--yes", "--json").stdout)["left_folder"] == ["left.md"]


def test_without_a_terminal_nobody_is_asked_and_nothing_is_sent(folder: Path, collection: Collection) -> None:
    done = load(folder, "--sync")
    assert done.exit_code == Exit.USAGE
    assert "Nobody is there to be asked, so nothing was done: to do it, add --yes." in done.stderr
    assert collection.sent == []


@pytest.mark.parametrize(("answer", "sent"), [("y", ["+a.md", "+b.md", "-left.md"]), ("n", [])])
def test_at_a_terminal_it_is_asked(
    answer: str, sent: list[str], folder: Path, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("schemas.consent.is_interactive", lambda: True)
    done = CliRunner().invoke(app, ["load", str(folder), "--sync"], input=f"{answer}\n")
    assert "Delete 1 documents?" in done.stderr
    assert collection.sent == sent
    assert done.exit_code == (Exit.OK if sent else Exit.FAILED)


def test_an_emptied_folder_and_one_with_most_gone_are_refused(folder: Path, collection: Collection) -> None:
    (folder / "a.md").unlink()
    done = load(folder, "--sync")
    assert (done.exit_code, collection.sent) == (Exit.USAGE, [])
    assert "Most of the folder's files are gone: 2 of the 3 documents" in done.stderr
    (folder / "b.md").unlink()
    assert "No file is in the folder: 3 of the 3 documents" in load(folder, "--sync").stderr
    assert load(folder, "--sync", "--yes").exit_code == Exit.OK
    assert collection.sent == ["-a.md", "-b.md", "-left.md"]


def test_a_dry_run_sends_nothing_and_asks_nothing(folder: Path, collection: Collection) -> None:
    (folder / "film.mp4").write_text("film")
    told = json.loads(load(folder, "--sync", "--dry-run", "--json").stdout)
    assert told["would_send"] == ["default/a.md", "default/b.md"]
    assert (told["would_delete"], told["stay"]) == (["left.md"], ["posted.md"])
    assert [each["reason"] for each in told["refused"]] == ["unknown_media_type"]
    assert "would be deleted: 1\n  left.md\n" in load(folder, "--sync", "--dry-run").stdout
    assert "would be deleted: 0\n" in load(folder, "--dry-run").stdout
    assert collection.sent == []


def test_document_that_is_ignored_now_is_deleted_and_named(folder: Path, collection: Collection) -> None:
    (folder / ".gitignore").write_text("b.*\n")
    (folder / "node_modules").mkdir()
    collection.held |= dict.fromkeys(("node_modules/x/README.md", "c.md", "d.md"), collection.held["a.md"])
    (folder / "c.md").write_text("# Words")
    (folder / "d.md").write_text("# Words")
    rehearsed = load(folder, "--sync", "--dry-run", "--yes", "--json")
    told = json.loads(rehearsed.stdout)
    assert told["would_delete"] == ["b.md", "left.md", "node_modules/x/README.md"]
    assert told["ignored"] == {"b.md": "gitignore", "node_modules/x/README.md": "dependencies"}
    assert told["left_out"]["gitignore"] == [str(folder / "b.md")]
    said = load(folder, "--sync", "--dry-run", "--yes").stdout
    assert "would be deleted: 3\n  b.md (left out now, by .gitignore)\n  left.md\n" in said
    assert collection.sent == []
    done = load(folder, "--sync", "--yes", "--json")
    assert collection.sent == ["+a.md", "+c.md", "+d.md", "-b.md", "-left.md", "-node_modules/x/README.md"]
    assert "Left the folder, to be deleted (1 of 6): left.md." in done.stderr
    assert (
        "Left out now, to be deleted (2 of 6): b.md (by .gitignore), node_modules/x/README.md (of dependencies)."
        in done.stderr
    )
    assert json.loads(done.stdout)["left_out"]["gitignore"] == [str(folder / "b.md")]


def test_rule_that_ignores_most_deletes_nothing_unasked(folder: Path, collection: Collection) -> None:
    (folder / ".thalwegignore").write_text("*\n")
    done = load(folder, "--sync")
    assert (done.exit_code, collection.sent) == (Exit.USAGE, [])
    assert "Left out now, to be deleted (2 of 3): a.md (by .thalwegignore), b.md (by .thalwegignore)." in done.stderr
    assert "No file of the folder is loaded now: 3 of the 3 documents" in done.stderr
    assert load(folder, "--sync", "--no-ignore", "--yes").exit_code == Exit.OK
    assert collection.sent == ["+a.md", "+b.md", "-left.md"]


def test_unreadable_ignore_file_stops_a_sync_before_anything(folder: Path, collection: Collection) -> None:
    (folder / ".gitignore").write_bytes("*.log\n".encode("utf-16"))
    done = load(folder, "--sync", "--yes")
    assert (done.exit_code, collection.sent) == (Exit.FAILED, [])
    assert "not text in UTF-8" in done.stderr


@pytest.mark.parametrize(
    ("prepare", "options", "code"),
    [
        (lambda _: None, (), Exit.OK),
        (lambda _: None, ("--sync",), Exit.USAGE),
        (lambda _: None, ("--sync", "--yes"), Exit.OK),
        (lambda folder: (folder / "film.mp4").write_text("film"), (), Exit.FAILED),
        (lambda folder: (folder / "film.mp4").write_text("film"), ("--sync", "--yes"), Exit.FAILED),
        (lambda folder: (folder / "lines.jsonl").write_text("{}\n"), (), Exit.FAILED),
        (lambda folder: (folder / ".gitignore").write_bytes(b"\0"), (), Exit.FAILED),
        (lambda folder: (folder / ".gitignore").write_bytes(b"\0"), ("--sync", "--yes"), Exit.FAILED),
        (lambda folder: (folder / "a.md").unlink(), ("--sync",), Exit.USAGE),
        (lambda _: None, ("--include", "*.zzz"), Exit.USAGE),
        (lambda folder: (folder / ".gitignore").write_text("*"), (), Exit.USAGE),
        (lambda _: None, ("--charset", "klingon"), Exit.USAGE),
        (lambda _: None, ("--collection", ""), Exit.USAGE),
        (lambda folder: [each.unlink() for each in folder.iterdir()], ("--sync", "--yes"), Exit.OK),
    ],
)
def test_dry_run_has_the_exit_code_of_the_run(
    prepare: Callable[[Path], object],
    options: tuple[str, ...],
    code: Exit,
    folder: Path,
    collection: Collection,
) -> None:
    prepare(folder)
    dry = load(folder, *options, "--dry-run")
    assert (dry.exit_code, collection.sent) == (code, [])
    assert load(folder, *options).exit_code == code


def test_dry_run_at_a_terminal_asks_nothing(
    folder: Path, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("schemas.consent.is_interactive", lambda: True)
    dry = load(folder, "--sync", "--dry-run")
    assert (dry.exit_code, dry.stderr, collection.sent) == (Exit.OK, "", [])
    (folder / "a.md").unlink()
    dry = load(folder, "--sync", "--dry-run")
    assert (dry.exit_code, "Most of the folder's files are gone: 2 of the 3" in dry.stderr) == (Exit.USAGE, True)


def test_a_file_that_is_there_but_refused_keeps_its_document(folder: Path, collection: Collection) -> None:
    (folder / "left.md").write_text("")
    done = load(folder, "--sync", "--yes")
    assert collection.sent == ["+a.md", "+b.md"]
    assert "left.md: The file is empty." in done.stdout
    assert done.exit_code == Exit.FAILED


def test_a_deleted_file_named_below_the_root_is_a_delete_with_sync_and_a_refusal_without(
    folder: Path, collection: Collection
) -> None:
    mark = Selection(marked=True).mark_of(folder)
    assert collection.held["left.md"] == mark
    named = (folder / "a.md", folder / "left.md", folder / "never.md")
    done = load("--root", folder, *named)
    assert collection.sent == ["+a.md"]
    assert done.exit_code == Exit.FAILED
    assert "refused: 2 missing" in done.stdout
    assert "left.md: There is no such file; with --sync, its document is deleted." in done.stdout
    collection.sent.clear()
    assert load("--root", folder, "--sync", "--yes", *named).exit_code == Exit.OK
    assert collection.sent == ["+a.md", "-left.md"]


def test_a_root_or_a_folder_that_is_not_there_is_refused(folder: Path, collection: Collection) -> None:
    done = load("--root", folder / "nowhere", folder)
    assert (done.exit_code, "is not a folder" in done.stderr) == (Exit.USAGE, True)
    done = load(folder / "nowhere", "--sync", "--yes")
    assert (done.exit_code, "There is no file or folder" in done.stderr) == (Exit.FAILED, True)
    for path in ("-", folder / "a.md"):
        assert load(path, "--sync", "--yes").exit_code == Exit.USAGE
        assert load(path, "--watch").exit_code == Exit.USAGE
    assert load(folder, "--source", " ").exit_code == Exit.USAGE
    assert collection.sent == []


def test_an_address_needs_the_command_itself(folder: Path) -> None:
    done = load(folder, "--url", "http://127.0.0.1:1")
    assert (done.exit_code, "This needs the command 'thalweg' itself" in done.stderr) == (Exit.USAGE, True)
