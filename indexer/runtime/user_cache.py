"""The user's cache: what is downloaded once for all data directories, such as Kafka's jars and the packaged model."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from schemas.errors import NoAccess

_PREFIX = ".fetch-"


def user_cache_dir(environment: Mapping[str, str], name: str) -> Path:
    """`$XDG_CACHE_HOME/thalweg/<name>`, or `~/.cache/thalweg/<name>`."""
    root = Path(environment.get("XDG_CACHE_HOME", ""))
    return (root if root.is_absolute() else Path.home() / ".cache") / "thalweg" / name


@contextmanager
def download_directory(cache_dir: Path, what: str) -> Iterator[Path]:
    """An empty directory inside `cache_dir` to download `what` into; what is not moved out of it is deleted at the end.

    One process at a time has one; others wait. Look again then: what is missing may have come meanwhile.
    Raises NoAccess.
    """
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        with FileLock(cache_dir / "fetch.lock"):
            for left_over in cache_dir.glob(f"{_PREFIX}*"):  # by a process that was killed
                shutil.rmtree(left_over, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=cache_dir, ignore_cleanup_errors=True) as directory:
                yield Path(directory)
    except PermissionError as error:
        raise NoAccess(
            f"No permission to keep {what} in {cache_dir}. Set XDG_CACHE_HOME to a directory you can write to."
        ) from error
