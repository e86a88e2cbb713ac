"""The file of checksums: every line is its own witness, and half a line is none."""

from pathlib import Path

import pytest

from indexer.generation_folders import Generation
from indexer.integrity.files import CHECKSUMS, ChecksumRecorder, checksum_line, damaged_tables, read_checksums


def put(lance_dir: Path, name: str, content: bytes, version: int) -> None:
    """A file of the table `rivers`, and then the manifest of the version that has it, as Lance writes them."""
    for path, held in ((f"data/{name}", content), (f"_versions/{2**64 - 1 - version}.manifest", name.encode())):
        file = lance_dir / "rivers.lance" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(held)


@pytest.fixture
def lance_dir(tmp_path: Path) -> Path:
    folder = Generation(tmp_path, "g0001").lance_dir
    folder.mkdir(parents=True)
    return folder


def damage(lance_dir: Path) -> list[str]:
    generation = Generation(lance_dir.parents[2], "g0001")
    return [str(each) for step in damaged_tables(generation) for each in step]


def test_each_new_file_is_recorded_once_and_a_temporary_one_never(lance_dir: Path) -> None:
    recorder = ChecksumRecorder(lance_dir)
    put(lance_dir, "a.lance", b"one", 1)
    put(lance_dir, ".tmpXYZ", b"half", 1)
    assert (recorder.record(), recorder.record()) == (2, 0)
    put(lance_dir, "b.lance", b"two", 2)
    assert recorder.record() == 2
    assert len(read_checksums(lance_dir).by_path) == 4
    assert ChecksumRecorder(lance_dir).record() == 0


def test_a_changed_byte_of_any_recorded_file_is_found(lance_dir: Path) -> None:
    put(lance_dir, "a.lance", b"one", 1)
    ChecksumRecorder(lance_dir).record()
    assert damage(lance_dir) == []
    (lance_dir / "rivers.lance/data/a.lance").write_bytes(b"onf")
    assert damage(lance_dir) == ["lance/rivers.lance/data/a.lance does not match its checksum"]


def test_what_changed_is_not_recorded_again_by_another_writer(lance_dir: Path) -> None:
    put(lance_dir, "a.lance", b"one", 1)
    ChecksumRecorder(lance_dir).record()
    (lance_dir / "rivers.lance/data/a.lance").write_bytes(b"onf")
    ChecksumRecorder(lance_dir).record()
    assert damage(lance_dir) == ["lance/rivers.lance/data/a.lance does not match its checksum"]


def test_files_that_maintenance_removed_are_no_damage(lance_dir: Path) -> None:
    put(lance_dir, "a.lance", b"one", 1)
    recorder = ChecksumRecorder(lance_dir)
    recorder.record()
    put(lance_dir, "b.lance", b"two", 2)
    (lance_dir / "rivers.lance/data/a.lance").unlink()
    (lance_dir / f"rivers.lance/_versions/{2**64 - 2}.manifest").unlink()
    assert damage(lance_dir) == []  # before and after the newer version is recorded
    recorder.record()
    assert damage(lance_dir) == []


@pytest.mark.parametrize("at", [3, 70, -3])
def test_a_changed_byte_of_the_checksums_themselves_is_found(lance_dir: Path, at: int) -> None:
    put(lance_dir, "a.lance", b"one", 1)
    ChecksumRecorder(lance_dir).record()
    content = bytearray((lance_dir / CHECKSUMS).read_bytes())
    content[at] ^= 1
    (lance_dir / CHECKSUMS).write_bytes(content)
    assert any("lance/checksums has 1 lines" in each for each in damage(lance_dir))


def test_half_a_line_is_one_that_is_being_written_and_the_next_writer_repairs_it(lance_dir: Path) -> None:
    put(lance_dir, "a.lance", b"one", 1)
    ChecksumRecorder(lance_dir).record()
    with (lance_dir / CHECKSUMS).open("a") as file:
        file.write(checksum_line("rivers.lance/data/b.lance", "0" * 64)[:40])
    assert damage(lance_dir) == []
    recorder = ChecksumRecorder(lance_dir)
    put(lance_dir, "c.lance", b"three", 2)
    recorder.record()
    assert damage(lance_dir) == []
    assert len(read_checksums(lance_dir).by_path) == 4
