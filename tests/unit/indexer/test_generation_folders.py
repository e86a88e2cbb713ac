"""Stores of another program are refused with what to type."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from indexer.errors import DamagedStore, IncompatibleGeneration, OtherFormat
from indexer.generation_folders import (
    CURRENT,
    CURRENT_COPY,
    Generation,
    current_generation,
    current_manifest,
    generations,
    make_generation,
    open_generation,
    require_room,
    restore_current,
    restore_manifest,
    switch_to,
)
from schemas.errors import Failure
from schemas.settings import MIB
from tests.support.fixtures.manifest import MANIFEST


def test_stores_made_with_the_same_are_opened_again(tmp_path: Path) -> None:
    assert open_generation(tmp_path, MANIFEST) == open_generation(tmp_path, MANIFEST)


@pytest.mark.parametrize(
    ("differing", "said"),
    [
        ({"extractor": "rules-2"}, "extractor: stored 'rules-1', configured 'rules-2'"),
        ({"embedding_digest": "e"}, "embedding_digest: stored 'd', configured 'e'"),
        ({"dimension": 100, "embedding_model": "other"}, "dimension: stored 384, configured 100"),
    ],
)
def test_stores_of_another_pipeline_are_refused_with_what_to_do(
    tmp_path: Path, differing: dict[str, Any], said: str
) -> None:
    open_generation(tmp_path, MANIFEST)
    with pytest.raises(IncompatibleGeneration, match="run 'thalweg rebuild'") as caught:
        open_generation(tmp_path, msgspec.structs.replace(MANIFEST, generation="g0002-aaaaaa", **differing))
    assert said in str(caught.value)
    assert [each.name for each in generations(tmp_path)] == [MANIFEST.generation]


def test_a_generation_is_built_beside_the_current_one_and_switched_to(tmp_path: Path) -> None:
    current = open_generation(tmp_path, MANIFEST)
    other = msgspec.structs.replace(MANIFEST, generation="g0002-aaaaaa", chunk_characters=200)
    built = make_generation(tmp_path, other)
    assert current_generation(tmp_path) == current
    assert make_generation(tmp_path, other) == built
    with pytest.raises(
        IncompatibleGeneration, match=r"begun with another configuration.*thalweg generations drop g0002"
    ):
        make_generation(tmp_path, msgspec.structs.replace(other, chunk_characters=300))
    switch_to(built)
    assert current_manifest(tmp_path) == other


def test_a_folder_without_a_manifest_is_not_switched_to(tmp_path: Path) -> None:
    current = open_generation(tmp_path, MANIFEST)
    (tmp_path / "generations" / "g0002-aaaaaa").mkdir()
    with pytest.raises(DamagedStore, match="manifest"):
        switch_to(Generation(tmp_path, "g0002-aaaaaa"))
    assert current_generation(tmp_path) == current


def test_too_little_room_is_refused_with_the_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    current = open_generation(tmp_path, MANIFEST)
    (current.lance_dir / "rows").write_bytes(bytes(10 * MIB))
    require_room(current)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=5 * MIB))
    with pytest.raises(Failure, match=r"takes about 11 MiB, and 5 MiB are free"):
        require_room(current)


SPOILT = [b"", b"\n", b"{", b"\x00\xff\xfe", b"null", b"[1]", b'"g0001"', b"g0009\n", b"../generations/g0001", b"."]


@pytest.mark.parametrize("content", [each for each in SPOILT if each != b"g0009\n"])
def test_current_damaged_with_its_copy_is_named_by_the_worker(tmp_path: Path, content: bytes) -> None:
    running = open_generation(tmp_path, MANIFEST)
    make_generation(tmp_path, msgspec.structs.replace(MANIFEST, generation="g0002-aaaaaa"))
    for generation, hour in ((running, 2), (Generation(tmp_path, "g0002-aaaaaa"), 1)):
        version = generation.lance_dir / "positions.lance" / "_versions" / "1.manifest"
        version.parent.mkdir(parents=True)
        version.touch()
        os.utime(version, (hour * 3_600, hour * 3_600))
    for name in (CURRENT, CURRENT_COPY):
        (tmp_path / name).write_bytes(content)
    for look in (current_generation, current_manifest, lambda data_dir: open_generation(data_dir, MANIFEST)):
        with pytest.raises(DamagedStore, match=r"names no generation that is there(?s:.*)thalweg up"):
            look(tmp_path)
    restore_current(tmp_path)
    assert open_generation(tmp_path, MANIFEST) == running
    (tmp_path / CURRENT).unlink()
    (tmp_path / CURRENT_COPY).write_bytes(content)
    restore_current(tmp_path, Generation(tmp_path, "g0002-aaaaaa"))
    assert current_generation(tmp_path) == Generation(tmp_path, "g0002-aaaaaa")


@pytest.mark.parametrize("content", SPOILT)
def test_a_damaged_current_is_read_from_its_copy_and_written_again(tmp_path: Path, content: bytes) -> None:
    before = open_generation(tmp_path, MANIFEST)
    for name in (CURRENT, CURRENT_COPY):
        (tmp_path / name).write_bytes(content)
        assert current_generation(tmp_path) == before
        open_generation(tmp_path, MANIFEST)
        assert (tmp_path / name).read_text() == f"{before.name}\n"


@pytest.mark.parametrize("content", [b"g0001-aaaaaa\n", b"\x00"])
def test_current_without_its_generation_becomes_damaged_stores(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "generations").mkdir()
    for name in (CURRENT, CURRENT_COPY):
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DamagedStore, match=r"names no generation(?s:.*)thalweg up"):
        current_generation(tmp_path)
    restore_current(tmp_path)
    restored = current_generation(tmp_path)
    assert restored is not None
    assert content == b"\x00" or restored.name == "g0001-aaaaaa"
    with pytest.raises(DamagedStore, match="is gone"):
        current_manifest(tmp_path)


def test_current_that_is_gone_is_read_from_its_copy(tmp_path: Path) -> None:
    before = open_generation(tmp_path, MANIFEST)
    (tmp_path / CURRENT).unlink()
    assert current_generation(tmp_path) == before
    restore_current(tmp_path, before)
    assert (tmp_path / CURRENT).read_text() == f"{before.name}\n"


def test_current_of_an_empty_directory_is_not_made(tmp_path: Path) -> None:
    restore_current(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert current_generation(tmp_path) is None


@pytest.mark.parametrize("content", [None, *SPOILT[:7]])
def test_both_manifests_damaged_while_running_are_written_again(tmp_path: Path, content: bytes | None) -> None:
    generation = open_generation(tmp_path, MANIFEST)
    paths = (generation.manifest_path, generation.manifest_copy_path)
    intact = [path.read_bytes() for path in paths]
    for path in paths:
        spoil(path, content)
    assert restore_manifest(generation, MANIFEST) == MANIFEST
    assert [path.read_bytes() for path in paths] == intact
    shutil.rmtree(generation.root)
    with pytest.raises(DamagedStore, match="is gone"):
        restore_manifest(generation, MANIFEST)


@pytest.mark.parametrize("content", [None, *SPOILT[:7], b'{"generation": "g0001"}', b'{"generation": 1}'])
def test_a_damaged_manifest_is_read_from_its_copy_and_written_again(tmp_path: Path, content: bytes | None) -> None:
    generation = open_generation(tmp_path, MANIFEST)
    for path in (generation.manifest_path, generation.manifest_copy_path):
        intact = path.read_bytes()
        spoil(path, content)
        assert current_manifest(tmp_path) == MANIFEST
        open_generation(tmp_path, MANIFEST)
        assert path.read_bytes() == intact


@pytest.mark.parametrize("content", [None, *SPOILT[:7], b'{"generation": "g0001"}', b'{"generation": 1}'])
def test_a_manifest_that_is_damaged_with_its_copy_is_told_with_what_is_done(
    tmp_path: Path, content: bytes | None
) -> None:
    generation = open_generation(tmp_path, MANIFEST)
    for path in (generation.manifest_path, generation.manifest_copy_path):
        spoil(path, content)
    for look in (current_manifest, lambda data_dir: open_generation(data_dir, MANIFEST)):
        with pytest.raises(
            DamagedStore, match=r"manifest\.json (cannot be read|is gone)(?s:.*)thalweg generations list"
        ):
            look(tmp_path)


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (b'{"format": 3, "what": "nobody knows yet"}', r"a newer version(?s:.*)format 3(?s:.*)Run that version"),
        (b'{"format": 1, "generation": "g0001"}', r"an earlier version(?s:.*)format 1(?s:.*)mkdir (?s:.*)thalweg up"),
    ],
)
def test_stores_of_other_format_are_left_with_what_to_do(tmp_path: Path, manifest: bytes, said: str) -> None:
    path = open_generation(tmp_path, MANIFEST).manifest_path
    path.write_bytes(manifest)
    for look in (current_manifest, lambda data_dir: open_generation(data_dir, MANIFEST)):
        with pytest.raises(OtherFormat, match=said):
            look(tmp_path)
    assert path.read_bytes() == manifest


def test_a_manifest_with_another_value_does_not_match_its_checksum(tmp_path: Path) -> None:
    path = open_generation(tmp_path, MANIFEST).manifest_path
    path.write_bytes(path.read_bytes().replace(b'"chunk_characters": 300', b'"chunk_characters": 301'))
    assert b"301" in path.read_bytes()
    assert current_manifest(tmp_path) == MANIFEST


def spoil(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
