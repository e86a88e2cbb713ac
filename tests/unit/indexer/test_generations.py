"""Stores of another program are refused with what to type."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from indexer.errors import IncompatibleGeneration
from indexer.generations import Manifest, how_to_go_on, open_generation

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
    assert f"mkdir {aside}-old-1 &&" in how_to_go_on(Path(folder), other_encoder=False)
