"""The images and the compose file: what is copied exists, and no service has more rights than it needs."""

import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.settings_table import rows
from tests.support.monitoring import ROOT

DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
SETTING = re.compile(r"THALWEG_[A-Z_]+__[A-Z_]+")
EACH_SERVICE = pytest.mark.parametrize("name", COMPOSE["services"])


def test_the_context_holds_what_a_wheel_is_made_of_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    let_in = {line[1:] for line in lines if line.startswith("!")}
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    built = {*wheel["only-include"], wheel["hooks"]["custom"]["path"]}
    assert let_in == built | {"pyproject.toml", "README.md", "LICENSE", "requirements.txt"}
    assert all((ROOT / name).exists() for name in let_in)


def test_both_images_run_as_a_user_without_rights_and_check_their_health() -> None:
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]
    assert [stage.split()[2] for stage in stages] == ["build", "runtime", "worker", "query"]
    assert "USER 10001:10001" in stages[1]
    for stage in stages[2:]:
        assert stage.startswith("runtime AS ")
        assert "HEALTHCHECK" in stage
        assert re.search(r'^CMD \["(worker|serve)"\]$', stage, re.MULTILINE)
    assert "--require-hashes" in stages[0]
    assert 'ENTRYPOINT ["thalweg"]' in stages[1]  # in exec form: signals reach it


def test_every_setting_named_exists() -> None:
    known = {setting for row in rows() for setting in SETTING.findall(row)}
    used = set(SETTING.findall(DOCKERFILE)) | set(SETTING.findall((ROOT / "deploy" / "compose.yaml").read_text()))
    assert used
    assert used <= known


@EACH_SERVICE
def test_no_service_has_rights_or_ports_to_spare(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("read_only", False) is (name != "kafka")
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert "privileged" not in service
    assert name in {"worker", "query"} or re.search(r":v?\d+\.\d+\.\d+$", service["image"])


def test_the_broker_is_of_the_version_that_is_embedded() -> None:
    lock = tomllib.loads((ROOT / "streams" / "embedded_kafka" / "kafka.lock.toml").read_text())
    assert COMPOSE["services"]["kafka"]["image"] == f"apache/kafka:{lock['dependencies'][0]['version']}"


def test_the_mounted_files_exist_and_secrets_come_from_the_environment() -> None:
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (ROOT / "deploy" / source).exists(), volume
    example = dict(
        line.split("=") for line in (ROOT / "deploy" / ".env.example").read_text().splitlines() if "=" in line
    )
    needed = set(re.findall(r"\$\{(\w+)", (ROOT / "deploy" / "compose.yaml").read_text()))
    assert needed == set(example)
    assert all(not value for name, value in example.items() if not name.endswith("MEMORY"))
    assert "/deploy/.env" in (ROOT / ".gitignore").read_text().splitlines()
