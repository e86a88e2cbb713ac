"""Where the settings file is found, and what in it is refused."""

from pathlib import Path

import pytest

from query_api.settings import ServiceSettings
from schemas.environment import without_settings
from schemas.errors import WrongSetting
from schemas.settings import ProcessSettings
from schemas.settings_file import read_file
from streams.settings import WorkerSettings
from streams.supervisor.supervisor import UpSettings


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and an empty place for the user's own settings."""
    for name in ("THALWEG_CONFIG_FILE", "THALWEG_STORAGE__DATA_DIR", "THALWEG_KAFKA__PARTITIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("schemas.settings_file.user_config_dir", lambda: tmp_path / "config")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "thalweg.toml").write_text(text)
    return folder / "thalweg.toml"


def test_the_nearest_file_counts_alone(place: Path) -> None:
    data_dir = place / "data" / "stores"
    assert read_file(data_dir).path is None
    for partitions, folder in enumerate((place / "config", place / "data", data_dir, place / "work"), start=1):
        path = write(folder, f"[kafka]\npartitions = {partitions}\n")
        assert read_file(data_dir).path is not None
        assert (place / "work" / (read_file(data_dir).path or "")).resolve() == path
        assert WorkerSettings.load({"storage": {"data_dir": data_dir}}).kafka.partitions == partitions


def test_a_data_directory_of_the_environment_is_looked_in_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(place / "stores", "[service]\nport = 7\n")
    assert ServiceSettings.load().service.port == 8420
    monkeypatch.setenv("THALWEG_STORAGE__DATA_DIR", str(place / "stores"))
    assert ServiceSettings.load().service.port == 7


def test_a_file_that_is_named_is_the_only_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(place / "work", "[kafka]\npartitions = 2\n")
    (place / "other.toml").write_text("[kafka]\npartitions = 9\n")
    monkeypatch.setenv("THALWEG_CONFIG_FILE", str(place / "other.toml"))
    assert WorkerSettings.load().kafka.partitions == 9


def test_an_unknown_setting_is_told_with_its_file_and_the_nearest_name(place: Path) -> None:
    write(place / "work", "[kafka]\npartitons = 2\n")
    with pytest.raises(WrongSetting, match=r"It is in thalweg\.toml, \[kafka\]\. Did you mean 'partitions'\?"):
        WorkerSettings.load()


@pytest.mark.parametrize("settings", [WorkerSettings, ServiceSettings, UpSettings])
def test_each_process_refuses_unknown_settings_of_others(settings: type[ProcessSettings], place: Path) -> None:
    write(place / "work", "[service]\nprot = 1\nport = 7\n[worker]\nbatch = 1\n[limits]\nmost = 2\n")
    with pytest.raises(WrongSetting) as refused:
        settings.load()
    assert [line.partition(":")[0] for line in str(refused.value).splitlines()] == [
        "THALWEG_SERVICE__PROT",
        "THALWEG_WORKER__BATCH",
        "THALWEG_LIMITS__MOST",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[servce]\nport = 1\n", r"there is no table \[servce\]\. Did you mean 'service'\?"),
        ("[zzzz]\nport = 1\n", r"there is no table \[zzzz\]\.$"),
        ("kafka = 3\n", r"kafka is a table, with its settings below a line \[kafka\]"),
        (
            "[worker]\ngather_seconds = 0\n",
            r"WORKER__GATHER_SECONDS: there is no such setting\. It is in thalweg\.toml",
        ),
        ('"kafka.partitions" = 3\n', r"there is no table \[kafka\.partitions\]"),
        ("port: 7", r"not TOML: .* \(thalweg\.toml\)"),
    ],
)
def test_what_no_process_reads_is_refused_by_each(text: str, said: str, place: Path) -> None:
    write(place / "work", text)
    for settings in (WorkerSettings, ServiceSettings, UpSettings):
        with pytest.raises(WrongSetting, match=said):
            settings.load()


def test_bytes_that_are_no_text_are_no_toml(place: Path) -> None:
    write(place / "work", "").write_bytes(b"\xff\xfe[")
    with pytest.raises(WrongSetting, match="not TOML"):
        read_file(None)


def test_a_child_process_gets_the_settings_of_its_blocks_alone() -> None:
    environment = {
        "PATH": "/bin",
        "THALWEG_CONFIG_FILE": "x.toml",
        "THALWEG_KAFKA__SASL_PASSWORD": "p",
        "thalweg_service__api_key": "k",
        "THALWEG_SERVICE": '{"read_api_key": "r"}',
        "THALWEG_SERVCE__API_KEY": "k",
    }
    assert without_settings(environment) == {"PATH": "/bin"}
    kept = without_settings(environment, ("kafka", "storage"))
    assert list(kept) == ["PATH", "THALWEG_CONFIG_FILE", "THALWEG_KAFKA__SASL_PASSWORD"]
