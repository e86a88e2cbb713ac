"""Stores of another program are refused with what to type."""

from pathlib import Path

import msgspec
import pytest

from indexer.errors import IncompatibleGeneration
from indexer.generations import FIRST, Manifest, open_generation

MADE = Manifest(
    generation=FIRST,
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
