"""Folders of Arrow IPC files, which any process opens.

`<parent>/<name>/` holds a file for each table, and `manifest.json` with their checksums. A folder gets its name when
all is on disk, and nothing in it changes afterwards (`indexer.write.arrow_publication`).
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

import msgspec
import pyarrow as pa

from indexer.errors import DamagedStore
from indexer.integrity.files import file_checksum

MANIFEST = "manifest.json"


class TableFile(msgspec.Struct, frozen=True):
    """One file of a folder; `checksum` is its SHA-256."""

    file: str
    rows: int
    bytes: int
    checksum: str


class Manifest(Protocol):
    """What each kind of folder says of itself."""

    @property
    def name(self) -> str: ...
    @property
    def made_at_ms(self) -> int: ...
    @property
    def tables(self) -> Mapping[str, TableFile]: ...
    def seal(self) -> Self: ...


M = TypeVar("M", bound=Manifest)


class _Format(msgspec.Struct):
    format: int


@dataclass(frozen=True)
class ArrowFolders(Generic[M]):
    """Folders of one kind and format, with the columns of `tables`. `called`, `gone` and `advice` word its errors."""

    manifest: type[M]
    format: int
    tables: Mapping[str, pa.Schema]
    called: str
    gone: str
    advice: str

    def described(self, parent: Path) -> Iterator[tuple[str, M | None]]:
        """The name of every folder and its manifest; None for a damaged one. Other formats are left out."""
        for folder in sorted(parent.glob("[!.]*/")):
            try:
                content = (folder / MANIFEST).read_bytes()
                if msgspec.json.decode(content, type=_Format).format != self.format:
                    continue
                manifest = msgspec.json.decode(content, type=self.manifest)
            except (FileNotFoundError, ValueError):
                if folder.exists():  # else it was removed just now
                    yield folder.name, None
                continue
            is_whole = manifest.name == folder.name and self.tables.keys() <= manifest.tables.keys()
            yield folder.name, manifest if is_whole and manifest.seal() == manifest else None

    def published(self, parent: Path) -> list[M]:
        """Those of this format with an intact manifest, newest first; other files are not read."""
        found = [manifest for _, manifest in self.described(parent) if manifest is not None]
        return sorted(found, key=lambda manifest: (manifest.made_at_ms, manifest.name), reverse=True)

    def named(self, parent: Path, name: str) -> M:
        """Raises FileNotFoundError when newer ones have replaced it, DamagedStore for a damaged manifest."""
        found = [manifest for folder, manifest in self.described(parent) if folder == name]
        if not found:
            raise self._gone(name)
        if found[0] is None:
            raise self._damaged(name, MANIFEST, "cannot be read as a manifest")
        return found[0]

    def damage(self, parent: Path) -> Iterator[tuple[str, str, str]]:
        """(folder, file, what is wrong with it): reads each file of each folder once."""
        for folder, manifest in self.described(parent):
            if manifest is None:
                yield folder, MANIFEST, "cannot be read as a manifest"
                continue
            try:
                yield from ((folder, *each) for each in self._damaged_files(parent, manifest))
            except FileNotFoundError:  # replaced by a newer one meanwhile
                continue

    def require_intact(self, parent: Path, manifest: M) -> None:
        """Raises DamagedStore for files that do not match their checksums, FileNotFoundError where it was removed."""
        for file, what in self._damaged_files(parent, manifest):
            raise self._damaged(manifest.name, file, what)

    def read(self, parent: Path, manifest: M, name: str, *, is_mapped: bool) -> pa.Table:
        """A table; its file is mapped into memory, or read into it.

        Raises FileNotFoundError when newer ones have replaced it, DamagedStore for a file that is not as written.
        """
        stored = manifest.tables[name]
        path = parent / manifest.name / stored.file
        try:
            if path.stat().st_size != stored.bytes:
                raise self._damaged(manifest.name, stored.file, "has another length than was written")
            with pa.memory_map(str(path)) if is_mapped else pa.OSFile(str(path)) as file:
                content = file.read_buffer()
        except FileNotFoundError:
            self._require_published(parent, manifest)
            raise self._damaged(manifest.name, stored.file, "is gone") from None
        if hashlib.sha256(content).hexdigest() != stored.checksum:
            raise self._damaged(manifest.name, stored.file, "does not match its checksum")
        table = pa.ipc.open_file(content).read_all()
        if table.schema != self.tables[name]:
            raise self._damaged(manifest.name, stored.file, "has other columns than this version reads")
        return table

    def _damaged_files(self, parent: Path, manifest: M) -> Iterator[tuple[str, str]]:
        """(file, what is wrong with it). Raises FileNotFoundError for a folder that was removed."""
        for stored in manifest.tables.values():
            try:
                if file_checksum(parent / manifest.name / stored.file) != stored.checksum:
                    yield stored.file, "does not match its checksum"
            except FileNotFoundError:
                self._require_published(parent, manifest)
                yield stored.file, "is gone"

    def _require_published(self, parent: Path, manifest: M) -> None:
        """Raises FileNotFoundError for a folder that was removed."""
        if not (parent / manifest.name / MANIFEST).exists():
            raise self._gone(manifest.name)

    def _gone(self, name: str) -> FileNotFoundError:
        return FileNotFoundError(self.gone.format(name))

    def _damaged(self, name: str, file: str, what: str) -> DamagedStore:
        return DamagedStore(f"The file {file} of {self.called} {name} {what}. {self.advice}")
