"""Where downloads are kept, and that nothing half-done stays there."""

from pathlib import Path

import pytest

from indexer.runtime.user_cache import download_directory, user_cache_dir
from schemas.errors import NoAccess


def test_the_cache_is_where_the_user_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert user_cache_dir({"XDG_CACHE_HOME": "/caches"}, "kafka") == Path("/caches/thalweg/kafka")
    assert user_cache_dir({}, "kafka") == tmp_path / ".cache/thalweg/kafka"
    assert user_cache_dir({"XDG_CACHE_HOME": "relative"}, "kafka") == tmp_path / ".cache/thalweg/kafka"


def test_what_is_not_moved_out_of_a_download_is_deleted_also_after_a_kill(tmp_path: Path) -> None:
    (tmp_path / ".fetch-of-a-killed-process").mkdir()

    def download_half() -> None:
        with download_directory(tmp_path, "things") as directory:
            (directory / "half").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download_half()

    assert [path.name for path in tmp_path.iterdir()] == ["fetch.lock"]


def test_a_cache_that_cannot_be_written_names_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(NoAccess, match=r"keep things.*XDG_CACHE_HOME"), download_directory(tmp_path, "things"):
        raise PermissionError(13, "Permission denied")
