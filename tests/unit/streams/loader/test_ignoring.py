"""What of a folder is left out, and why; patterns of ignore files mean what they mean to git."""

import errno
import os
from pathlib import Path

import pytest

from streams.loader.folders import Found, Refused, Selection, find_files
from streams.loader.ignoring import LeftOut, Rules, by_reason, describe_left_out

NO_IGNORE = Selection(rules=Rules(ignore=False))
ALL = Selection(rules=Rules(ignore=False, hidden=True))


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("# Words")
    return folder


def ignoring(folder: Path, patterns: str, name: str = ".gitignore") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(patterns)


def taken(path: Path, selection: Selection | None = None) -> list[str]:
    return [item.document_id for item in find_files(str(path), selection or Selection()) if isinstance(item, Found)]


def left_out(path: Path, selection: Selection | None = None) -> dict[str, str]:
    """{id: reason}, but for the ignore files themselves."""
    items = find_files(str(path), selection or Selection())
    return {
        item.document_id: item.reason
        for item in items
        if isinstance(item, LeftOut) and not item.document_id.endswith("ignore")
    }


def refusal(path: Path) -> Refused:
    [refused] = [item for item in find_files(str(path), Selection()) if isinstance(item, Refused)]
    return refused


def test_what_nobody_means_is_left_out_with_its_reason(tmp_path: Path) -> None:
    write(tmp_path, "README.md", "node_modules/x/README.md", "sub/node_modules/y/README.md", ".venv/a.md", "venv/a.md")
    write(tmp_path, ".git/a.md", "__pycache__/a.md", ".tox/a.md", ".next/a.md", "x.egg-info/a.md")
    write(tmp_path, "package-lock.json", "sub/yarn.lock", "poetry.lock", "Cargo.lock", "uv.lock", "pnpm-lock.yaml")
    write(tmp_path, "~$x.docx", "a.md~", ".a.md.swp", "#a.md#", ".#a.md", "a.tmp", "a.part", "a.crdownload")
    write(tmp_path, ".DS_Store", "Thumbs.db", ".env", ".github/a.md")
    assert taken(tmp_path) == ["README.md"]
    assert left_out(tmp_path) == {
        **dict.fromkeys(("node_modules", "sub/node_modules", ".venv", "venv"), "dependencies"),
        ".git": "version_control",
        **dict.fromkeys(("__pycache__", ".tox", ".next", "x.egg-info"), "build"),
        **dict.fromkeys(
            ("package-lock.json", "sub/yarn.lock", "poetry.lock", "Cargo.lock", "uv.lock", "pnpm-lock.yaml"),
            "lock_file",
        ),
        **dict.fromkeys(
            ("~$x.docx", "a.md~", ".a.md.swp", "#a.md#", ".#a.md", "a.tmp", "a.part", "a.crdownload"), "temporary"
        ),
        ".DS_Store": "temporary",
        "Thumbs.db": "temporary",
        ".env": "hidden",
        ".github": "hidden",
    }
    assert taken(tmp_path, Selection(rules=Rules(hidden=True))) == [".env", ".github/a.md", "README.md"]
    assert {".env", ".git/a.md", "node_modules/x/README.md", "~$x.docx"}.isdisjoint(taken(tmp_path))
    assert {"node_modules/x/README.md", "~$x.docx"} <= set(taken(tmp_path, NO_IGNORE))
    assert {".env", ".git/a.md"}.isdisjoint(taken(tmp_path, NO_IGNORE))
    assert len(taken(tmp_path, ALL)) == 28


def test_folders_with_everyday_names_are_left_out_by_evidence(tmp_path: Path) -> None:
    for name in ("build", "dist", "target", "env", "vendor", "C#"):
        write(tmp_path, f"texts/{name}/a.md", f"project/{name}/a.md")
    write(tmp_path, "project/pyproject.toml", "project/go.mod", "project/env/pyvenv.cfg", "cache/a.md", "tagged/a.md")
    (tmp_path / "tagged" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# made")
    (tmp_path / "cache" / "CACHEDIR.TAG").write_text("Something else")
    assert left_out(tmp_path) == {
        "project/build": "build",
        "project/dist": "build",
        "project/target": "build",
        "project/env": "dependencies",
        "project/vendor": "dependencies",
        "tagged": "build",
    }
    assert {f"texts/{name}/a.md" for name in ("build", "dist", "target", "env", "vendor", "C#")} <= set(taken(tmp_path))


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ("*.log", ["a.md", "docs/a.md", "docs/deep/a.md"]),
        ("*.log\n!keep.log", ["a.md", "docs/a.md", "docs/deep/a.md", "docs/keep.log"]),
        ("/a.md\n*.log", ["docs/a.md", "docs/deep/a.md"]),
        ("docs/", ["a.md"]),
        ("a.md/\n*.log", ["a.md", "docs/a.md", "docs/deep/a.md"]),
        ("docs/*\n!docs/a.md", ["a.md", "docs/a.md"]),
        ("docs/\n!docs/a.md", ["a.md"]),
        ("docs/**\n!docs/a.md", ["a.md", "docs/a.md"]),
        ("docs/**/a.md\n*.log", ["a.md"]),
        ("**/deep", ["a.md", "docs/a.md", "docs/keep.log", "docs/x.log"]),
        ("docs/**/\n*.log", ["a.md", "docs/a.md"]),
        ("*\n!*/\n!a.md", ["a.md", "docs/a.md", "docs/deep/a.md"]),
        ("# a.md\n\n   \n\\a.md\n*.log  \r\n", []),
        ("!\n[a-\n*.log\n[[:alpha:]].md", []),
        ("\ufeff*.log\r\n", ["a.md", "docs/a.md", "docs/deep/a.md"]),
    ],
)
def test_patterns_mean_what_they_mean_to_git(patterns: str, expected: list[str], tmp_path: Path) -> None:
    write(tmp_path, "a.md", "docs/a.md", "docs/deep/a.md", "docs/keep.log", "docs/x.log")
    (tmp_path / ".gitignore").write_bytes(patterns.encode())
    assert taken(tmp_path) == expected


def test_nearest_ignore_file_wins_and_thalwegignore_over_all(tmp_path: Path) -> None:
    write(tmp_path, "a.log", "in/a.log", "in/b.log", "in/deep/a.log", "other/a.log")
    ignoring(tmp_path, "*.log\nother/")
    ignoring(tmp_path / "in", "!a.log")
    assert taken(tmp_path) == ["in/a.log", "in/deep/a.log"]
    ignoring(tmp_path, "!other/\n!/other/*\n/in/deep/\n", ".thalwegignore")
    assert taken(tmp_path) == ["in/a.log", "other/a.log"]
    assert left_out(tmp_path)["in/deep"] == "thalwegignore"


def test_only_plain_names_in_thalwegignore_bring_back_the_unmeant(tmp_path: Path) -> None:
    write(tmp_path, "build/a.md", "package.json", "node_modules/x/a.md", ".github/a.md", "package-lock.json", "b.md~")
    ignoring(tmp_path, "!build/\n!.github\n!package-lock.json\n")
    assert taken(tmp_path) == ["package.json"]
    ignoring(tmp_path, "*\n!*/\n!*.md\n!*.json\n", ".thalwegignore")
    assert taken(tmp_path) == ["package.json"]
    ignoring(tmp_path, "!build/\n!.github\n!package-lock.json\n", ".thalwegignore")
    assert taken(tmp_path) == [".github/a.md", "build/a.md", "package-lock.json", "package.json"]


def test_ignore_files_above_count_up_to_the_repository(tmp_path: Path) -> None:
    write(tmp_path, "repo/docs/a.md", "repo/docs/draft.md", "repo/inner/draft.md", "repo/docs/old/a.md")
    ignoring(tmp_path, "a.md")
    ignoring(tmp_path / "repo", "draft.md\n/docs/old/")
    assert taken(tmp_path / "repo" / "docs") == ["a.md", "draft.md", "old/a.md"]
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "repo" / "inner" / ".git").write_text("gitdir: ../.git/modules/inner\n")
    assert taken(tmp_path / "repo" / "docs") == ["a.md"]
    assert taken(tmp_path / "repo" / "docs" / "old") == ["a.md"]
    assert taken(tmp_path / "repo") == ["docs/a.md", "inner/draft.md"]


def test_file_that_is_named_is_taken_whatever_the_rules(tmp_path: Path) -> None:
    write(tmp_path, "package-lock.json", "node_modules/x/a.md", ".hidden.md", "a.log")
    ignoring(tmp_path, "*.log")
    for name in ("package-lock.json", "node_modules/x/a.md", ".hidden.md", "a.log"):
        assert taken(tmp_path / name) == [name.rpartition("/")[2]]
    assert taken(tmp_path / "node_modules") == ["x/a.md"]


def test_below_a_root_a_name_is_taken_as_with_the_others(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "package-lock.json", "node_modules/x/a.md", "docs/a.md", "docs/b.log")
    ignoring(tmp_path, "*.log")
    selection = Selection(root=tmp_path)
    assert taken(tmp_path / "a.md", selection) == ["a.md"]
    assert taken(tmp_path / "docs", selection) == ["docs/a.md"]
    for name, id_, reason in (
        ("package-lock.json", "package-lock.json", "lock_file"),
        ("docs/b.log", "docs/b.log", "gitignore"),
        ("docs/never.log", "docs/never.log", "gitignore"),
        ("node_modules/x/a.md", "node_modules/x/a.md", "dependencies"),
        ("node_modules", "node_modules", "dependencies"),
    ):
        assert (taken(tmp_path / name, selection), left_out(tmp_path / name, selection)) == ([], {id_: reason})
    everything = Selection(root=tmp_path, rules=Rules(ignore=False))
    assert taken(tmp_path / "node_modules" / "x" / "a.md", everything) == ["node_modules/x/a.md"]


def test_globs_are_not_counted_as_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.txt", "yarn.lock", "sub/c.txt~")
    assert left_out(tmp_path, Selection(include=["*.md"])) == {}


def test_links_to_folders_are_files_to_patterns(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "a.md")
    folder = write(tmp_path / "docs", "a.md")
    (folder / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    ignoring(folder, "link/")
    assert (taken(folder), left_out(folder)) == (["a.md"], {})
    ignoring(folder, "link")
    assert left_out(folder) == {"link": "gitignore"}


def test_names_that_are_not_utf_8_are_matched_by_their_bytes(tmp_path: Path) -> None:
    for name in (b"caf\xe9.md", b"th\xe9.md"):
        (tmp_path / os.fsdecode(name)).write_text("# Words")
    (tmp_path / ".gitignore").write_bytes(b"caf\xe9.md\n")
    assert taken(tmp_path) == [os.fsdecode(b"th\xe9.md")]


def test_what_is_not_a_file_of_patterns_leaves_nothing_out(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "one/.gitignore/a.md", "one/b.md", "two/c.md", "three/d.md")
    (tmp_path / "two" / ".gitignore").symlink_to("nowhere")
    (tmp_path / "three" / ".gitignore").symlink_to(".gitignore")
    os.mkfifo(tmp_path / ".gitignore")
    assert taken(tmp_path) == ["a.md", "one/b.md", "three/d.md", "two/c.md"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"*.log\n" * 200_000, "The file is over 262,144 bytes."),
        ("*.log\n".encode("utf-16"), "The file is not text in UTF-8; save it as such."),
    ],
)
def test_folder_is_refused_while_its_ignore_file_is_unreadable(content: bytes, said: str, tmp_path: Path) -> None:
    write(tmp_path, "a.md", "sub/b.md", "sub/deep/c.md")
    (tmp_path / "sub" / ".gitignore").write_bytes(content)
    assert taken(tmp_path) == ["a.md"]
    assert refusal(tmp_path) == Refused(
        str(tmp_path / "sub" / ".gitignore"),
        "unreadable",
        f"{said} So what it leaves out is not known, and nothing of its folder is taken.",
    )
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub" / ".gitignore").rename(tmp_path / ".thalwegignore")
    assert taken(tmp_path / "sub") == []
    assert refusal(tmp_path / "sub").origin == str(tmp_path / ".thalwegignore")


def test_ignore_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.md", ".gitignore")
    opened = Path.open

    def refusing(path: Path, *arguments: object) -> object:
        if path.name == ".gitignore":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *arguments)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refusing)
    assert taken(tmp_path) == []
    assert "The file cannot be read: Permission denied." in refusal(tmp_path).message


def test_pattern_of_many_wildcards_takes_no_time(tmp_path: Path) -> None:
    write(tmp_path, "a" * 200, "x" + "a" * 200 + "b")
    ignoring(tmp_path, "*a" * 40 + "b\n")
    assert taken(tmp_path) == ["a" * 200]


def test_what_is_left_out_is_described_by_reason(tmp_path: Path) -> None:
    write(tmp_path, "a.md", ".env", "yarn.lock", "1.tmp", "2.tmp", "3.tmp", "4.tmp")
    items = [item for item in find_files(str(tmp_path), Selection()) if isinstance(item, LeftOut)]
    described = describe_left_out(by_reason([*items, *items])).replace(f"{tmp_path}/", "")
    assert described == (
        "left out: 1 lock files (yarn.lock), 4 temporary (1.tmp, 2.tmp, 3.tmp, …), 1 hidden (.env); to load them: "
        "--no-ignore --hidden"
    )
