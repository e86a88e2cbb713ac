"""How a load ends: interrupted, or with deletes that met nothing."""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from schemas.errors import Failure, WrongSetting
from schemas.progress_bars import progress_bars
from schemas.receipts import NOTHING_DELETED, Receipt, encode_receipt
from schemas.refusals import EXPLANATIONS
from schemas.settings import StorageSettings
from schemas.unknown_fields import note_unknown
from streams.cli.load import app
from streams.loader.folders import Refused, Selection
from streams.loader.loader import Loaded, Loader, describe_unknown, suggest_collection
from streams.loader.publishing import ABSENT, Published, follow
from streams.loader.sources import Record
from streams.settings import WorkerSettings


class InterruptedLoader(Loader):
    """Somebody presses Ctrl-C once the first record is in the log."""

    def _send(self, records: Iterable[Record], refused: list[Refused], published: Published) -> Loaded:
        for _ in records:
            published.records += 1
            raise KeyboardInterrupt
        raise AssertionError("there was nothing to send")


class QuietLoader(Loader):
    """Counts what it is to send."""

    def _send(self, records: Iterable[Record], refused: list[Refused], published: Published) -> Loaded:
        return Loaded(len(list(records)), "", {}, refused, 0.0)


def test_an_interrupted_load_says_how_to_go_on(tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("# Words")
    settings = WorkerSettings(storage=StorageSettings(data_dir=tmp_path / "data"))
    loader = InterruptedLoader(settings, "127.0.0.1:1", wait=True, timeout_seconds=1, quiet=True)
    with pytest.raises(Failure, match=r"at least 1 records are in the log\. To go on, do the same again"):
        loader.load([str(tmp_path)], Selection())


def test_folders_in_which_nothing_is_selected_are_refused_before_kafka_is_asked(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Words")
    (tmp_path / ".hidden.md").write_text("# Words")
    loader = InterruptedLoader(WorkerSettings(), "127.0.0.1:1", wait=True, timeout_seconds=1, quiet=True)
    with pytest.raises(WrongSetting, match=r"Nothing to load: no file in .* matches with --include '\*\.zzz'\."):
        loader.load([str(tmp_path)], Selection(include=["*.zzz"]))
    left_out = r"matches with --exclude 'a\.\*'\. .* Left out: 1 hidden \(.*\); to load them: --hidden\."
    with pytest.raises(WrongSetting, match=left_out):
        loader.load([str(tmp_path)], Selection(exclude=["a.*"]))


def test_an_input_that_holds_no_line_today_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "changed.jsonl").write_text("")
    loader = QuietLoader(WorkerSettings(), "127.0.0.1:1", wait=True, timeout_seconds=1, quiet=True)
    for path in (tmp_path, tmp_path / "changed.jsonl"):
        assert loader.load([str(path)], Selection()).published == 0


def test_the_record_that_is_looked_at_first_is_sent_too(tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("# Words")
    loader = QuietLoader(WorkerSettings(), "127.0.0.1:1", wait=True, timeout_seconds=1, quiet=True)
    assert loader.load([str(tmp_path)], Selection()).published == 2


def test_a_name_that_no_collection_can_have_is_said_once_and_not_for_each_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Words")
    loader = InterruptedLoader(WorkerSettings(), "127.0.0.1:1", wait=True, timeout_seconds=1, quiet=True)
    with pytest.raises(WrongSetting, match="holds a slash"):
        loader.load([str(tmp_path)], Selection("a/b"))


def test_a_delete_of_what_is_not_there_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Loaded(2, "0:8", {"deleted": 1, "not there": 1}, [], 0.1, ["a/misspelt.md"]).show(as_json=False)
    assert capsys.readouterr().out == "2 published: 1 deleted, 1 not there (a/misspelt.md) in 0.1 s\ntoken 0:8\n"
    Loaded(22, "0:30", {"not there": 22}, [], 0.1, [f"a/{number}" for number in range(22)]).show(as_json=False)
    assert "a/19, and 2 more, which --json lists) in 0.1 s" in capsys.readouterr().out


def test_what_was_refused_is_told_by_reason_with_what_to_do_about_each(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = ("malformed", "unreadable", "malformed")
    refused = [Refused(f"{number}.pdf", reason, "It is torn.") for number, reason in enumerate(reasons)]
    Loaded(0, "", {}, refused, 0.1).show(as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:5] == [
        "refused: 2 malformed, 1 unreadable",
        "  0.pdf: It is torn.",
        "  1.pdf: It is torn.",
        "  2.pdf: It is torn.",
    ]
    title, advice = EXPLANATIONS["malformed"]
    assert [line for line in lines if line.startswith(("malformed: ", "unreadable: "))] == [
        f"malformed: {title}. {advice}"
    ]


def test_what_was_indexed_and_not_read_as_it_was_meant_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    notes = {f"a/{number}": ["The front matter is not plain YAML."] for number in range(22)}
    Loaded(30, "0:8", {"indexed": 30}, [], 0.1, notes=notes).show(as_json=False)
    told = capsys.readouterr().out
    assert "indexed with warnings: 22\n  a/0: The front matter is not plain YAML.\n" in told
    assert "  … and 2 more (--json lists all)\n" in told
    Loaded(30, "0:8", {"indexed": 30}, [], 0.1, notes=notes).show(as_json=True)
    assert json.loads(capsys.readouterr().out)["notes"] == notes


class Receipts:
    """A consumer that has these receipts, all at once."""

    def __init__(self, *receipts: Receipt) -> None:
        self._receipts = receipts

    def poll(self, timeout_ms: int) -> dict[int, list[SimpleNamespace]]:
        return {0: [SimpleNamespace(value=encode_receipt(receipt)) for receipt in self._receipts]}


@pytest.mark.parametrize(
    ("collection", "absent", "typed"),
    [
        ("default", ["default/default/bees.md"], "--collection default bees.md"),
        ("default", ["default/x.md", "default/my notes/a/b c.md"], "--collection 'my notes' 'a/b c.md'"),
        ("notes", ["notes/notes/a.md", "notes/notes/b.md"], "--collection notes a.md b.md"),
    ],
)
def test_an_id_with_its_collection_before_it_that_is_not_there_is_told_how_to_type(
    collection: str, absent: list[str], typed: str
) -> None:
    hint = suggest_collection(collection, absent)
    assert hint is not None
    assert hint.endswith(f"type: thalweg delete {typed}")


def test_an_id_without_a_slash_that_is_not_there_was_not_meant_otherwise() -> None:
    assert suggest_collection("a", ["a/misspelt.md", "a/b/"]) is None
    assert suggest_collection("a", []) is None


def test_the_command_that_deletes_says_so_beside_what_it_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    def deletes(_loader: Loader, collection: str | None, ids: Sequence[str]) -> Loaded:
        assert collection is None
        return Loaded(1, "0:7", {ABSENT: 1}, [], 0.1, [f"default/{id_}" for id_ in ids])

    nobody = QuietLoader(WorkerSettings(), "127.0.0.1:1", wait=True, timeout_seconds=1, quiet=True)
    monkeypatch.setattr(Loader, "connect", lambda *_, **__: nobody)
    monkeypatch.setattr(Loader, "delete", deletes)
    told = CliRunner().invoke(app, ["delete", "notes/bees.md", "--json"])
    assert json.loads(told.stdout)["absent"] == ["default/notes/bees.md"]
    assert "type: thalweg delete --collection notes bees.md" in told.stderr
    assert CliRunner().invoke(app, ["delete", "bees.md", "--json"]).stderr == ""


def test_a_document_that_was_not_there_does_not_count_as_deleted() -> None:
    told: Any = {"outcome": "deleted", "partition": 0, "generation": "g0001"}
    receipts: Any = Receipts(
        Receipt(key="a/here.md", offset=0, **told),
        Receipt(key="a/misspelt.md", offset=1, message=NOTHING_DELETED, **told),
    )
    followed = follow(receipts, Published(records=2, first={0: 0}, reached={0: 1}))
    assert followed.outcomes == {"deleted": 1, "not there": 1}
    assert followed.absent == ["a/misspelt.md"]


def test_notes_are_kept_but_for_fields_that_are_counted() -> None:
    told: Any = {"outcome": "indexed", "partition": 0, "generation": "g0001"}
    receipts: Any = Receipts(
        Receipt(key="a/good.md", offset=0, **told),
        Receipt(key="a/odd.md", offset=1, notes=("It is odd.", note_unknown(["colour"])), **told),
        Receipt(key="a/extra.md", offset=2, notes=(note_unknown(["colour"]),), **told),
    )
    followed = follow(receipts, Published(records=3, first={0: 0}, reached={0: 2}))
    assert followed.noted == [("a/odd.md", ("It is odd.",))]


def test_bars_are_on_standard_error_with_what_is_done_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars(shown=True) as bar:
        published = bar("published")
        for _ in range(3):
            published.advance()
        published.set(3, 4)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "published" in shown.err
    assert "3/4" in shown.err


def test_bars_that_are_not_shown_import_nothing_to_show_them_with() -> None:
    program = (
        "import sys\n"
        "from schemas.progress_bars import progress_bars\n"
        "with progress_bars(shown=False) as bar:\n"
        "    bar('published').advance()\n"
        "sys.exit('rich.progress' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_fields_that_no_document_has_are_counted_by_name_and_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        {"id": "a", "content": "x", "collectoin": "n", "author": "Ada"},
        {"id": "b", "content": "x", "collectoin": "n", "deleted": False},
        {"id": "c", "content": "x"},
    ]
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, lines)))
    nobody = QuietLoader(WorkerSettings(), "127.0.0.1:1", wait=True, timeout_seconds=1, quiet=True)
    monkeypatch.setattr(Loader, "connect", lambda *_, **__: nobody)
    told = CliRunner().invoke(app, ["load", str(tmp_path), "--json"])
    loaded = json.loads(told.stdout)
    assert (told.exit_code, loaded["published"], loaded["refused"]) == (0, 3, [])
    assert loaded["unknown_fields"] == {"collectoin": 2, "author": 1}
    assert told.stderr == (
        "Left out, as no document has such fields: 'collectoin' in 2 (is 'collection' meant?), 'author' in 1. "
        "What describes a document goes under 'metadata'.\n"
    )
    rehearsed = CliRunner().invoke(app, ["load", str(tmp_path), "--json", "--dry-run"])
    assert (rehearsed.exit_code, rehearsed.stderr) == (0, told.stderr)
    assert json.loads(rehearsed.stdout)["unknown_fields"] == loaded["unknown_fields"]


def test_of_many_such_fields_the_commonest_are_shown() -> None:
    told = describe_unknown({f"f{at}": at for at in range(25)})
    assert "'f24' in 24, " in told
    assert "'f5' in 5 and 5 more. " in told
