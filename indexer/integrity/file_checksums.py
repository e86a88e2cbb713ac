"""Checksums of the LanceDB files, and what they say about the files on disk.

Lance writes each file under a temporary name and renames it; it never changes one afterwards. So one checksum a file,
recorded once, tells every later change of a byte: in rows, vectors, indexes, deletions, and in the manifests of the
versions. They stand in one file beside the tables, a line a file: `<SHA-256> <path> <CRC-32 of the two>`.
"""

import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from indexer.integrity.damage import Damage

CHECKSUMS = "checksums"
SUFFIX = ".lance"
_REWRITTEN = "latest_version_hint.json"  # Lance takes a wrong one for none
VERSIONS = "_versions"
_MANIFEST = ".manifest"


@dataclass
class RecordedChecksums:
    """The checksums by path in the tables' folder; `broken_lines` are lines that do not match their own."""

    by_path: dict[str, str] = field(default_factory=dict)
    broken_lines: int = 0


def file_checksum(path: Path) -> str:
    """The SHA-256 of a file in hex digits; 1.5 GB a second on the processor it was measured on."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def line_of(path: str, checksum: str) -> str:
    said = f"{checksum} {path}"
    return f"{said} {zlib.crc32(said.encode()):08x}\n"


def read_checksums(lance_dir: Path) -> RecordedChecksums:
    """What is recorded; nothing where the tables are of a program that recorded none."""
    try:
        content = (lance_dir / CHECKSUMS).read_bytes()
    except FileNotFoundError:
        return RecordedChecksums()
    found = RecordedChecksums()
    lines = content.decode(errors="replace").split("\n")
    for line in lines[:-1]:  # what follows the last line's end is being written just now
        checksum, _, rest = line.partition(" ")
        path = rest.rpartition(" ")[0]
        if line_of(path, checksum) == f"{line}\n":
            found.by_path[path] = checksum
        else:
            found.broken_lines += 1
    return found


def immutable_files(lance_dir: Path, table: str) -> Iterator[str]:
    """The paths, in the tables' folder, of a table's files that never change: all but temporary ones and the hint."""
    root = lance_dir / f"{table}{SUFFIX}"
    for folder, _, names in os.walk(root):
        relative = os.path.relpath(folder, lance_dir)
        for name in names:
            if not name.startswith(".tmp") and "#" not in name and name != _REWRITTEN:
                yield f"{relative}/{name}"


def table_of(path: str) -> str:
    """The table that a file belongs to."""
    return path.partition("/")[0].removesuffix(SUFFIX)


def missing_or_broken(lance_dir: Path, recorded: RecordedChecksums, required: Iterable[str]) -> list[Damage]:
    """What is seen without reading the files: a table of the `required` ones, or the newest version of any, is gone; a
    line of the checksums is not as written."""
    damage = []
    newest: dict[str, str] = dict.fromkeys(required, "")
    for path in recorded.by_path:
        if path.endswith(_MANIFEST):
            table = table_of(path)
            newest[table] = min(newest.get(table) or path, path)  # Lance counts the names of its versions down
    for table, path in sorted(newest.items()):
        if not (lance_dir / f"{table}{SUFFIX}").exists():
            damage.append(Damage(f"lance/{table}{SUFFIX}", "is gone"))
        elif path and _newest_manifest(lance_dir, table) > path:
            damage.append(Damage(f"lance/{path}", "is gone, and with it the newest version of its table"))
    if recorded.broken_lines:
        damage.append(Damage(f"lance/{CHECKSUMS}", f"has {recorded.broken_lines} lines that are not as written"))
    return damage


def _newest_manifest(lance_dir: Path, table: str) -> str:
    """Its path; one behind all others where there is none."""
    folder = f"{table}{SUFFIX}/{VERSIONS}"
    return min((f"{folder}/{file.name}" for file in (lance_dir / folder).glob(f"*{_MANIFEST}")), default=f"{folder}/~")


def damage_among(lance_dir: Path, recorded: RecordedChecksums, paths: Iterable[str]) -> list[Damage]:
    """Read these files, and tell which are not as they were recorded. One that maintenance removed meanwhile is none
    of them."""
    damage = []
    for path in paths:
        try:
            held = file_checksum(lance_dir / path)
        except FileNotFoundError:
            continue
        except OSError as error:
            damage.append(Damage(f"lance/{path}", f"cannot be read: {error.strerror}"))
            continue
        if held != recorded.by_path[path]:
            damage.append(Damage(f"lance/{path}", "does not match its checksum"))
    return damage
