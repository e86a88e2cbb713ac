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


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thalweg.toml").write_text("[kafka]\npartitions = 2\n[worker]\nparsers = 7\n")
    assert WorkerSettings.load().kafka.partitions == 2
    monkeypatch.setenv("THALWEG_KAFKA__PARTITIONS", "3")
    assert WorkerSettings.load().kafka.partitions == 3
    settings = WorkerSettings.load({"kafka": {"partitions": 5}})
    assert (settings.kafka.partitions, settings.worker.parsers) == (5, 7)


def test_the_other_processes_blocks_are_none_of_its_business(tmp_path: Path) -> None:
    (tmp_path / "thalweg.toml").write_text("[service]\nport = 1\n")
    WorkerSettings.load()


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(WrongSetting, match="THALWEG_WORKER__PARSER: there is no such setting"):
        WorkerSettings.load({"worker": {"parser": 1}})


def test_sizes_that_cannot_be_are_refused_at_the_start() -> None:
    with pytest.raises(WrongSetting, match=r"THALWEG_CHUNKING: A passage has the size of two chunks or more"):
        WorkerSettings.load({"chunking": {"chunk_characters": 300, "passage_characters": 500}})


@pytest.mark.parametrize(("chunk_characters", "overlap"), [(50, 25), (100, 50), (300, 50), (700, 50)])
def test_small_chunks_have_a_smaller_overlap(chunk_characters: int, overlap: int) -> None:
    settings = WorkerSettings.load({"chunking": {"chunk_characters": chunk_characters}})
    assert settings.chunking.parameters().chunk_overlap == overlap


def test_a_settings_file_that_is_not_there_or_no_toml_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_CONFIG_FILE", str(tmp_path / "missing.toml"))
    with pytest.raises(WrongSetting, match="not a file"):
        WorkerSettings.load()
    monkeypatch.delenv("THALWEG_CONFIG_FILE")
    (tmp_path / "thalweg.toml").write_text("kafka = [")
    with pytest.raises(WrongSetting, match="not TOML"):
        WorkerSettings.load()


def test_every_setting_says_how_to_choose_it() -> None:
    for block in WorkerSettings.model_fields.values():
        fields = block.annotation.model_fields  # type: ignore[union-attr]
        assert all(field.description for field in fields.values())
