"""The file of checksums: every line is its own witness, and half a line is none."""

from pathlib import Path

import pytest

from indexer.integrity.file_checksums import CHECKSUMS, damage_among, line_of, missing_or_broken, read_checksums
from indexer.write.file_checksums import ChecksumRecorder


def put(lance_dir: Path, name: str, content: bytes, version: int) -> None:
    """A file of the table `rivers`, and then the manifest of the version that has it, as Lance writes them."""
    for path, held in ((f"data/{name}", content), (f"_versions/{2**64 - 1 - version}.manifest", name.encode())):
        file = lance_dir / "rivers.lance" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(held)


def damage(lance_dir: Path) -> list[str]:
    recorded = read_checksums(lance_dir)
    found = missing_or_broken(lance_dir, recorded, ()) + damage_among(lance_dir, recorded, recorded.by_path)
    return [str(each) for each in found]


def test_each_new_file_is_recorded_once_and_a_temporary_one_never(tmp_path: Path) -> None:
    recorder = ChecksumRecorder(tmp_path)
    put(tmp_path, "a.lance", b"one", 1)
    put(tmp_path, ".tmpXYZ", b"half", 1)
    assert (recorder.record(), recorder.record()) == (2, 0)
    put(tmp_path, "b.lance", b"two", 2)
    assert recorder.record() == 2
    assert len(read_checksums(tmp_path).by_path) == 4
    assert ChecksumRecorder(tmp_path).record() == 0


def test_a_changed_byte_of_any_recorded_file_is_found(tmp_path: Path) -> None:
    put(tmp_path, "a.lance", b"one", 1)
    ChecksumRecorder(tmp_path).record()
    assert damage(tmp_path) == []
    (tmp_path / "rivers.lance/data/a.lance").write_bytes(b"onf")
    assert damage(tmp_path) == ["lance/rivers.lance/data/a.lance does not match its checksum"]


def test_what_changed_is_not_recorded_again_by_another_writer(tmp_path: Path) -> None:
    put(tmp_path, "a.lance", b"one", 1)
    ChecksumRecorder(tmp_path).record()
    (tmp_path / "rivers.lance/data/a.lance").write_bytes(b"onf")
    ChecksumRecorder(tmp_path).record()
    assert damage(tmp_path) == ["lance/rivers.lance/data/a.lance does not match its checksum"]


def test_files_that_maintenance_removed_are_no_damage(tmp_path: Path) -> None:
    put(tmp_path, "a.lance", b"one", 1)
    recorder = ChecksumRecorder(tmp_path)
    recorder.record()
    put(tmp_path, "b.lance", b"two", 2)
    (tmp_path / "rivers.lance/data/a.lance").unlink()
    (tmp_path / f"rivers.lance/_versions/{2**64 - 2}.manifest").unlink()
    assert damage(tmp_path) == []  # before and after the newer version is recorded
    recorder.record()
    assert damage(tmp_path) == []


@pytest.mark.parametrize("at", [3, 70, -3])
def test_a_changed_byte_of_the_checksums_themselves_is_found(tmp_path: Path, at: int) -> None:
    put(tmp_path, "a.lance", b"one", 1)
    ChecksumRecorder(tmp_path).record()
    content = bytearray((tmp_path / CHECKSUMS).read_bytes())
    content[at] ^= 1
    (tmp_path / CHECKSUMS).write_bytes(content)
    assert any("lance/checksums has 1 lines" in each for each in damage(tmp_path))


def test_half_a_line_is_one_that_is_being_written_and_the_next_writer_mends_it(tmp_path: Path) -> None:
    put(tmp_path, "a.lance", b"one", 1)
    ChecksumRecorder(tmp_path).record()
    with (tmp_path / CHECKSUMS).open("a") as file:
        file.write(line_of("rivers.lance/data/b.lance", "0" * 64)[:40])
    assert damage(tmp_path) == []
    recorder = ChecksumRecorder(tmp_path)
    put(tmp_path, "c.lance", b"three", 2)
    recorder.record()
    assert damage(tmp_path) == []
    assert len(read_checksums(tmp_path).by_path) == 4
