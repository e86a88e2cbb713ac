"""A data directory serves one `up`, and one worker, at a time."""

import os
from pathlib import Path

import pytest

from schemas.exits import InUse, NoAccess, WrongSetting
from streams.machine.data_directory import UP_LOCK, WORKER_LOCK, held, make_directory, require_free


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
    with pytest.raises(NoAccess, match="--data-dir"), held(tmp_path, UP_LOCK, "'thalweg up'"):
        pass


def test_a_held_directory_is_refused_until_it_is_let_go(tmp_path: Path) -> None:
    with held(tmp_path, WORKER_LOCK, "worker"):
        require_free(tmp_path, UP_LOCK, "'thalweg up'")
        with pytest.raises(InUse, match="Another worker is using the data directory"):
            require_free(tmp_path, WORKER_LOCK, "worker")

    require_free(tmp_path, WORKER_LOCK, "worker")
