"""How a load ends: interrupted, or with deletes that met nothing."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from schemas.exits import Failure, WrongSetting
from schemas.settings import StorageSettings
from streams.loading.loader import Loaded, Loader
from streams.loading.publishing import Published
from streams.loading.sources import Record, Refused, Selection
from streams.settings import WorkerSettings


class InterruptedLoader(Loader):
    """Somebody presses Ctrl-C once the first record is in the log."""

    async def _send(self, records: Iterable[Record], refused: list[Refused], published: Published) -> Loaded:
        for _ in records:
            published.records += 1
            raise KeyboardInterrupt
        raise AssertionError("there was nothing to send")


def test_an_interrupted_load_says_how_to_go_on(tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("# Words")
    settings = WorkerSettings(storage=StorageSettings(data_dir=tmp_path / "data"))
    loader = InterruptedLoader(settings, "127.0.0.1:1", wait=True, patience_seconds=1, quiet=True)
    with pytest.raises(Failure, match=r"at least 1 records are in the log\. To go on, do the same again"):
        loader.load([str(tmp_path)], Selection())


def test_a_name_that_no_collection_can_have_is_said_once_and_not_for_each_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Words")
    loader = InterruptedLoader(WorkerSettings(), "127.0.0.1:1", wait=True, patience_seconds=1, quiet=True)
    with pytest.raises(WrongSetting, match="holds a slash"):
        loader.load([str(tmp_path)], Selection("a/b"))


def test_a_delete_of_what_is_not_there_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Loaded(2, "0:8", {"deleted": 2}, [], 0.1, ["a/misspelt.md"]).show(as_json=False)
    shown = capsys.readouterr().out
    assert "2 published: 2 deleted" in shown
    assert "a/misspelt.md: there was no such document, so nothing was deleted" in shown
