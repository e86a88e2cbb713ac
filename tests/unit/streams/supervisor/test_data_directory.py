"""A data directory serves one `up`, and one worker, at a time."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.errors import InUse, NoAccess, WrongSetting
from streams.supervisor.data_directory import UP_LOCK, WORKER_LOCK, locked, make_directory, require_free, set_umask


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    assert make_directory(tmp_path / "a" / "b").is_dir()


def test_a_file_in_the_way_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(WrongSetting, match="a file is in the way"):
        make_directory(tmp_path / "file")
    with pytest.raises(WrongSetting, match="a file is in the way"):
        make_directory(tmp_path / "file" / "below")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(NoAccess, match="--data-dir"):
        make_directory(tmp_path / "data")
    with pytest.raises(NoAccess, match="--data-dir"), locked(tmp_path, UP_LOCK, "'thalweg up'"):
        pass


def test_a_held_directory_is_refused_until_it_is_let_go(tmp_path: Path) -> None:
    with locked(tmp_path, WORKER_LOCK, "worker"):
        require_free(tmp_path, UP_LOCK, "'thalweg up'")
        with pytest.raises(InUse, match="Another worker is using the data directory"):
            require_free(tmp_path, WORKER_LOCK, "worker")

    require_free(tmp_path, WORKER_LOCK, "worker")


@pytest.fixture
def _umask() -> Iterator[None]:
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_umask")
@pytest.mark.parametrize(
    ("chosen", "made"), [(None, 0o600), (0o700, 0o600), (0o750, 0o640), (0o770, 0o640), (0o755, 0o644)]
)
def test_who_may_read_the_directory_may_read_what_is_made_in_it(tmp_path: Path, chosen: int | None, made: int) -> None:
    data_dir = make_directory(tmp_path / "data")
    if chosen is not None:
        data_dir.chmod(chosen)

    warning = set_umask(make_directory(data_dir))

    (data_dir / "file").touch()
    assert stat.S_IMODE((data_dir / "file").stat().st_mode) == made
    assert stat.S_IMODE(data_dir.stat().st_mode) == (chosen or 0o700), "what somebody chose stays"
    assert (warning is not None) == (chosen == 0o755)
