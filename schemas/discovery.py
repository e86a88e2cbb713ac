"""How a command in one terminal finds what `thalweg up` runs in another: a small file in the data directory."""

import os
from pathlib import Path

import msgspec

FILE_NAME = "running.json"


class Running(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is running on this data directory, or just coming up: Kafka answers, the worker and the service soon do.
    A hint, not a promise: the file may outlive a killed process."""

    pid: int
    kafka: str
    service_url: str


def announce(data_dir: Path, running: Running) -> None:
    """Write the file atomically."""
    data_dir.mkdir(parents=True, exist_ok=True)
    temporary = data_dir / f".{FILE_NAME}.{os.getpid()}"
    temporary.write_bytes(msgspec.json.encode(running))
    temporary.replace(data_dir / FILE_NAME)


def withdraw(data_dir: Path) -> None:
    (data_dir / FILE_NAME).unlink(missing_ok=True)


def find_running(data_dir: Path) -> Running | None:
    """What the file says, or None when there is no readable file or its process is gone."""
    try:
        running = msgspec.json.decode((data_dir / FILE_NAME).read_bytes(), type=Running)
        os.kill(running.pid, 0)
    except PermissionError:  # alive, and someone else's
        return running
    except (OSError, msgspec.DecodeError):
        return None
    return running
