"""The data directory as a place that one `up`, and one worker, may use at a time."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from schemas.exits import InUse, NoAccess, WrongSetting

UP_LOCK = "up.lock"
WORKER_LOCK = "worker.lock"


def make_directory(path: Path) -> Path:
    """The absolute path of the directory, made where it is missing.

    Raises NoAccess when it may not be made, WrongSetting when something else has its name.
    """
    path = path.absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _explained(error, path) from error
    return path


@contextmanager
def held(data_dir: Path, lock_name: str, holder: str) -> Iterator[None]:
    """Holds the directory for this process; the lock goes with the process, however it ends.

    Raises InUse when another process holds it, and NoAccess when nothing can be written there.
    """
    lock = FileLock(data_dir / lock_name)
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
    with held(data_dir, lock_name, holder):
        pass


def _explained(error: OSError, path: Path) -> Exception:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return NoAccess(f"No permission to write in {path}. Choose another directory with --data-dir.")
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return WrongSetting(
            f"{path} cannot be the data directory: a file is in the way. Choose another with --data-dir."
        )
    return error
