"""What `thalweg load` reads: files, folders and JSON lines, as records for the documents topic.

Ids are computed, not assigned: a file in a folder has its path relative to that folder as its id, with `/` between, and
a file that is named itself has its name, or its path relative to the root where one is given. So the same files give
the same ids on every machine and on every run, and a load that was interrupted can be repeated: what is indexed already
is found unchanged.
"""

import gzip
import io
import lzma
import os
import re
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast
from urllib.parse import urlsplit

import msgspec

from indexer.parsing import is_known_charset, media_type_of, with_charset
from schemas.errors import Failure, MalformedEvent, WrongSetting
from schemas.events import ENVELOPE_TYPE, URI_HEADER, decode_envelope, upsert_from_envelope
from schemas.ids import DocumentKey
from schemas.limits import check_bounds, is_blank
from schemas.settings import LimitSettings
from streams.loader.folders import MISSING, SOURCE_HEADER, Found, Missing, Refused, Selection, find_files
from streams.loader.ignoring import LeftOut, by_reason, describe_left_out

JSON_LINES_ENDINGS = (".jsonl", ".ndjson")
COMPRESSED = (".gz", ".xz", ".zst")
RECORD_OVERHEAD_BYTES = 4 * 1024
_SURROGATES = re.compile(r"[\ud800-\udfff]")  # how Python shows bytes of a file's name that are not UTF-8
BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error)


@dataclass(frozen=True)
class Record:
    """One record to publish; a null value deletes. `origin` says where it was read. `partition` is given for a
    tombstone that repeats another one in a partition where its document was seen too. `unknown_fields` are names in an
    envelope that no document has."""

    key: DocumentKey
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    origin: str
    partition: int | None = None
    unknown_fields: tuple[str, ...] = ()


class _Head(msgspec.Struct, frozen=True):
    """What is looked at first: a line `{"id": …, "collection": …, "deleted": true}` deletes the document."""

    deleted: bool = False
    id: str = ""
    collection: str | None = None


def require_paths(paths: Sequence[str], selection: Selection) -> None:
    """Raises Failure, before anything is published, when a path does not exist, and WrongSetting for a root that is no
    folder. Below a root, a path that is not there is a file that was deleted."""
    if selection.root is not None:
        if not selection.root.is_dir():
            raise WrongSetting(f"The root {str(selection.root)!r} is not a folder.")
        return
    for path in paths:
        if path != "-" and not Path(path).exists():
            raise Failure(f"There is no file or folder {path!r}.")


@dataclass(frozen=True)
class Sizes:
    """What is refused for its size: a document's content and metadata, and a record as a whole."""

    limits: LimitSettings
    max_record_bytes: int


def read_sources(paths: Sequence[str], selection: Selection, sizes: Sizes) -> Iterator[Record | Refused | LeftOut]:
    """Every record the paths hold, in order, and what is left out of folders; `-` is JSON lines on standard input.

    Of several files that would have one id, all but the first are refused.
    """
    origins: dict[DocumentKey, str] = {}
    for path in paths:
        if path == "-":
            yield from _json_lines(sys.stdin.buffer, "standard input", selection, sizes)
            continue
        for found in find_files(path, selection):
            if isinstance(found, LeftOut):
                yield found
                continue
            for item in read_found(found, selection, sizes):
                if isinstance(found, Found) and isinstance(item, Record) and not is_json_lines(found.file):
                    first = origins.setdefault(item.key, item.origin)
                    if first != item.origin:
                        yield _repeated_id(item, first)
                        continue
                yield item


def read_found(found: Found | Missing | Refused, selection: Selection, sizes: Sizes) -> Iterator[Record | Refused]:
    """The document that a file is, or those of its lines; why there is none."""
    if isinstance(found, Refused):
        yield found
    elif isinstance(found, Missing):
        yield Refused(found.path, MISSING, "There is no such file; with --sync, its document is deleted.")
    elif is_json_lines(found.file):
        yield from _json_lines_file(found.file, selection, sizes)
    else:
        yield _document(found, selection, sizes.limits)


def _repeated_id(record: Record, first: str) -> Refused:
    document_id = record.key.document_id
    return Refused(
        record.origin, "duplicate_id", f"{first} has the id {document_id!r} too; load the folder above both instead."
    )


def require_charset(selection: Selection) -> None:
    """Raises WrongSetting for a character set that is not known: it would count as none."""
    if selection.charset is not None and not is_known_charset(selection.charset):
        raise WrongSetting(
            f"No character set {selection.charset[:40]!r} is known; give one such as iso-8859-1, windows-1251, "
            "shift_jis or gb18030."
        )


def require_base_uri(selection: Selection) -> None:
    """Raises WrongSetting for what no address can begin with."""
    try:
        scheme = "any" if selection.base_uri is None else urlsplit(selection.base_uri).scheme
    except ValueError:
        scheme = ""
    if not scheme:
        raise WrongSetting(
            f"{selection.base_uri!r} begins no address; give one such as https://docs.example.org/ or file:///srv/docs/."
        )


def require_matches(paths: Sequence[str], selection: Selection) -> None:
    """Raises WrongSetting where all paths are folders and no file in them is taken; an empty input is none of these."""
    if not all(Path(path).is_dir() for path in paths):
        return
    found = [item for path in paths for item in find_files(path, selection)]
    left_out = by_reason(item for item in found if isinstance(item, LeftOut))
    if len(found) == sum(map(len, left_out.values())):
        globs = [("--include", glob) for glob in selection.include] + [
            ("--exclude", glob) for glob in selection.exclude
        ]
        shown = " with " + " ".join(f"{option} {glob!r}" for option, glob in globs) if globs else ""
        raise WrongSetting(
            f"Nothing to load: no file in {', '.join(map(repr, paths))} matches{shown}. A glob is compared with the "
            f"path in the folder and with the name.{f' L{describe_left_out(left_out)[1:]}.' if left_out else ''}"
        )


def _document(found: Found, selection: Selection, limits: LimitSettings) -> Record | Refused:
    try:
        return _raw_record(found, DocumentKey.checked(selection.collection, found.document_id), limits, selection)
    except MalformedEvent as error:
        return Refused(str(found.file), error.reason, str(error))
    except OSError as error:
        return Refused(str(found.file), "unreadable", f"The file cannot be read: {error.strerror}.")


def _raw_record(found: Found, key: DocumentKey, limits: LimitSettings, selection: Selection) -> Record:
    file = found.file
    if _SURROGATES.search(str(key)):
        raise MalformedEvent("bad_key", "The file's name is not UTF-8; rename it.")
    media_type = media_type_of(file.name)
    if media_type is None:
        raise MalformedEvent("unknown_media_type", f"No format is known for {file.suffix or file.name!r}.")
    with file.open("rb") as opened:
        content = opened.read(limits.max_document_bytes + 1)  # it may grow while it is read
        size = max(len(content), os.fstat(opened.fileno()).st_size)
    if size > limits.max_document_bytes:
        raise MalformedEvent("too_large", f"{size:,} bytes; the limit is {limits.max_document_bytes:,}.")
    if is_blank(content):
        raise MalformedEvent("empty_content", "The file is empty.")
    charset = selection.charset
    content_type = media_type if charset is None else with_charset(media_type, charset, content)
    uri = selection.uri_of(key.document_id)
    check_bounds(title=None, uri=uri, content_type=content_type, links=())
    headers = {
        "content-type": content_type,
        **({} if uri is None else {URI_HEADER: uri}),
        **({} if found.mark is None else {SOURCE_HEADER: found.mark}),
    }
    return Record(key, content, tuple((name, text.encode()) for name, text in headers.items()), str(file))


def is_json_lines(file: Path) -> bool:
    """Whether a file holds documents line by line, by its name."""
    name = file.name.lower()
    plain_name = name.removesuffix(file.suffix.lower()) if file.suffix.lower() in COMPRESSED else name
    return plain_name.endswith(JSON_LINES_ENDINGS)


def _json_lines_file(file: Path, selection: Selection, sizes: Sizes) -> Iterator[Record | Refused]:
    """The lines of a file, as far as it can be read."""
    try:
        with opened(file) as lines:
            yield from _json_lines(lines, str(file), selection, sizes)
    except BROKEN as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        yield Refused(str(file), "unreadable", f"The file cannot be read to its end: {reason}.")


def opened(file: Path) -> IO[bytes]:
    """The file's content, decompressed as its name says."""
    match file.suffix.lower():
        case ".gz":
            return cast("IO[bytes]", gzip.open(file, "rb"))
        case ".xz":
            return lzma.open(file, "rb")
        case ".zst":
            import pyarrow as pa  # a tenth of a second that only this needs

            return io.BufferedReader(pa.input_stream(str(file), compression="zstd"))
        case _:
            return file.open("rb")


def _json_lines(lines: IO[bytes], name: str, selection: Selection, sizes: Sizes) -> Iterator[Record | Refused]:
    for number, raw in enumerate(bounded_lines(lines, sizes.max_record_bytes), start=1):
        origin = f"{name}:{number}"
        if raw is None:
            yield Refused(origin, "too_large", f"The line is over {sizes.max_record_bytes:,} bytes.")
            continue
        line = raw.removeprefix(BOM_UTF8).strip()
        if not line:
            continue
        try:
            yield _json_line(line, origin, selection, sizes)
        except MalformedEvent as error:
            yield Refused(origin, error.reason, str(error))


def bounded_lines(lines: IO[bytes], max_bytes: int) -> Iterator[bytes | None]:
    """Every line; None for one that is longer, of which no more than `max_bytes` are ever in memory."""
    while line := lines.readline(max_bytes + 1):
        if len(line) <= max_bytes:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = lines.readline(max_bytes + 1)
        yield None


def _json_line(line: bytes, origin: str, selection: Selection, sizes: Sizes) -> Record:
    try:
        head = msgspec.json.decode(line, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        head = _Head(collection="")  # the envelope's own decoder says what is wrong with it
    if head.deleted:
        return Record(DocumentKey.checked(head.collection or selection.collection, head.id), None, (), origin)
    envelope, unknown = decode_envelope(line, sizes.limits)
    if head.collection is None and selection.collection != envelope.collection:
        envelope = msgspec.structs.replace(envelope, collection=selection.collection)
        line = msgspec.json.encode(envelope)
    upsert = upsert_from_envelope((envelope, unknown), sizes.limits)
    if len(line) + len(str(upsert.key).encode()) + RECORD_OVERHEAD_BYTES > sizes.max_record_bytes:
        raise MalformedEvent(
            "too_large", f"As a record it has {len(line):,} bytes; the limit is {sizes.max_record_bytes:,}."
        )
    headers = (("content-type", ENVELOPE_TYPE.encode()),)
    left_out = tuple(name for name in unknown if name not in _Head.__struct_fields__)
    return Record(upsert.key, line, headers, origin, unknown_fields=left_out)
