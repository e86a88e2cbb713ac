"""What `thalweg load` reads: files, folders and JSON lines, as records for the documents topic."""

import gzip
import lzma
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, cast

import msgspec

from indexer.parsing import media_type_of
from schemas.errors import MalformedEvent
from schemas.events import ENVELOPE_TYPE, decode_envelope, upsert_from_envelope
from schemas.exits import Failure
from schemas.ids import DocumentKey
from schemas.settings import LimitSettings

JSON_LINES_ENDINGS = (".jsonl", ".ndjson")
COMPRESSED = (".gz", ".xz")


@dataclass(frozen=True)
class Record:
    """One record to publish; a null value deletes. `origin` says where it was read."""

    key: DocumentKey
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    origin: str


@dataclass(frozen=True)
class Refused:
    """Something that would end as a dead letter, and why; it is not published."""

    origin: str
    reason: str
    message: str


@dataclass(frozen=True)
class Selection:
    """Which files of a folder are taken: any `include` glob and no `exclude` glob matches the relative path or name."""

    collection: str = "default"
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def takes(self, relative: str) -> bool:
        name = relative.rpartition("/")[2]

        def matches(globs: Sequence[str]) -> bool:
            return any(fnmatch(relative, glob) or fnmatch(name, glob) for glob in globs)

        return (not self.include or matches(self.include)) and not matches(self.exclude)


class _Deletion(msgspec.Struct, frozen=True):
    """A line `{"id": …, "collection": …, "deleted": true}` deletes the document."""

    deleted: bool = False
    id: str = ""
    collection: str | None = None


def require_paths(paths: Sequence[str]) -> None:
    """Raises Failure, before anything is published, when a path does not exist."""
    for path in paths:
        if path != "-" and not Path(path).exists():
            raise Failure(f"There is no file or folder {path!r}.")


def read_sources(paths: Sequence[str], selection: Selection, limits: LimitSettings) -> Iterator[Record | Refused]:
    """Every record the paths hold, in order; `-` is JSON lines on standard input."""
    for path in paths:
        if path == "-":
            yield from _json_lines(sys.stdin.buffer, "standard input", selection, limits)
            continue
        place = Path(path)
        if place.is_dir():
            for file in sorted(place.rglob("*")):
                relative = file.relative_to(place).as_posix()
                hidden = any(part.startswith(".") for part in relative.split("/"))
                if file.is_file() and not hidden and selection.takes(relative):
                    yield from _file(file, relative, selection, limits)
        else:
            yield from _file(place, place.name, selection, limits)


def _file(file: Path, document_id: str, selection: Selection, limits: LimitSettings) -> Iterator[Record | Refused]:
    plain_name = file.name.removesuffix(file.suffix) if file.suffix in COMPRESSED else file.name
    if plain_name.endswith(JSON_LINES_ENDINGS):
        with _opened(file) as lines:
            yield from _json_lines(lines, str(file), selection, limits)
        return
    media_type = media_type_of(file.name)
    size = file.stat().st_size
    if media_type is None:
        yield Refused(str(file), "unknown_media_type", f"No format is known for {file.suffix or file.name!r}.")
    elif size > limits.max_document_bytes:
        yield Refused(str(file), "too_large", f"{size:,} bytes; the limit is {limits.max_document_bytes:,}.")
    else:
        content = file.read_bytes()
        try:
            key = DocumentKey.checked(selection.collection, document_id)
        except MalformedEvent as error:
            yield Refused(str(file), error.reason, str(error))
            return
        if content.strip():
            yield Record(key, content, (("content-type", media_type.encode()),), str(file))
        else:
            yield Refused(str(file), "empty_content", "The file is empty.")


def _opened(file: Path) -> IO[bytes]:
    if file.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(file, "rb"))
    return lzma.open(file, "rb") if file.suffix == ".xz" else file.open("rb")


def _json_lines(lines: IO[bytes], name: str, selection: Selection, limits: LimitSettings) -> Iterator[Record | Refused]:
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if not line:
            continue
        origin = f"{name}:{number}"
        try:
            yield _json_line(line, origin, selection, limits)
        except MalformedEvent as error:
            yield Refused(origin, error.reason, str(error))


def _json_line(line: bytes, origin: str, selection: Selection, limits: LimitSettings) -> Record:
    try:
        deletion = msgspec.json.decode(line, type=_Deletion)
    except msgspec.DecodeError:
        deletion = _Deletion()  # the envelope's own decoder says what is wrong with it
    if deletion.deleted:
        key = DocumentKey.checked(deletion.collection or selection.collection, deletion.id)
        return Record(key, None, (), origin)
    envelope, unknown = decode_envelope(line)
    if b'"collection"' not in line and selection.collection != envelope.collection:
        envelope = msgspec.structs.replace(envelope, collection=selection.collection)
        line = msgspec.json.encode(envelope)
    upsert = upsert_from_envelope((envelope, unknown), limits)
    return Record(upsert.key, line, (("content-type", ENVELOPE_TYPE.encode()),), origin)
