"""Misspelt variables are refused with the nearest name; what containers are given for services is left alone."""

from pathlib import Path

import pytest

from query_api.settings import ServiceSettings
from schemas.environment import refuse_unknown_variables
from schemas.errors import WrongSetting
from streams.settings import WorkerSettings
from streams.supervisor.supervisor import UpSettings
from tests.settings_table import NAMES, names

ADDRESS = "tcp://10.96.17.4:8420"
OF_A_SERVICE_NAMED_THALWEG = {
    "THALWEG_SERVICE_HOST": "10.96.17.4",
    "THALWEG_SERVICE_PORT": "8420",
    "THALWEG_SERVICE_PORT_HTTP": "8420",
    "THALWEG_PORT": ADDRESS,
    "THALWEG_PORT_8420_TCP": ADDRESS,
    "THALWEG_PORT_8420_TCP_PROTO": "tcp",
    "THALWEG_PORT_8420_TCP_PORT": "8420",
    "THALWEG_PORT_8420_TCP_ADDR": "10.96.17.4",
}


@pytest.fixture(autouse=True)
def _empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("schemas.settings_file.user_config_dir", lambda: tmp_path / "config")


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("THALWEG_KAFKA_PARTITIONS", "'THALWEG_KAFKA__PARTITIONS'"),
        ("THALWEG_STORAGE_DATA_DIR", "'THALWEG_STORAGE__DATA_DIR'"),
        ("THALWEG__STORAGE__DATA_DIR", "'THALWEG_STORAGE__DATA_DIR'"),
        ("THALWEG_KAFKA__BOOTSTRAP_SERVER", "'THALWEG_KAFKA__BOOTSTRAP_SERVERS'"),
        ("thalweg_kafka__bootstrap_server", "'THALWEG_KAFKA__BOOTSTRAP_SERVERS'"),
        ("THALWEG_SERVICE__API_KEYS", "'THALWEG_SERVICE__API_KEY'"),
        ("THALWEG_API_KEY", "'THALWEG_SERVICE__API_KEY'"),
        ("THALWEG_CONFIG", "'THALWEG_CONFIG_FILE'"),
        ("THALWEG_PORT", "'THALWEG_SERVICE__PORT'"),
        ("THALWEG_SERVICE_PORT", "'THALWEG_SERVICE__PORT'"),
        ("THALWEG_SERVICE_HOST", "'THALWEG_SERVICE__HOST'"),
        ("THALWEG-KAFKA-PARTITIONS", "'THALWEG_KAFKA__PARTITIONS'"),
        ("thalweg.kafka.partitions", "'THALWEG_KAFKA__PARTITIONS'"),
    ],
)
def test_misspelt_variable_is_refused_with_nearest_name(
    variable: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "0.0.0.0")
    for process in (WorkerSettings, ServiceSettings, UpSettings):
        with pytest.raises(WrongSetting) as refused:
            process.load()
        assert str(refused.value) == f"{variable}: there is no such setting. Did you mean {meant}?"


def test_every_unknown_variable_is_named_without_its_value() -> None:
    with pytest.raises(WrongSetting) as refused:
        refuse_unknown_variables({"THALWEG_XYZZY": "opensesame", "THALWEG_KAFKA__SASL_PASWORD": "opensesame"})
    assert str(refused.value).splitlines() == [
        "THALWEG_KAFKA__SASL_PASWORD: there is no such setting. Did you mean 'THALWEG_KAFKA__SASL_PASSWORD'?",
        "THALWEG_XYZZY: there is no such setting.",
    ]


def test_settings_are_read_in_any_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.toml").write_text("[kafka]\npartitions = 9\n")
    monkeypatch.setenv("thalweg_config_file", str(tmp_path / "other.toml"))
    monkeypatch.setenv("Thalweg_Service__Port", "7")
    assert (WorkerSettings.load().kafka.partitions, ServiceSettings.load().service.port) == (9, 7)


def test_blocks_as_json_and_empty_variables_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_KAFKA", '{"partitions": 9}')
    monkeypatch.setenv("THALWEG_KAFKA__PARTITIONZ", "")
    assert WorkerSettings.load().kafka.partitions == 9
    monkeypatch.setenv("THALWEG_KAFKA", '{"partitons": 9}')
    with pytest.raises(WrongSetting, match=r"PARTITONS: there is no such setting\. Did you mean 'partitions'"):
        WorkerSettings.load()


@pytest.mark.parametrize(
    "given",
    [
        OF_A_SERVICE_NAMED_THALWEG,
        {name: value for name, value in OF_A_SERVICE_NAMED_THALWEG.items() if "THALWEG_SERVICE" in name},
        {"THALWEG_PORT_8420_TCP_ADDR": "10.96.17.4"},
        {name.replace("THALWEG", "THALWEG_METRICS"): value for name, value in OF_A_SERVICE_NAMED_THALWEG.items()},
        {name.replace("THALWEG", "THALWEG_SERVICE"): value for name, value in OF_A_SERVICE_NAMED_THALWEG.items()},
        {"THALWEG_PORT": "udp://172.17.0.5:53", "THALWEG_NAME": "/web/thalweg", "THALWEG_ENV_LANG": "C.UTF-8"},
        {"THALWEG_WORKER_MEMORY": "4g", "THALWEG_QUERY_MEMORY": "4g"},
        {"KAFKA_PARTITONS": "4", "_THALWEG_COMPLETE": "complete_bash"},
    ],
)
def test_variables_that_nobody_misspelt_are_left_alone(given: dict[str, str]) -> None:
    refuse_unknown_variables(given)


def test_misspelt_setting_beside_service_links_is_refused() -> None:
    with pytest.raises(WrongSetting, match=r"^THALWEG_KAFKA_PARTITIONS: [^\n]*$"):
        refuse_unknown_variables(OF_A_SERVICE_NAMED_THALWEG | {"THALWEG_KAFKA_PARTITIONS": "9"})


def test_names_are_those_of_the_settings() -> None:
    assert NAMES.read_text() == names(), "run python -m tests.settings_table"
