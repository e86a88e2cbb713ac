"""Stores of another program are refused with what to type."""

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from indexer.errors import DamagedStore, IncompatibleGeneration
from indexer.generations import Manifest, current_generation, current_manifest, incompatible_advice, open_generation

MADE = Manifest(
    generation="g0001-5f3a9c",
    embedding_provider="hashing",
    embedding_model="hashing",
    embedding_digest="d",
    dimension=384,
    chunk_characters=300,
    chunk_overlap=50,
    passage_characters=1_400,
    passage_overlap=0.15,
    extractor="rules-1",
)


def test_stores_made_with_the_same_are_opened_again(tmp_path: Path) -> None:
    assert open_generation(tmp_path, MADE) == open_generation(tmp_path, MADE)


def test_stores_of_another_extractor_are_refused_with_commands_for_this_very_directory(tmp_path: Path) -> None:
    data_dir = tmp_path / "my data"
    open_generation(data_dir, MADE)
    (tmp_path / "my data-old-1").mkdir()
    with pytest.raises(IncompatibleGeneration) as caught:
        open_generation(data_dir, msgspec.structs.replace(MADE, extractor="rules-2"))
    first, *lines = str(caught.value).splitlines()
    assert "(extractor: stored 'rules-1', asked 'rules-2')" in first
    here, there = f"'{data_dir}'", f"'{tmp_path}/my data-old-2'"
    assert lines[:3] == [
        f"  mkdir {there} && mv {here}/CURRENT {here}/generations {there}/",
        f"  thalweg up --data-dir {here}",
        f"  thalweg serve --data-dir {there} --port 8421",
    ]
    assert "--mode keyword" not in str(caught.value)


@pytest.mark.parametrize("differing", [{"embedding_digest": "e"}, {"dimension": 100}, {"embedding_model": "other"}])
def test_what_a_service_on_stores_of_another_encoder_cannot_do_is_said(
    tmp_path: Path, differing: dict[str, Any]
) -> None:
    open_generation(tmp_path, MADE)
    with pytest.raises(IncompatibleGeneration, match=r"THALWEG_EMBEDDING__\*.*by words only \(--mode keyword\)"):
        open_generation(tmp_path, msgspec.structs.replace(MADE, **differing))


@pytest.mark.parametrize("folder", [".", "..", "data/.."])
def test_a_directory_that_is_given_without_its_name_is_told_what_to_type_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / "data" / "data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "data")
    aside = Path(folder).resolve()
    assert f"mkdir {aside}-old-1 &&" in incompatible_advice(Path(folder), other_encoder=False)


SPOILT = [b"", b"\n", b"{", b"\x00\xff\xfe", b"null", b"[1]", b'"g0001"', b"g0009\n", b"../generations/g0001", b"."]


@pytest.mark.parametrize("content", SPOILT)
def test_a_damaged_current_is_told_with_what_to_write_into_it(tmp_path: Path, content: bytes) -> None:
    open_generation(tmp_path, MADE)
    (tmp_path / "CURRENT").write_bytes(content)
    for look in (current_generation, current_manifest, lambda data_dir: open_generation(data_dir, MADE)):
        with pytest.raises(
            DamagedStore, match=f"names no generation that is there(?s:.*)echo {MADE.generation} > "
        ) as caught:
            look(tmp_path)
    command = str(caught.value).splitlines()[-1]
    subprocess.run(["sh", "-c", command], check=True)
    assert open_generation(tmp_path, MADE).name == MADE.generation


def test_a_current_that_is_left_alone_is_told_with_what_makes_the_stores_again(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_text("g0001\n")
    with pytest.raises(DamagedStore, match=r"There are none(?s:.*)thalweg up --data-dir"):
        current_generation(tmp_path)


@pytest.mark.parametrize("content", [None, *SPOILT[:7], b'{"generation": "g0001"}', b'{"generation": 1}'])
def test_a_damaged_manifest_is_told_with_what_makes_the_stores_again(tmp_path: Path, content: bytes | None) -> None:
    manifest = open_generation(tmp_path, MADE).manifest_path
    if content is None:
        manifest.unlink()
    else:
        manifest.write_bytes(content)
    for look in (current_manifest, lambda data_dir: open_generation(data_dir, MADE)):
        with pytest.raises(DamagedStore, match=r"manifest\.json (cannot be read|is gone)(?s:.*)thalweg up --data-dir"):
            look(tmp_path)
