"""Settings: where they come from, which wins, and what is said about a wrong one."""

from pathlib import Path

import pytest

from query_api.settings import RerankerSettings, ServiceBlock, ServiceSettings
from schemas.errors import Exit, WrongSetting


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No thalweg.toml and no variables of the machine that runs the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THALWEG_CONFIG_FILE", raising=False)
    return tmp_path


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thalweg.toml").write_text(
        '[service]\nport = 1\nsearch_processes = 2\n[kafka]\ntopic_prefix = "file."\n'
    )
    monkeypatch.setenv("THALWEG_SERVICE__PORT", "2")
    settings = ServiceSettings.load({"service": {"port": 3}})
    assert settings.service.port == 3
    assert settings.service.search_processes == 2
    assert settings.kafka.topic_prefix == "file."
    assert ServiceSettings.load().service.port == 2


def test_a_named_file_is_read_and_one_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "other.toml"
    named.write_text("[service]\nport = 7\n")
    monkeypatch.setenv("THALWEG_CONFIG_FILE", str(named))
    assert ServiceSettings.load().service.port == 7
    monkeypatch.setenv("THALWEG_CONFIG_FILE", "nowhere.toml")
    with pytest.raises(WrongSetting, match=r"nowhere\.toml"):
        ServiceSettings.load()


def test_blocks_of_the_other_process_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_WORKER__PARSERS", "many")
    assert ServiceSettings.load().service.port == 8420


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("THALWEG_SERVICE__PORT", "99999", "THALWEG_SERVICE__PORT: .*65535.*'99999'"),
        ("THALWEG_SERVICE__PROT", "1", "THALWEG_SERVICE__PROT: there is no such setting"),
        ("THALWEG_SERVICE__HOST", "0.0.0.0", "without an API key.*THALWEG_SERVICE__API_KEY"),
        ("THALWEG_EMBEDDING__PROVIDER", "magic", "THALWEG_EMBEDDING__PROVIDER"),
        ("THALWEG_SERVICE__ALLOWED_HOSTS", "[not json", "cannot be read"),
    ],
)
def test_a_wrong_setting_is_named_with_what_it_should_be(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(WrongSetting, match=says) as caught:
        ServiceSettings.load()
    assert caught.value.exit_code == Exit.USAGE


def test_a_key_that_is_too_short_is_told_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_SERVICE__API_KEY", "hunter2")
    with pytest.raises(WrongSetting) as caught:
        ServiceSettings.load()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.53", "::1"])
def test_loopback_needs_no_key(host: str) -> None:
    assert ServiceBlock(host=host).is_loopback


def test_a_public_address_is_taken_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_SERVICE__API_KEY", "a-key-of-sixteen-or-more")
    settings = ServiceSettings.load({"service": {"host": "0.0.0.0"}})
    assert not settings.service.is_loopback
    assert "sixteen" not in repr(settings)


@pytest.mark.parametrize(
    ("base_url", "says"),
    [
        ("ftp://example.org", "http://"),
        ("http://me:hunter2@example.org/v1", "a key goes to `api_key`"),
        ("http://example.org/v1?key=hunter2", "a key goes to `api_key`"),
        ("", "THALWEG_EMBEDDING__BASE_URL"),
    ],
)
def test_an_endpoint_is_named_by_a_plain_address(monkeypatch: pytest.MonkeyPatch, base_url: str, says: str) -> None:
    monkeypatch.setenv("THALWEG_EMBEDDING__PROVIDER", "openai")
    monkeypatch.setenv("THALWEG_EMBEDDING__BASE_URL", base_url)
    with pytest.raises(WrongSetting, match=says) as caught:
        ServiceSettings.load()
    assert "hunter2" not in str(caught.value)


def test_the_key_of_an_endpoint_is_read_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_EMBEDDING__BASE_URL", "http://localhost:1/v1/")
    monkeypatch.setenv("THALWEG_EMBEDDING__API_KEY", " sk-hunter2 \n")
    embedding = ServiceSettings.load().embedding
    assert embedding.api_key is not None
    assert embedding.api_key.get_secret_value() == "sk-hunter2"
    assert embedding.base_url == "http://localhost:1/v1"
    assert "hunter2" not in repr(embedding) + str(embedding.model_dump()) + embedding.model_dump_json()
    monkeypatch.setenv("THALWEG_EMBEDDING__API_KEY", "sk hunter2")
    with pytest.raises(WrongSetting, match="without blanks") as caught:
        ServiceSettings.load()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ({"PROVIDER": "cross-encoder"}, "set THALWEG_RERANKER__MODEL"),
        ({"PROVIDER": "endpoint"}, "set THALWEG_RERANKER__BASE_URL"),
        ({"PROVIDER": "magic"}, "THALWEG_RERANKER__PROVIDER: .*'none', 'cross-encoder' or 'endpoint'"),
        ({"BASE_URL": "http://me:hunter2@example.org/v1"}, "a key goes to `api_key`"),
        ({"API_KEY": "sk hunter2"}, "without blanks"),
        ({"DEPTH": "1"}, "THALWEG_RERANKER__DEPTH: .*2"),
        ({"FORM": "rows"}, "'documents' or 'texts'"),
    ],
)
def test_a_re_ranker_that_cannot_be_is_told(monkeypatch: pytest.MonkeyPatch, block: dict[str, str], says: str) -> None:
    for name, value in block.items():
        monkeypatch.setenv(f"THALWEG_RERANKER__{name}", value)
    with pytest.raises(WrongSetting, match=says) as caught:
        ServiceSettings.load()
    assert "hunter2" not in str(caught.value)


def test_a_re_ranker_is_off_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not ServiceSettings.load().reranker.configured
    monkeypatch.setenv("THALWEG_RERANKER__PROVIDER", "endpoint")
    monkeypatch.setenv("THALWEG_RERANKER__BASE_URL", "http://localhost:8000/v1/")
    monkeypatch.setenv("THALWEG_RERANKER__API_KEY", "sk-hunter2")
    reranker = ServiceSettings.load().reranker
    assert (reranker.configured, reranker.base_url, reranker.depth) == (True, "http://localhost:8000/v1", 30)
    assert "hunter2" not in repr(reranker) + reranker.model_dump_json()
    assert RerankerSettings(provider="cross-encoder", model="a/folder").configured


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"READ_API_KEY": "sixteen-letters-1"}, "set THALWEG_SERVICE__API_KEY too"),
        (
            {"READ_API_KEY": "sixteen-letters-1", "API_KEY": "sixteen-letters-1"},
            "choose another for THALWEG_SERVICE__READ_API_KEY",
        ),
        ({"READ_API_KEY": "short-letters-1", "API_KEY": "sixteen-letters-1"}, "THALWEG_SERVICE__READ_API_KEY.*16"),
    ],
)
def test_a_key_that_only_reads_goes_beside_another(
    keys: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, key in keys.items():
        monkeypatch.setenv(f"THALWEG_SERVICE__{name}", key)
    with pytest.raises(WrongSetting, match=says) as wrong:
        ServiceSettings.load()
    assert "letters-1" not in str(wrong.value)
