"""Constants of the product with other values: in this process by `changed`; in a process of its own, and in those that
its `thalweg up` starts, by `python -m tests.support.constants COMMAND`, which takes them from the environment."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

ENVIRONMENT = "TEST_CONSTANTS"
PROGRAM = "tests.support.constants"
PACKAGES = {"worker": "streams.", "serve": "query_api."}  # of which a command reads constants


def given(constants: Mapping[str, Any]) -> dict[str, str]:
    """The environment that hands them to PROGRAM, each named as `streams.worker_agents.BATCH_RECORDS`."""
    return {ENVIRONMENT: json.dumps(dict(constants))}


@contextmanager
def changed(constants: Mapping[str, Any]) -> Iterator[None]:
    """Until the end of the block."""
    before = change(constants)
    try:
        yield
    finally:
        change(before)


def change(constants: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the former values. Raises AttributeError for a constant that is not there."""
    before = {}
    for path, value in constants.items():
        module, _, name = path.rpartition(".")
        place = import_module(module)
        before[path] = getattr(place, name)
        setattr(place, name, value)
    return before


def main() -> None:
    from streams.supervisor.supervisor import Supervisor
    from thalweg import main as thalweg

    Supervisor.__init__.__kwdefaults__["command"] = (sys.executable, "-m", PROGRAM)
    constants = json.loads(os.environ[ENVIRONMENT])
    package = PACKAGES.get(sys.argv[1])
    change({path: value for path, value in constants.items() if package and path.startswith(package)})
    thalweg()


if __name__ == "__main__":
    main()
