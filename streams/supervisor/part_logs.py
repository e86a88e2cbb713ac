"""The log files of the parts: kept small, and shown in the terminal where asked for."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from streams.child_processes import file_size

LARGEST_LOG_BYTES = 16 * 1024 * 1024
_FOLLOW_SECONDS = 0.2
_TRIM_SECONDS = 10.0


def trim(log_file: Path) -> None:
    """Keeps a large log as `<name>.1` and empties it, also while a process appends to it.

    Lines written during the copy may be missing from both.
    """
    if file_size(log_file) > LARGEST_LOG_BYTES:
        shutil.copyfile(log_file, log_file.with_name(f"{log_file.name}.1"))
        with log_file.open("r+b") as file:
            file.truncate(0)


def readable(line: str) -> str:
    """A log line for people: of one in JSON the event, the failure and its traceback."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    if not isinstance(entry, dict) or "event" not in entry:
        return line
    what = ": ".join(str(entry[name]) for name in ("event", "error") if entry.get(name))
    return "\n".join(str(each) for each in (what, entry.get("exception")) if each)


async def keep_trimmed(log_files: list[Path]) -> None:
    """Trims the logs again and again, until cancelled."""
    while True:
        for log_file in log_files:
            await asyncio.to_thread(trim, log_file)
        await asyncio.sleep(_TRIM_SECONDS)


async def follow(log_file: Path, name: str, write: Callable[[str], None]) -> None:
    """Writes each line that the file gets from now on, after the part's name, until cancelled."""
    position = file_size(log_file)
    remainder = b""
    while True:
        size = file_size(log_file)
        if size < position:
            position, remainder = 0, b""
        if size > position:
            with log_file.open("rb") as file:
                file.seek(position)
                remainder += file.read(size - position)
            position = size
            *lines, remainder = remainder.split(b"\n")
            for line in lines:
                write(f"{name} | {line.decode('utf-8', 'replace')}")
        await asyncio.sleep(_FOLLOW_SECONDS)
