"""The pinned jars, and how they come into the cache."""

import hashlib
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import Unreachable
from streams.embedded_kafka import jars
from streams.embedded_kafka.jars import LockedJar, WrongChecksum, ensure_jars, locked_jars

SPECIFICATION = Path(__file__).parents[4] / "deploy" / "kafka" / "jgo.toml"
CONTENT = b"a jar"
JARS = tuple(
    LockedJar("org.example", name, "1.0", hashlib.sha256(CONTENT + name.encode()).hexdigest()) for name in ("a", "b")
)


class FakeMaven:
    """Stands for Maven Central: `a` and `b` are there unless `missing`, and counted."""

    def __init__(self, staging: Path, missing: str = "", spoiled: str = "") -> None:
        self.staging, self.missing, self.spoiled = staging, missing, spoiled
        self.downloads: list[str] = []

    def project(self, _group: str, artifact: str) -> "FakeArtifact":
        return FakeArtifact(self, artifact)


class FakeArtifact:
    def __init__(self, maven: FakeMaven, name: str) -> None:
        self.maven, self.name = maven, name
        self.cached_path = maven.staging / f"{name}.jar"

    def at_version(self, _version: str) -> "FakeArtifact":
        return self

    def artifact(self) -> "FakeArtifact":
        return self

    def resolve(self) -> Path:
        self.maven.downloads.append(self.name)
        if self.name == self.maven.missing:
            raise RuntimeError("not found in remote repositories")
        content = b"spoiled" if self.name == self.maven.spoiled else CONTENT + self.name.encode()
        self.cached_path.write_bytes(content)
        return self.cached_path


@pytest.fixture
def central(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replaces the network; set `missing` or `spoiled` in it, read `mavens` from it."""
    behaviour: dict[str, Any] = {"mavens": []}

    def context(repo_cache: Path, **_: object) -> FakeMaven:
        maven = FakeMaven(repo_cache, behaviour.get("missing", ""), behaviour.get("spoiled", ""))
        behaviour["mavens"].append(maven)
        return maven

    monkeypatch.setattr("jgo.maven.MavenContext", context)
    monkeypatch.setattr(jars, "locked_jars", lambda: JARS)
    return behaviour


def test_every_jar_is_pinned_and_the_lock_names_no_host() -> None:
    locked = locked_jars()

    assert locked[0].file_name == "kafka_2.13-4.3.1.jar"
    assert all(len(jar.sha256) == 64 for jar in locked)
    assert len({jar.file_name for jar in locked}) == len(locked)
    text = Path(jars.__file__).with_name(jars.LOCK_FILE_NAME).read_text()
    assert "://" not in text


def test_the_lock_is_of_what_the_specification_asks() -> None:
    asked = tomllib.loads(SPECIFICATION.read_text())["dependencies"]["coordinates"]
    locked = {f"{jar.group}:{jar.artifact}:{jar.version}" for jar in locked_jars()}

    assert {coordinate.rstrip("!") for coordinate in asked} <= locked


def test_jars_are_fetched_once(tmp_path: Path, central: dict[str, Any]) -> None:
    progress: list[tuple[int, int]] = []

    first = ensure_jars(tmp_path, lambda here, in_all: progress.append((here, in_all)))
    second = ensure_jars(tmp_path)

    assert first == second == [tmp_path / "1.0" / "a-1.0.jar", tmp_path / "1.0" / "b-1.0.jar"]
    assert sorted(central["mavens"][0].downloads) == ["a", "b"]
    assert len(central["mavens"]) == 1
    assert progress == [(0, 2), (1, 2), (2, 2)]


def test_two_starts_at_once_fetch_once(tmp_path: Path, central: dict[str, Any]) -> None:
    threads = [threading.Thread(target=ensure_jars, args=(tmp_path,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(name for maven in central["mavens"] for name in maven.downloads) == ["a", "b"]


def test_a_jar_with_another_checksum_is_not_kept(tmp_path: Path, central: dict[str, Any]) -> None:
    central["spoiled"] = "b"

    with pytest.raises(WrongChecksum, match=r"b-1\.0\.jar has the SHA-256"):
        ensure_jars(tmp_path)

    assert not (tmp_path / "1.0" / "b-1.0.jar").exists()


def test_an_interrupted_fetch_goes_on_where_it_stopped(tmp_path: Path, central: dict[str, Any]) -> None:
    central["missing"] = "b"
    with pytest.raises(Unreachable, match="THALWEG_KAFKA__BOOTSTRAP_SERVERS"):
        ensure_jars(tmp_path)
    (tmp_path / "1.0" / "a-1.0.jar").write_bytes(b"kept from before")

    central["missing"] = ""
    ensure_jars(tmp_path)

    assert central["mavens"][1].downloads == ["b"]
    assert [path.name for path in sorted((tmp_path / "1.0").iterdir())] == ["a-1.0.jar", "b-1.0.jar"]
