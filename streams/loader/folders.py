"""Files of folders: which are taken, their ids, and the mark by which a folder's documents are known.

An id is computed, not assigned: the path relative to the folder given, or to the root where one is named. A folder that
is synced or watched marks its documents with the metadata field `loaded_from`; only what carries the mark of a folder
is ever deleted for being no longer in it.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from indexer.parsing import media_type_of
from schemas.errors import Failure, WrongSetting
from schemas.events import METADATA_HEADER_PREFIX
from schemas.ids import DEFAULT_COLLECTION

SOURCE_FIELD = "loaded_from"
SOURCE_HEADER = METADATA_HEADER_PREFIX + SOURCE_FIELD
MISSING = "missing"  # the reason of a path under the root that is not there
MOST = 0.5  # share of a folder's documents; more are not deleted without --yes
_TEMPORARY = ("~", "#", ".swp", ".swx", ".tmp", ".part", ".crdownload")  # what editors and browsers write on the way


@dataclass(frozen=True)
class Refused:
    """Something that would end as a dead letter, and why; it is not published."""

    origin: str
    reason: str
    message: str


@dataclass(frozen=True)
class Selection:
    """Which files of a folder are taken: any `include` glob and no `exclude` glob matches the relative path or name.
    `charset` is that of text files that declare none and are not UTF-8; None leaves it to be recognised. `base_uri` is
    what stands before a file's id in its document's `uri`; None gives it none. Ids are relative to `root`, where it is
    given, else to each folder. With `marked`, documents of folders say where they come from, by `source` or else by the
    folder's name and a hash of its path."""

    collection: str = DEFAULT_COLLECTION
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    charset: str | None = None
    base_uri: str | None = None
    root: Path | None = None
    source: str | None = None
    marked: bool = False

    def uri_of(self, document_id: str) -> str | None:
        if self.base_uri is None:
            return None
        return self.base_uri + ("" if self.base_uri.endswith(("/", "=", "#")) else "/") + quote(document_id)

    def takes(self, relative: str) -> bool:
        """Whether a file of a folder is taken, by its path in it; hidden and temporary ones never are."""
        name = relative.rpartition("/")[2]

        def matches(globs: Sequence[str]) -> bool:
            return any(fnmatch(relative, glob) or fnmatch(name, glob) for glob in globs)

        if _is_hidden(relative) or name.endswith(_TEMPORARY):
            return False
        return (not self.include or matches(self.include)) and not matches(self.exclude)

    def mark_of(self, folder: Path) -> str:
        """What `loaded_from` says of documents of this folder: an address, which is read as no fact and no word."""
        if self.source is not None:
            return f"folder:/{quote(self.source, safe='')}"
        place = os.path.abspath(folder)  # noqa: PTH100 - a link to a folder is a folder of its own
        digest = hashlib.sha256(os.fsencode(place)).hexdigest()[:8]
        return f"folder:/{quote(Path(place).name, safe='')}-{digest}"


class Found(NamedTuple):
    """A file that is taken; `document_id` is its id, `mark` that of its folder, None for a file named by itself."""

    file: Path
    document_id: str
    mark: str | None


class Missing(NamedTuple):
    """A path under the root that is not there: a file that was deleted, or a folder; `document_id` would be its id."""

    path: str
    document_id: str


@dataclass(frozen=True)
class Scope:
    """What a path named on the command line covers: the documents of a mark whose id is `prefix`, or is below it; an
    empty prefix covers all of the mark."""

    mark: str
    prefix: str

    def covers(self, document_id: str) -> bool:
        return not self.prefix or document_id == self.prefix or document_id.startswith(self.prefix + "/")


def find_files(path: str, selection: Selection) -> Iterator[Found | Missing | Refused]:
    """The file itself, or those of a folder in the order of their paths. Links to folders are not followed, so there
    are no loops; a folder that cannot be read is refused."""
    place = Path(path)
    if selection.root is None:
        if not place.is_dir():
            yield Found(place, place.name, None)
            return
        yield from _walk(place, "", selection, selection.mark_of(place) if selection.marked else None)
        return
    prefix = relative_to_root(path, selection.root)
    if prefix is None:
        yield Refused(path, "outside_root", f"It does not lie below the root {str(selection.root)!r}.")
        return
    mark = selection.mark_of(selection.root) if selection.marked else None
    if place.is_dir():
        yield from _walk(place, prefix, selection, mark)
    elif not selection.takes(prefix):
        return
    elif place.exists() or place.is_symlink():
        yield Found(place, prefix, mark)
    else:
        yield Missing(path, prefix)


def relative_to_root(path: str, root: Path) -> str | None:
    """The path as ids have it, `""` for the root itself; None where it does not lie below the root. It need not be
    there; one that is not absolute is taken from the working directory."""
    base = os.path.abspath(root)  # noqa: PTH100 - links are kept: an id is what the user sees
    place = os.path.abspath(path)  # noqa: PTH100
    if place == base:
        return ""
    inside = place.startswith(base.rstrip(os.sep) + os.sep)
    return Path(place).relative_to(base).as_posix() if inside else None


def scopes_of(paths: Sequence[str], selection: Selection) -> list[Scope]:
    """What the paths cover of documents loaded before. Raises WrongSetting for what no folder can be synced with."""
    scopes = []
    for path in paths:
        if path == "-":
            raise WrongSetting("--sync compares folders with what was loaded from them; - is no folder.")
        if selection.root is None:
            if not Path(path).is_dir():
                raise WrongSetting(
                    f"{path!r} is no folder, and --sync compares folders. Name its folder, or the folder that ids are "
                    "relative to with --root."
                )
            scopes.append(Scope(selection.mark_of(Path(path)), ""))
            continue
        prefix = relative_to_root(path, selection.root)
        if prefix is not None:  # else it is refused when it is read
            scopes.append(Scope(selection.mark_of(selection.root), prefix))
    return scopes


class KnownDocument(NamedTuple):
    """A document of the collection as the stores have it; `mark` is the `loaded_from` that its producer sent."""

    document_id: str
    mark: str | None

    @classmethod
    def of(cls, document_id: str, metadata: Mapping[str, Any], stated_fields: Iterable[str]) -> "KnownDocument":
        """A mark that the document states of itself is none."""
        mark = metadata.get(SOURCE_FIELD)
        sent = isinstance(mark, str) and SOURCE_FIELD not in stated_fields
        return cls(document_id, mark if sent else None)


@dataclass(frozen=True)
class SyncPlan:
    """`gone` are ids of documents that left the folder, of `known` that came from it; `present` files are in it.

    `unmarked` are ids that a file of the folder could have, of documents that do not say where they come from: they
    stay.
    """

    gone: list[str]
    known: int
    present: int
    unmarked: list[str]

    def why_not(self) -> str | None:
        """What speaks against deleting without being told so; None for nothing."""
        if not self.gone:
            return None
        if len(self.gone) > MOST * self.known:
            what = "No file is in the folder" if not self.present else "Most of the folder's files are gone"
            return (
                f"{what}: {len(self.gone):,} of the {self.known:,} documents that came from it would be deleted. If "
                "that is meant, add --yes; --dry-run lists them."
            )
        return None


def plan_sync(paths: Sequence[str], selection: Selection, documents: Iterable[KnownDocument]) -> SyncPlan:
    """Compare the folders with the documents of the collection.

    To go, a document must carry the folder's mark, lie in what the paths cover and be what the selection takes, and
    there must be no such file, readable or not. Raises Failure where a folder cannot be read: it may hold the file.
    """
    scopes = scopes_of(paths, selection)
    present: set[str] = set()
    for path in paths:
        for item in find_files(path, selection):
            if isinstance(item, Refused) and item.reason == "unreadable":
                raise Failure(f"{item.origin}: {item.message} So what left the folder is not known; nothing was sent.")
            if isinstance(item, Found):
                present.add(item.document_id)
    marks = {scope.mark for scope in scopes}
    gone: list[str] = []
    unmarked: list[str] = []
    known = 0
    for document in documents:
        known += document.mark in marks
        absent = document.document_id not in present and selection.takes(document.document_id)
        if absent and document.mark is None and any(scope.covers(document.document_id) for scope in scopes):
            if media_type_of(document.document_id) is not None:
                unmarked.append(document.document_id)
        elif absent and any(scope.mark == document.mark and scope.covers(document.document_id) for scope in scopes):
            gone.append(document.document_id)
    return SyncPlan(sorted(gone), known, len(present), sorted(unmarked))


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(".") for part in relative.split("/"))


def _walk(folder: Path, prefix: str, selection: Selection, mark: str | None) -> Iterator[Found | Refused]:
    """The files that are taken, `prefix` before their paths in the folder."""
    found: list[Found] = []
    unreadable: list[OSError] = []
    for where, folders, names in os.walk(folder, onerror=unreadable.append):
        folders[:] = [each for each in folders if not each.startswith(".")]
        for name in names:
            file = Path(where, name)
            relative = file.relative_to(folder).as_posix()
            document_id = f"{prefix}/{relative}" if prefix else relative
            if selection.takes(document_id) and file.is_file():
                found.append(Found(file, document_id, mark))
    for error in unreadable:
        yield Refused(str(error.filename), "unreadable", f"The folder cannot be read: {error.strerror}.")
    yield from sorted(found, key=lambda each: each.document_id.split("/"))
