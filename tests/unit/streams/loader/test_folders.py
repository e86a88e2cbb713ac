"""Which files of a folder are taken, their ids, and which documents have left it."""

import os
from pathlib import Path

import pytest

from indexer.extraction.metadata import label_text, metadata_statements
from schemas.errors import Failure, WrongSetting
from streams.loader.folders import Found, KnownDocument, Missing, Refused, Selection, SyncPlan, find_files, plan_sync


def ids(path: Path | str, selection: Selection | None = None) -> list[str]:
    return [item.document_id for item in find_files(str(path), selection or Selection()) if isinstance(item, Found)]


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}")
    return folder


def marked(folder: Path, **options: object) -> Selection:
    return Selection(marked=True, **options)  # type: ignore[arg-type]


def known(mark: str | None, *document_ids: str) -> list[KnownDocument]:
    return [KnownDocument(each, mark) for each in document_ids]


def test_hidden_and_temporary_files_are_left_out_and_the_others_come_in_order_of_their_paths(tmp_path: Path) -> None:
    write(
        tmp_path, "b.md", "a/z.md", "a.md", ".git/x.md", ".b.md.swp", "b.md~", "#b.md#", "b.md.tmp", "c.md.crdownload"
    )
    assert ids(tmp_path) == ["a/z.md", "a.md", "b.md"]


def test_links_that_lead_round_in_circles_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "sub/a.md")
    (tmp_path / "sub" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "link.md").symlink_to(tmp_path / "sub" / "a.md")
    (tmp_path / "self.md").symlink_to(tmp_path / "self.md")
    assert ids(tmp_path) == ["link.md", "sub/a.md"]


def test_ids_are_relative_to_the_root_of_folders_and_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "docs/a.md", "docs/sub/b.md", "README.md", ".hidden/c.md")
    monkeypatch.chdir(tmp_path)
    selection = Selection(root=Path())
    assert ids("docs", selection) == ["docs/a.md", "docs/sub/b.md"]
    assert ids("README.md", selection) == ["README.md"]
    assert ids(".", selection) == ["README.md", "docs/a.md", "docs/sub/b.md"]
    assert ids(".hidden/c.md", selection) == []
    assert ids(tmp_path / "docs" / "a.md", Selection(root=tmp_path / "docs")) == ["a.md"]
    assert list(find_files("docs/gone.md", selection)) == [Missing("docs/gone.md", "docs/gone.md")]


def test_what_lies_beside_the_root_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "docs2/b.md")
    [refused] = find_files(str(tmp_path / "docs2" / "b.md"), Selection(root=tmp_path / "docs"))
    assert isinstance(refused, Refused)
    assert refused.reason == "outside_root"


def test_a_base_uri_stands_before_the_path_below_the_root() -> None:
    selection = Selection(base_uri="https://x.org/tree", root=Path())
    assert selection.uri_of("docs/a b.md") == "https://x.org/tree/docs/a%20b.md"


def test_a_folders_mark_is_its_own_unless_it_is_named(tmp_path: Path) -> None:
    one, two = (marked(tmp_path).mark_of(tmp_path / name / "docs") for name in ("a", "b"))
    assert one != two
    assert one.startswith("folder:/docs-")
    assert marked(tmp_path, source="our docs").mark_of(tmp_path) == "folder:/our%20docs"


def test_a_mark_is_no_fact_and_no_search_word(tmp_path: Path) -> None:
    for source in (None, "our handbook", "Team Petrel"):
        metadata = {"loaded_from": marked(tmp_path, source=source).mark_of(tmp_path / "Handbook")}
        assert label_text(metadata) == ""
        assert list(metadata_statements("d", "A title", (), metadata, None)) == []
    assert list(metadata_statements("d", "A title", (), {"loaded_from": "Team Petrel"}, None))


def test_only_documents_with_the_folders_mark_and_without_a_file_go(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", "kept.md", "broken.xyz", "also.md")
    selection = marked(folder)
    mine = selection.mark_of(folder)
    plan = plan_sync(
        [str(folder)],
        selection,
        [
            *known(mine, "kept.md", "left.md", "broken.xyz"),
            *known("folder:/other-00000000", "others.md"),
            *known(None, "posted.md", "peps:8"),
        ],
    )
    assert plan == SyncPlan(gone=["left.md"], known=3, present=3, unmarked=["posted.md"])


def test_what_the_globs_leave_out_stays(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", "kept.md")
    selection = marked(folder, include=["*.md"], exclude=["drafts/*"])
    documents = known(selection.mark_of(folder), "kept.md", "left.md", "page.html", "drafts/a.md")
    assert plan_sync([str(folder)], selection, documents).gone == ["left.md"]


def test_below_a_root_only_what_is_named_is_compared(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "notes/b.md", "top.md")
    selection = marked(tmp_path, root=tmp_path)
    mine = selection.mark_of(tmp_path)
    documents = known(mine, "docs/a.md", "docs/left.md", "docs2/left.md", "notes/left.md", "top.md", "left.md")
    named = [str(tmp_path / name) for name in ("docs", "left.md", "top.md")]
    assert plan_sync(named, selection, documents).gone == ["docs/left.md", "left.md"]
    assert len(plan_sync([str(tmp_path)], selection, documents).gone) == 4


def test_a_mark_that_a_document_states_of_itself_is_none() -> None:
    metadata = {"loaded_from": "folder:/docs-00000000"}
    assert KnownDocument.of("a.md", metadata, ["loaded_from"]).mark is None
    assert KnownDocument.of("a.md", metadata, []).mark == "folder:/docs-00000000"
    assert KnownDocument.of("a.md", {"loaded_from": 7}, []).mark is None


def test_more_than_half_of_a_folder_is_not_deleted_without_being_told_so(tmp_path: Path) -> None:
    assert SyncPlan(["a", "b"], 4, 2, []).why_not() is None
    assert "Most of the folder's files are gone: 3 of the 4" in (SyncPlan(["a", "b", "c"], 4, 1, []).why_not() or "")
    assert "No file is in the folder: 4 of the 4" in (SyncPlan(["a", "b", "c", "d"], 4, 0, []).why_not() or "")
    assert SyncPlan([], 0, 0, []).why_not() is None


def test_a_folder_that_fails_while_it_is_listed_keeps_its_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path, "a.md", "shut/b.md")
    scandir = os.scandir

    def failing(path: str) -> object:
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", failing)
    selection = marked(folder)
    assert ids(folder) == ["a.md"]
    with pytest.raises(Failure, match=r"shut: The folder cannot be read: Permission denied\. What left the folder"):
        plan_sync([str(folder)], selection, known(selection.mark_of(folder), "a.md", "shut/b.md"))


@pytest.mark.parametrize(("path", "said"), [("-", "- is not a folder"), ("a.md", "is not a folder, and --sync")])
def test_what_is_no_folder_cannot_be_synced(
    path: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.md")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongSetting, match=said):
        plan_sync([path], Selection(marked=True), [])


def test_a_name_that_is_not_utf_8_has_an_id_all_the_same(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("# Words")
    assert ids(tmp_path) == ["caf\udce9.md"]
    selection = marked(tmp_path)
    assert plan_sync([str(tmp_path)], selection, known(selection.mark_of(tmp_path), "left.md")).gone == ["left.md"]
