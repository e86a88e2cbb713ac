"""The data directory as a place that one `up`, and one worker, may use at a time."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from schemas.errors import InUse, NoAccess, WrongSetting

UP_LOCK = "up.lock"
WORKER_LOCK = "worker.lock"


def make_directory(path: Path) -> Path:
    """The absolute path of the directory, made where it is missing, for this user alone.

    Raises NoAccess when it may not be made, WrongSetting when something else has its name.
    """
    path = path.absolute()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _explained(error, path) from error
    return path


def set_umask(data_dir: Path) -> str | None:
    """Let what this process and its children make from now on be read by those only who may read the directory itself.

    Its mode is the setting: 700 as it is made, 750 where a service of another user in the group is to read it. Returns
    a warning where every user of the machine may.
    """
    mode = stat.S_IMODE(data_dir.stat().st_mode)
    os.umask(0o022 | (~mode & 0o077))
    if not mode & 0o007:
        return None
    return (
        f"Every user of this machine may look into the data directory {data_dir}. Unless that is meant: "
        f"chmod -R o-rwx {data_dir}"
    )


@contextmanager
def locked(data_dir: Path, lock_name: str, holder: str) -> Iterator[None]:
    """Holds the directory for this process; the lock goes with the process, however it ends.

    Raises InUse when another process holds it, and NoAccess when nothing can be written there.
    """
    lock = FileLock(data_dir / lock_name, mode=0o600)  # made before anybody looked at who may read the directory
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InUse(
            f"Another {holder} is using the data directory {data_dir}. Stop it, or choose another with --data-dir."
        ) from error
    except OSError as error:
        raise _explained(error, data_dir) from error
    try:
        yield
    finally:
        lock.release()


def require_free(data_dir: Path, lock_name: str, holder: str) -> None:
    """Raises InUse when another process holds the lock just now."""
    with locked(data_dir, lock_name, holder):
        pass


def _explained(error: OSError, path: Path) -> Exception:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return NoAccess(f"No permission to write in {path}. Choose another directory with --data-dir.")
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return WrongSetting(
            f"{path} cannot be the data directory: a file is in the way. Choose another with --data-dir."
        )
    return error
