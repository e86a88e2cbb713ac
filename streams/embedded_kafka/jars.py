"""Kafka's jars: pinned by `kafka.lock.toml`, fetched from Maven Central once, kept in the user's cache."""

import sys
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from indexer.runtime.user_cache import download_directory
from schemas.errors import Failure, Unreachable
from schemas.progress_bars import Bar, progress_bars

if TYPE_CHECKING:
    from jgo.maven import MavenContext

LOCK_FILE_NAME = "kafka.lock.toml"
_PARALLEL_DOWNLOADS = 8
_ATTEMPTS = 3
_TIMEOUT_SECONDS = 30

FetchProgress = Callable[[int, int], None]
"""Called with (jars here, jars in all) at the start of a fetch and after each jar."""


class LockedJar(NamedTuple):
    """One jar by its Maven coordinate and the SHA-256 (hex) it must have."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


class WrongChecksum(Failure):
    """A fetched jar is not the one that was pinned."""


def locked_jars() -> tuple[LockedJar, ...]:
    """The pinned jars, Kafka itself first."""
    lock = tomllib.loads(files("streams.embedded_kafka").joinpath(LOCK_FILE_NAME).read_text(encoding="utf-8"))
    return tuple(
        LockedJar(jar["groupId"], jar["artifactId"], jar["version"], jar["sha256"]) for jar in lock["dependencies"]
    )


def ensure_jars(cache_dir: Path, progress: FetchProgress | None = None) -> list[Path]:
    """The paths of all jars, fetched and checked when they are not yet here.

    Several processes may call it at once: one fetches, the others wait for it. A jar appears under its own name only
    when its checksum is right, so an interrupted fetch continues where it stopped.
    Raises Unreachable, WrongChecksum or NoAccess.
    """
    jars = locked_jars()
    place = cache_dir / jars[0].version
    paths = [place / jar.file_name for jar in jars]
    if all(path.exists() for path in paths):
        return paths
    with download_directory(cache_dir, "Kafka's jars") as directory:
        place.mkdir(exist_ok=True)
        missing = [jar for jar in jars if not (place / jar.file_name).exists()]
        _fetch(missing, directory, place, len(jars), progress or _ignore)
    return paths


def _fetch(missing: Sequence[LockedJar], staging: Path, place: Path, total: int, report: FetchProgress) -> None:
    from jgo.config import GlobalSettings  # imported here: only a first start pays for it
    from jgo.constants import MAVEN_CENTRAL_URL
    from jgo.maven import MavenContext

    done = total - len(missing)
    report(done, total)
    maven = MavenContext(
        repo_cache=staging,
        remote_repos={"central": MAVEN_CENTRAL_URL, **GlobalSettings.load().repositories},
        timeout=_TIMEOUT_SECONDS,
    )
    with ThreadPoolExecutor(_PARALLEL_DOWNLOADS, thread_name_prefix="jars") as pool:
        fetches = [pool.submit(_fetch_one, maven, jar, place) for jar in missing]
        try:
            for fetch in as_completed(fetches):
                fetch.result()
                done += 1
                report(done, total)
        finally:
            pool.shutdown(cancel_futures=True)


def _ignore(_here: int, _in_all: int) -> None:
    """Nobody wants to see the progress."""


def _fetch_one(maven: "MavenContext", jar: LockedJar, place: Path) -> None:
    from indexer.integrity.files import file_checksum  # pyarrow, as above

    artifact = maven.project(jar.group, jar.artifact).at_version(jar.version).artifact()
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            fetched = artifact.resolve()
            break
        except PermissionError:
            raise
        except (OSError, RuntimeError) as error:  # what requests raises are OSErrors
            if artifact.cached_path is not None:
                artifact.cached_path.unlink(missing_ok=True)
            if attempt == _ATTEMPTS:
                raise Unreachable(
                    f"Could not fetch {jar.file_name} of Kafka from Maven Central ({error}). Check the network and "
                    "start again, or set THALWEG_KAFKA__BOOTSTRAP_SERVERS to a Kafka you have."
                ) from error
    found = file_checksum(fetched)
    if found != jar.sha256:
        raise WrongChecksum(
            f"{jar.file_name} has the SHA-256 {found}, but {LOCK_FILE_NAME} pins {jar.sha256}. Something between here "
            "and Maven Central altered it: it was not kept."
        )
    fetched.replace(place / jar.file_name)


_TEXT = "Fetching Apache Kafka (once, about 45 MB)"


class JarProgress:
    """A progress bar on standard error, or one line there when it is not a terminal."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._shown = ExitStack()

    def __call__(self, here: int, in_all: int) -> None:
        """Takes (jars here, jars in all) as `ensure_jars` reports them."""
        if not sys.stderr.isatty():
            if here == 0:
                print(f"{_TEXT} …", file=sys.stderr, flush=True)
            return
        if self._bar is None:
            self._bar = self._shown.enter_context(progress_bars())(_TEXT, in_all)
        self._bar.set(here)
        if here >= in_all:
            self.close()

    def close(self) -> None:
        """Gives the terminal back. May be called again."""
        self._shown.close()
        self._bar = None
