"""Checksums of the stores' files.

Lance writes each file under a temporary name and renames it; it never changes one afterwards. So a checksum recorded
once for each file reveals any later change: in rows, vectors, indexes, deletions and manifests. The checksums are lines
of one file beside the tables: `<SHA-256> <path> <CRC-32 of the two>`. Snapshots of the graph have theirs in their
manifests (`indexer.read.arrow_folders`).
"""

import hashlib
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from indexer.errors import HEALING, DamagedStore
from indexer.generation_folders import Generation, replace_file
from indexer.schema import CHUNKS, DOCUMENTS, FEEDBACK, PASSAGES, POSITIONS, RETRIEVALS

CHECKSUMS = "checksums"
SUFFIX = ".lance"
VERSIONS = "_versions"
FILES_PER_STEP = 32
SHOWN = 5
MIN_STALE_LINES = 500  # before the file of checksums is written again without them
CREATED_BEFORE_DOCUMENTS = (CHUNKS, PASSAGES, POSITIONS, RETRIEVALS)
INDEXES = "_indices"
_VERSION_HINT = "latest_version_hint.json"  # rewritten; Lance ignores a wrong one
_MANIFEST = ".manifest"
_NEWEST_NAME = 2**64 - 1  # Lance counts the names of versions down from here
_REPLACED_BY_WORKER = ("snapshots/", "manifest.")


class Damage(NamedTuple):
    """A damaged file: `path` begins with the store's folder in the generation."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


def is_recoverable(damage: Damage) -> bool:
    """Whether it is in the tables, and in what can be made again beside intact documents."""
    folder = damage.path.split("/")[2:3]
    return is_in_tables(damage, (RETRIEVALS, FEEDBACK)) or folder == [INDEXES] or damage.path == f"lance/{CHECKSUMS}"


def damage_advice(damage: Sequence[Damage]) -> str:
    """What is done about it, and what to do."""
    if all(each.path.startswith(_REPLACED_BY_WORKER) or is_recoverable(each) for each in damage):
        return "It is passed over, and the worker replaces it with its next snapshot or start: nothing is to be done."
    return HEALING


def damage_message(damage: Sequence[Damage]) -> str:
    """What is damaged, and how to repair it."""
    shown = "; ".join(map(str, damage[:SHOWN]))
    more = f"; and {len(damage) - SHOWN} more" if len(damage) > SHOWN else ""
    return f"Damaged on disk: {shown}{more}. {damage_advice(damage)}"


@dataclass
class RecordedChecksums:
    """The checksums by path in the tables' folder, and the number of lines that do not match their own.

    `is_cut`: there is no list, or it does not end with a line; as it does while a line is being written.
    """

    by_path: dict[str, str] = field(default_factory=dict)
    broken_lines: int = 0
    is_cut: bool = False


def file_checksum(path: Path) -> str:
    """The SHA-256 of a file in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_line(path: str, checksum: str) -> str:
    content = f"{checksum} {path}"
    return f"{content} {zlib.crc32(content.encode()):08x}\n"


def read_checksums(lance_dir: Path) -> RecordedChecksums:
    """The recorded checksums."""
    try:
        content = (lance_dir / CHECKSUMS).read_bytes()
    except FileNotFoundError:
        return RecordedChecksums(is_cut=True)
    recorded = RecordedChecksums(is_cut=not content.endswith(b"\n"))
    lines = content.decode(errors="replace").split("\n")
    for line in lines[:-1]:  # the rest after the last line end is being written
        checksum, _, rest = line.partition(" ")
        path = rest.rpartition(" ")[0]
        if checksum_line(path, checksum) == f"{line}\n":
            recorded.by_path[path] = checksum
        else:
            recorded.broken_lines += 1
    return recorded


def immutable_files(lance_dir: Path, table: str) -> Iterator[str]:
    """The paths, in the tables' folder, of a table's files that never change."""
    root = lance_dir / f"{table}{SUFFIX}"
    for folder, _, names in os.walk(root):
        relative = os.path.relpath(folder, lance_dir)
        for name in names:
            if not name.startswith(".tmp") and "#" not in name and name != _VERSION_HINT:
                yield f"{relative}/{name}"


def files_of_version(lance_dir: Path, table: str, version: int) -> list[str]:
    """The paths, in the tables' folder, of what a reader of this version needs: its manifest, the data, indexes and
    transactions that the manifest names, and all deletions, whose names it does not spell.

    Raises FileNotFoundError where the version is kept no more.
    """
    pinned = f"{table}{SUFFIX}/{VERSIONS}/{_NEWEST_NAME - version:020d}{_MANIFEST}"
    manifest = (lance_dir / pinned).read_bytes()

    def is_needed(path: str) -> bool:
        folder, name = path.split("/")[1:3]
        if folder == INDEXES:
            return UUID(name).bytes in manifest
        return folder == "_deletions" or (folder != VERSIONS and name.encode() in manifest)

    return [pinned, *filter(is_needed, immutable_files(lance_dir, table))]


def table_of(path: str) -> str:
    """The table that a file belongs to."""
    return path.partition("/")[0].removesuffix(SUFFIX)


def require_intact_tables(generation: Generation, tables: Collection[str] = ()) -> None:
    """Read every file of these tables once, by default of all. Raises DamagedStore with how to repair it."""
    recorded = read_checksums(generation.lance_dir)
    damage = missing_tables(generation, recorded)
    paths = [path for path in recorded.by_path if not tables or table_of(path) in tables]
    damage += damaged_files(generation.lance_dir, recorded, paths)
    if damage:
        raise DamagedStore(damage_message(damage))


def missing_tables(generation: Generation, recorded: RecordedChecksums) -> list[Damage]:
    """Damage visible without reading files: missing tables or newest versions, and broken checksum lines."""
    lance_dir = generation.lance_dir
    damage = []
    newest: dict[str, str] = dict.fromkeys(_required_tables(generation), "")
    for path in recorded.by_path:
        if path.endswith(_MANIFEST):
            table = table_of(path)
            newest[table] = min(newest.get(table) or path, path)  # Lance counts the names of versions down
    for table, path in sorted(newest.items()):
        if not (lance_dir / f"{table}{SUFFIX}").exists():
            damage.append(Damage(f"lance/{table}{SUFFIX}", "is gone"))
        elif path and _newest_manifest(lance_dir, table) > path:
            damage.append(Damage(f"lance/{path}", "is gone, and with it the newest version of its table"))
    if recorded.broken_lines:
        damage.append(Damage(f"lance/{CHECKSUMS}", f"has {recorded.broken_lines} lines that are not as written"))
    return damage


def damaged_files(lance_dir: Path, recorded: RecordedChecksums, paths: Iterable[str]) -> list[Damage]:
    """Those of these files that do not match their recorded checksum; files removed by maintenance are ignored."""
    damage = []
    for path in paths:
        try:
            checksum = file_checksum(lance_dir / path)
        except FileNotFoundError:
            continue
        except OSError as error:
            damage.append(Damage(f"lance/{path}", f"cannot be read: {error.strerror}"))
            continue
        if checksum != recorded.by_path[path]:
            damage.append(Damage(f"lance/{path}", "does not match its checksum"))
    return damage


def damaged_tables(generation: Generation) -> Iterator[list[Damage]]:
    """The damage in all tables, in steps of FILES_PER_STEP files."""
    recorded = read_checksums(generation.lance_dir)
    yield missing_tables(generation, recorded)
    paths = sorted(recorded.by_path)
    for start in range(0, len(paths), FILES_PER_STEP):
        yield damaged_files(generation.lance_dir, recorded, paths[start : start + FILES_PER_STEP])


class ChecksumRecorder:
    """Maintains the file of checksums in the process that writes the tables. Not thread-safe."""

    def __init__(self, lance_dir: Path) -> None:
        """Trusts the recorded checksums; lines of removed files are dropped."""
        self._lance_dir = lance_dir
        recorded = read_checksums(lance_dir).by_path
        self._by_path = {path: checksum for path, checksum in recorded.items() if (lance_dir / path).exists()}
        self._stale = 0
        self._torn = False
        self._written: tuple[int, int] | None = None  # modification time and size of the list as it was written here
        self._seen: dict[str, int] = {}  # table → modification time of its versions
        self._rewrite()

    def record(self) -> int:
        """Record the files added since the last call; returns their number.

        Reads the new files, and lists the tables with new versions. May run beside commits, as a file gets its name
        when it is complete. Raises OSError; then call it again.
        """
        new: dict[str, str] = {}
        for table in self._tables():
            modified = (
                (self._lance_dir / f"{table}{SUFFIX}" / VERSIONS).stat().st_mtime_ns
            )  # manifests are written last
            if self._seen.get(table) == modified:
                continue
            existing = set(immutable_files(self._lance_dir, table))
            for path in sorted(existing - self._by_path.keys()):
                try:
                    new[path] = file_checksum(self._lance_dir / path)
                except FileNotFoundError:
                    continue
            for path in [path for path in self._by_path if table_of(path) == table and path not in existing]:
                del self._by_path[path]
                self._stale += 1
            self._seen[table] = modified
        self._by_path |= new
        if self._lance_dir.exists() and self._stamp() != self._written:  # removed, cut or changed by another
            self._torn = True
        if self._torn or self._stale > max(MIN_STALE_LINES, len(self._by_path)):
            self._rewrite()
        elif new:
            self._torn = True  # until everything is written: half a line would corrupt the next one
            with (self._lance_dir / CHECKSUMS).open("a") as file:
                file.writelines(checksum_line(path, checksum) for path, checksum in new.items())
            self._torn = False
            self._written = self._stamp()
        return len(new)

    def _stamp(self) -> tuple[int, int] | None:
        try:
            stat = (self._lance_dir / CHECKSUMS).stat()
        except FileNotFoundError:
            return None
        return stat.st_mtime_ns, stat.st_size

    def _tables(self) -> list[str]:
        return sorted(entry.name.removesuffix(SUFFIX) for entry in self._lance_dir.glob(f"*{SUFFIX}"))

    def _rewrite(self) -> None:
        lines = "".join(checksum_line(path, checksum) for path, checksum in sorted(self._by_path.items()))
        replace_file(self._lance_dir / CHECKSUMS, lines.encode())
        self._stale = 0
        self._torn = False
        self._written = self._stamp()


def is_in_tables(damage: Damage, tables: Iterable[str]) -> bool:
    return any(damage.path.startswith(f"lance/{table}{SUFFIX}") for table in tables)


def _required_tables(generation: Generation) -> Collection[str]:
    """The tables that must exist, as `documents` is created last, and rows and the graph come only then."""
    lance_dir = generation.lance_dir
    if any(generation.snapshots_dir.glob("[!.]*/")):
        return (*CREATED_BEFORE_DOCUMENTS, DOCUMENTS)
    if (lance_dir / f"{DOCUMENTS}{SUFFIX}").exists():
        return CREATED_BEFORE_DOCUMENTS
    has_rows = any(any(lance_dir.glob(f"{name}{SUFFIX}/data/*")) for name in (CHUNKS, PASSAGES))
    return (DOCUMENTS,) if has_rows else ()


def _newest_manifest(lance_dir: Path, table: str) -> str:
    """Its path; one that sorts after all others if there is none."""
    folder = f"{table}{SUFFIX}/{VERSIONS}"
    return min((f"{folder}/{file.name}" for file in (lance_dir / folder).glob(f"*{_MANIFEST}")), default=f"{folder}/~")
