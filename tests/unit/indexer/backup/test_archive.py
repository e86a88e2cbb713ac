"""Backups written, read again, cut and damaged: whatever is not whole is refused with a sentence."""

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from indexer.backup import archive
from indexer.backup.archive import BackupFile, BackupManifest, copy_files, open_backup, write_backup
from indexer.errors import DamagedStore
from indexer.integrity.files import file_checksum
from schemas.errors import Failure, WrongSetting

NAMES = ("backup", "backup.tar", "backup.tar.gz", "backup.tar.zst")
FILES = {
    "generations/g0001-aaaaaa/manifest.json": b"{}",
    "generations/g0001-aaaaaa/lance/chunks.lance/data/one.lance": os.urandom(300_000),
    "generations/g0001-aaaaaa/lance/chunks.lance/data/empty.lance": b"",
}


def ignore(_bytes: int) -> None:
    """Progress that nobody looks at."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "root"


def manifest_of(root: Path, **changes: object) -> BackupManifest:
    files = {name: BackupFile(len(content), file_checksum(root / name)) for name, content in FILES.items()}
    manifest = BackupManifest(
        format=1,
        version="0.1.0",
        made_at_ms=1,
        generation="g0001-aaaaaa",
        model="hashing",
        log=None,
        positions={0: 17, 1: -1},
        graph_position=3,
        documents=2,
        files=files,
    )
    return msgspec.structs.replace(manifest, **changes).seal()


def verified(source: Path) -> BackupManifest:
    with open_backup(source) as backup:
        copy_files(backup, None, ignore)
        return backup.manifest


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_comes_back(name: str, root: Path, tmp_path: Path) -> None:
    done = []
    write_backup(root, manifest_of(root), tmp_path / name, done.append)
    assert sum(done) == sum(map(len, FILES.values()))
    assert verified(tmp_path / name) == manifest_of(root)
    with open_backup(tmp_path / name) as backup:
        copy_files(backup, tmp_path / "copy", ignore)
    assert {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*") if path.is_file()} == {
        *FILES
    }
    assert all((tmp_path / "copy" / file).read_bytes() == content for file, content in FILES.items())


@pytest.mark.parametrize("name", NAMES[1:])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_an_archive_that_was_cut_is_refused(name: str, share: float, root: Path, tmp_path: Path) -> None:
    write_backup(root, manifest_of(root), tmp_path / name, ignore)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: min(int(share * len(content)), len(content) - 1)])
    with pytest.raises(Failure, match=r"is cut or damaged|was not finished"):
        verified(tmp_path / name)


@pytest.mark.parametrize("name", NAMES[1:])
def test_an_archive_with_a_flipped_byte_is_refused(name: str, root: Path, tmp_path: Path) -> None:
    write_backup(root, manifest_of(root), tmp_path / name, ignore)
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DamagedStore, match="is cut or damaged"):
        verified(tmp_path / name)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("file", "damage", "says"),
    [
        ("lance/chunks.lance/data/one.lance", flip, "does not match its checksum"),
        ("lance/chunks.lance/data/one.lance", Path.unlink, "is missing"),
        ("lance/chunks.lance/data/empty.lance", Path.unlink, "is missing"),
    ],
)
def test_a_damaged_file_of_a_folder_is_named(
    file: str, damage: Callable[[Path], None], says: str, root: Path, tmp_path: Path
) -> None:
    write_backup(root, manifest_of(root), tmp_path / "backup", ignore)
    damage(tmp_path / "backup" / "generations" / "g0001-aaaaaa" / file)
    with pytest.raises(DamagedStore, match=f"{file} {says}"):
        verified(tmp_path / "backup")


def test_a_changed_manifest_is_refused(root: Path, tmp_path: Path) -> None:
    write_backup(root, manifest_of(root), tmp_path / "backup", ignore)
    path = tmp_path / "backup" / archive.MANIFEST
    path.write_bytes(path.read_bytes().replace(b'"graph_position":3', b'"graph_position":4'))
    with pytest.raises(DamagedStore, match="is not what was written"):
        verified(tmp_path / "backup")


def test_a_backup_of_a_newer_version_is_refused(root: Path, tmp_path: Path) -> None:
    write_backup(root, manifest_of(root, format=2, version="3.1"), tmp_path / "backup.tar", ignore)
    with pytest.raises(WrongSetting, match=r"made by Thalweg 3\.1, in a newer format"):
        verified(tmp_path / "backup.tar")


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "generations/../../evil", "CURRENT"])
def test_a_name_that_leads_elsewhere_is_refused(name: str, root: Path, tmp_path: Path) -> None:
    manifest = manifest_of(root, files={name: BackupFile(1, "0" * 64)})
    with tarfile.open(tmp_path / "backup.tar", "w") as made:
        for each, content in ((archive.MANIFEST, msgspec.json.encode(manifest)), (name, b"x")):
            entry = tarfile.TarInfo(each)
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    with pytest.raises(DamagedStore, match="is not what was written"):
        verified(tmp_path / "backup.tar")


def test_what_is_no_backup_is_refused(root: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "other.tar", "w") as other:
        other.add(root, "root")
    for path, says in (
        (root, "is not a backup, or one that was not finished"),
        (tmp_path / "other.tar", "is not a backup, or one that was not finished"),
        (tmp_path / "nothing.tar", "There is no backup"),
        (root / "generations" / "g0001-aaaaaa" / "manifest.json", "is not a backup: that is a folder, or an archive"),
    ):
        with pytest.raises(WrongSetting, match=says):
            verified(path)


@pytest.mark.parametrize("name", NAMES)
def test_damage_at_the_source_leaves_no_backup(name: str, root: Path, tmp_path: Path) -> None:
    manifest = manifest_of(root)
    flip(root / "generations/g0001-aaaaaa/lance/chunks.lance/data/one.lance")
    with pytest.raises(DamagedStore, match=r"Nothing was backed up: .*one\.lance does not match"):
        write_backup(root, manifest, tmp_path / name, ignore)
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_a_target_that_cannot_be_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "there.tar").touch()
    for name, says in (
        ("there.tar", "exists already"),
        ("backup.zip", "a backup is a folder, or an archive whose name ends with"),
        ("backup.tar.xz", "a backup is a folder, or an archive whose name ends with"),
        ("nowhere/backup.tar", "There is no folder"),
    ):
        with pytest.raises(WrongSetting, match=says):
            write_backup(root, manifest_of(root), tmp_path / name, ignore)


def test_too_little_room_is_told_before_anything_is_written(root: Path, tmp_path: Path) -> None:
    files = {"generations/g0001-aaaaaa/huge": BackupFile(2**60, "0" * 64)}
    with pytest.raises(Failure, match="MiB are free on the disk"):
        write_backup(root, manifest_of(root, files=files), tmp_path / "backup", ignore)
    assert [path.name for path in tmp_path.iterdir()] == ["root"]
