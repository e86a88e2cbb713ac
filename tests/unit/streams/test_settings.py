"""The worker's settings: where they come from, and what is refused."""

from pathlib import Path

import pytest

from schemas.errors import WrongSetting
from streams.settings import WorkerSettings


@pytest.fixture(autouse=True)
def _empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("THALWEG_CONFIG_FILE", "THALWEG_KAFKA__PARTITIONS", "THALWEG_WORKER__PARSERS"):
        monkeypatch.delenv(name, raising=False)


def test_sizes_that_cannot_be_are_refused_at_the_start() -> None:
    with pytest.raises(WrongSetting, match=r"THALWEG_CHUNKING: A passage has the size of two chunks or more"):
        WorkerSettings.load({"chunking": {"chunk_characters": 300, "passage_characters": 500}})


@pytest.mark.parametrize(("chunk_characters", "overlap"), [(50, 25), (100, 50), (300, 50), (700, 50)])
def test_small_chunks_have_a_smaller_overlap(chunk_characters: int, overlap: int) -> None:
    settings = WorkerSettings.load({"chunking": {"chunk_characters": chunk_characters}})
    assert settings.chunking.parameters().chunk_overlap == overlap


def test_every_setting_says_how_to_choose_it() -> None:
    for block in WorkerSettings.model_fields.values():
        fields = block.annotation.model_fields  # type: ignore[union-attr]
        assert all(field.description for field in fields.values())
