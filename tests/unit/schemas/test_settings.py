"""Which settings of a connection go together."""

from pathlib import Path
from typing import Any

import pytest

from schemas.errors import WrongSetting
from schemas.settings import KafkaConnection, LanguageModelSettings
from streams.settings import WorkerSettings

PASSWORD = {"sasl_username": "alice", "sasl_password": "opensesame"}
SCRAM = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", **PASSWORD}
CLIENT = {
    "sasl_oauthbearer_token_endpoint_url": "https://tokens.example.org/token",
    "sasl_oauthbearer_client_id": "thalweg",
    "sasl_oauthbearer_client_secret": "opensesame",
}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"security_protocol": "SASL_SSL"}, "SASL_SSL needs a mechanism: set THALWEG_KAFKA__SASL_MECHANISM to PLAIN,"),
        ({"security_protocol": "TLS"}, "THALWEG_KAFKA__SECURITY_PROTOCOL: Input should be 'PLAINTEXT', 'SSL',"),
        (SCRAM | {"sasl_username": None}, "the mechanism SCRAM-SHA-512 needs THALWEG_KAFKA__SASL_USERNAME"),
        (SCRAM | {"sasl_password": None}, "the mechanism SCRAM-SHA-512 needs THALWEG_KAFKA__SASL_PASSWORD"),
        (SCRAM | {"sasl_password": ""}, "THALWEG_KAFKA__SASL_PASSWORD: Value should have at least 1"),
        (SCRAM | {"sasl_mechanism": "GSSAPI"}, "THALWEG_KAFKA__SASL_MECHANISM: Input should be 'PLAIN',"),
        (PASSWORD, "THALWEG_KAFKA__SASL_USERNAME is set, but PLAINTEXT has no SASL: set THALWEG_KAFKA__SECURITY_"),
        (SCRAM | {"security_protocol": "SSL"}, "THALWEG_KAFKA__SASL_MECHANISM is set, but SSL has no SASL"),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"},
            "the mechanism OAUTHBEARER needs THALWEG_KAFKA__SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL",
        ),
        (SCRAM | CLIENT, "THALWEG_KAFKA__SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL is set, but SASL_SSL with SCRAM-SHA-512"),
        (SCRAM | {"ssl_cafile": "/nowhere.pem"}, "THALWEG_KAFKA__SSL_CAFILE: there is no such file"),
        ({"security_protocol": "SSL", "ssl_keyfile": __file__}, "SSL_KEYFILE needs THALWEG_KAFKA__SSL_CERTFILE"),
        ({"ssl_cafile": __file__}, "THALWEG_KAFKA__SSL_CAFILE is set, but PLAINTEXT has no TLS"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_by_name(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongSetting) as refused:
        WorkerSettings.load({"kafka": settings})
    assert said in str(refused.value)
    assert "opensesame" not in str(refused.value)


def test_a_wrong_type_of_password_is_not_repeated() -> None:
    with pytest.raises(WrongSetting) as refused:
        WorkerSettings.load({"kafka": SCRAM | {"sasl_password": 12345678}})
    assert "THALWEG_KAFKA__SASL_PASSWORD" in str(refused.value)
    assert "12345678" not in str(refused.value)


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    connection = KafkaConnection.model_validate(SCRAM | {"bootstrap_servers": "a:9092, b:9093"})
    assert connection.servers == ["a:9092", "b:9093"]
    assert connection.identity == "'alice' (SCRAM-SHA-512)"
    for shown in (str(connection), repr(connection), connection.model_dump_json(), connection.identity):
        assert "opensesame" not in shown


def test_the_same_way_in_leads_to_another_address() -> None:
    connection = KafkaConnection.model_validate(SCRAM | {"bootstrap_servers": "a:9092"})
    moved = connection.at("b:9092")
    assert moved == KafkaConnection.model_validate(SCRAM | {"bootstrap_servers": "b:9092"})
    assert moved != connection


@pytest.mark.parametrize(
    ("model", "writer", "decider"),
    [(None, "", ""), ("qwen3:8b", "qwen3:8b", "qwen3:8b"), (" a/large , small ", "a/large", "small")],
)
def test_a_language_model_is_one_or_two(model: str | None, writer: str, decider: str) -> None:
    settings = LanguageModelSettings(model=model)
    assert (settings.writer, settings.decider) == (writer, decider)


@pytest.mark.parametrize("model", ["", " ", ",", "large,", ",small", "a,b,c"])
def test_models_without_a_name_are_refused(model: str) -> None:
    with pytest.raises(WrongSetting, match=r"THALWEG_LANGUAGE_MODEL__MODEL: .*give the name of one model, or of two"):
        WorkerSettings.load({"language_model": {"model": model}})
