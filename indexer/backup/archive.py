"""A backup on disk: a folder, or an archive `.tar`, `.tar.gz` or `.tar.zst`, with a manifest before the files.

`backup.json` names every file with its length and SHA-256, and has a checksum itself. The files lie as in a data
directory: `generations/<name>/...`. A backup gets its name when all of it is on disk.
"""

import errno
import hashlib
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import msgspec
import pyarrow as pa

from indexer.errors import DamagedStore
from indexer.generation_folders import LogIdentity, Sealed
from schemas.errors import Failure, NoAccess, WrongSetting
from schemas.settings import MIB

FORMAT = 1
MANIFEST = "backup.json"
ARCHIVES = (".tar", ".tar.gz", ".tar.zst")
OTHER_ARCHIVES = (".zip", ".7z", ".rar", ".tgz", ".gz", ".bz2", ".xz", ".zst")
COPY_BYTES = 1024**2
SHOWN = 5
MANIFEST_BYTES = 512 * MIB  # the most that is read of one

Advance = Callable[[int], None]  # so many bytes more are done


class BackupFile(msgspec.Struct, frozen=True):
    """`checksum` is its SHA-256."""

    bytes: int
    checksum: str


class BackupManifest(Sealed, frozen=True, kw_only=True):
    """What a backup holds. `positions` are the last offsets of the documents topic in it, by partition, and
    `graph_position` that of the contributions topic; `log` the cluster's ids of both topics; `sealed` the checksum of
    all other fields."""

    format: int
    version: str
    made_at_ms: int
    generation: str
    model: str
    log: LogIdentity | None
    positions: dict[int, int]
    graph_position: int
    documents: int
    files: dict[str, BackupFile]
    sealed: str = ""

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files.values())


class _Format(msgspec.Struct):
    format: int
    version: str = "unknown"


@dataclass(frozen=True)
class Backup:
    """A backup that is being read: its manifest, and its files in their order, each to be read before the next.
    `finish` reads to where the file says that it ends."""

    source: Path
    manifest: BackupManifest
    files: Iterator[tuple[str, IO[bytes]]]
    finish: Callable[[], None]


def write_backup(root: Path, manifest: BackupManifest, target: Path, advance: Advance) -> None:
    """Copy the manifest's files from below `root`, beside the target, which gets its name at the end.

    Raises WrongSetting where the target is not a name for a backup or exists, Failure where there is
    no room for it, DamagedStore for a file that is not what was written.
    """
    require_target(target)
    require_room(target.parent, manifest.bytes, f"A backup of generation {manifest.generation}")
    part = target.with_name(f".{target.name}.part")
    remove(part)
    try:
        with full_disk_explained(target.parent), _opened_for_writing(target, part) as add:
            content = msgspec.json.encode(manifest)
            add(MANIFEST, len(content), pa.BufferReader(content))
            for name, file in manifest.files.items():
                with (root / name).open("rb") as source:
                    hashed = HashedFile(source, advance)
                    add(name, file.bytes, hashed)
                if hashed.checksum() != file.checksum:
                    raise DamagedStore(
                        f"Nothing was backed up: {name} does not match its checksum. 'thalweg verify' shows what else "
                        "is damaged, and what repairs it."
                    )
        os.sync()
        part.rename(target)
    finally:
        remove(part)


def require_target(target: Path) -> None:
    """Raises WrongSetting for what cannot be the name of a new backup."""
    if not target.name.endswith(ARCHIVES) and target.suffix in OTHER_ARCHIVES:
        raise WrongSetting(
            f"{target} cannot be written: a backup is a folder, or an archive whose name ends with "
            f"{', '.join(ARCHIVES[:-1])} or {ARCHIVES[-1]}."
        )
    if os.path.lexists(target):
        raise WrongSetting(f"{target} exists already: choose another name, or remove it first.")
    if not target.parent.is_dir():
        raise WrongSetting(f"There is no folder {target.parent}: make it first, or choose another.")


@contextmanager
def open_backup(source: Path) -> Iterator[Backup]:
    """Raises WrongSetting where there is no backup or only one of a newer version, DamagedStore for one that is cut or
    damaged, also while its files are read."""
    with _read_errors(source), _opened_for_reading(source) as (members, finish):
        first = next(members, None)
        if first is None or first[0] != MANIFEST:
            raise WrongSetting(
                f"{source} is not a backup, or one that was not finished: {MANIFEST} is not what it begins with."
            )
        yield Backup(source, _manifest(source, first[1].read(MANIFEST_BYTES)), members, finish)


def copy_files(backup: Backup, root: Path | None, advance: Advance) -> None:
    """Check every file against the manifest, and copy it below `root` if given.

    Raises DamagedStore, which names those that are missing or not what was written.
    """
    missing = dict(backup.manifest.files)
    damaged: list[str] = []
    with _read_errors(backup.source):
        for name, stream in backup.files:
            file = missing.pop(name, None)
            if file is None:
                continue
            hashed = HashedFile(stream, advance)
            if root is None:
                while hashed.read(COPY_BYTES):
                    pass
            else:
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as copy:
                    shutil.copyfileobj(hashed, copy, COPY_BYTES)
            if hashed.checksum() != file.checksum:
                damaged.append(f"{name} does not match its checksum")
        backup.finish()
    damaged += [f"{name} is missing" for name in missing]
    if damaged:
        more = f"; and {len(damaged) - SHOWN} more" if len(damaged) > SHOWN else ""
        raise _damaged(backup.source, "; ".join(damaged[:SHOWN]) + more)


class HashedFile:
    """Reads a file; knows the checksum of what was read."""

    def __init__(self, source: IO[bytes], advance: Advance) -> None:
        self._source = source
        self._advance = advance
        self._checksum = hashlib.sha256()

    def read(self, size: int = COPY_BYTES) -> bytes:
        content = self._source.read(size)
        self._checksum.update(content)
        self._advance(len(content))
        return content

    def checksum(self) -> str:
        return self._checksum.hexdigest()


def remove(path: Path) -> None:
    """A file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def require_room(folder: Path, needed: int, what: str) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Failure(
            f"{what} takes {needed / MIB:,.0f} MiB, and {free / MIB:,.0f} MiB are free on the disk of {folder}: make "
            "room there, or choose another place."
        )


@contextmanager
def full_disk_explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Failure(
                f"The disk of {folder} is full; nothing is left of what was begun. Make room there, or choose another "
                "place."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise NoAccess(f"No permission to write in {folder}. Choose another place.") from error
        raise


@contextmanager
def _opened_for_writing(target: Path, part: Path) -> Iterator[Callable[[str, int, Any], None]]:
    """What adds a file: its name, its length, and what to read it from."""
    if not target.name.endswith(ARCHIVES):
        part.mkdir()

        def add_to_folder(name: str, _size: int, source: Any) -> None:
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as copy:
                shutil.copyfileobj(source, copy, COPY_BYTES)

        yield add_to_folder
        return
    with (
        pa.output_stream(str(part), compression=_compression(target)) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):

        def add_to_archive(name: str, size: int, source: Any) -> None:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = size, 0o600
            archive.addfile(entry, source)

        yield add_to_archive


@contextmanager
def _opened_for_reading(source: Path) -> Iterator[tuple[Iterator[tuple[str, IO[bytes]]], Callable[[], None]]]:
    """The files by name, the manifest first; and what reads to the end of an archive."""
    if source.is_dir():
        yield _files_of_folder(source), lambda: None
        return
    if not source.exists():
        raise WrongSetting(f"There is no backup {source}.")
    if not source.name.endswith(ARCHIVES):
        raise WrongSetting(f"{source} is not a backup: that is a folder, or an archive {', '.join(ARCHIVES)}.")
    if source.name.endswith(".tar") and source.stat().st_size % tarfile.RECORDSIZE:
        raise _damaged(source, "it ends too early")
    with pa.input_stream(str(source), compression=_compression(source)) as stream:

        def finish() -> None:
            while stream.read(COPY_BYTES):  # to where the compressed stream says that it ends
                pass

        with tarfile.open(fileobj=stream, mode="r|") as archive:
            yield _files_of_archive(archive), finish


def _files_of_folder(source: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if not (source / MANIFEST).is_file():
        return
    paths = [source / MANIFEST, *(path for path in sorted(source.rglob("*")) if path != source / MANIFEST)]
    for path in paths:
        if path.is_file():
            with path.open("rb") as stream:
                yield path.relative_to(source).as_posix(), stream


def _files_of_archive(archive: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    for entry in archive:
        stream = archive.extractfile(entry) if entry.isfile() else None
        if stream is not None:
            yield entry.name, stream


def _compression(path: Path) -> str | None:
    return {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)


def _manifest(source: Path, content: bytes) -> BackupManifest:
    """Raises WrongSetting for one of a newer version, DamagedStore for one that is not as it was written."""
    try:
        made = msgspec.json.decode(content, type=_Format)
        if made.format > FORMAT:
            raise WrongSetting(
                f"{source} was made by Thalweg {made.version}, in a newer format than this program reads: restore it "
                "with that version."
            )
        manifest = msgspec.json.decode(content, type=BackupManifest)
    except ValueError as error:
        raise _damaged(source, f"{MANIFEST} cannot be read: {error}") from error
    if manifest.seal() != manifest or not all(map(_is_below_generations, manifest.files)):
        raise _damaged(source, f"{MANIFEST} is not what was written")
    return manifest


def _is_below_generations(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return parts[:1] == ("generations",) and ".." not in parts


@contextmanager
def _read_errors(source: Path) -> Iterator[None]:
    """What an archive that was cut off, or damaged, ends in."""
    try:
        yield
    except (tarfile.TarError, EOFError, pa.ArrowException) as error:
        raise _damaged(source, f"it ends too early, or cannot be unpacked: {error}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(source, f"it ends too early, or cannot be unpacked: {error}") from error


def _damaged(source: Path, what: str) -> DamagedStore:
    return DamagedStore(f"The backup {source} is cut or damaged: {what}. It cannot be restored: take another one.")
