"""Files of folders: which are taken, their ids, and the mark by which a folder's documents are known.

An id is computed, not assigned: the path relative to the folder given, or to the root where one is named. A folder that
is synced or watched marks its documents with the metadata field `loaded_from`; only what carries the mark of a folder
is ever deleted for being no longer in it.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from indexer.parsing import media_type_of
from schemas.errors import Failure, WrongSetting
from schemas.events import METADATA_HEADER_PREFIX
from schemas.ids import DEFAULT_COLLECTION
from streams.loader.ignoring import LABELS, LeftOut, Reason, Rules, UnreadableRules, rules_around

SOURCE_FIELD = "loaded_from"
SOURCE_HEADER = METADATA_HEADER_PREFIX + SOURCE_FIELD
MISSING = "missing"  # the reason of a path under the root that is not there
MOST = 0.5  # share of a folder's documents; more are not deleted without --yes


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
    what precedes a file's id in its document's `uri`; None gives it none. Ids are relative to `root`, where it is
    given, else to each folder. With `marked`, documents of folders say where they come from, by `source` or else by the
    folder's name and a hash of its path. `rules` say what else is left out."""

    collection: str = DEFAULT_COLLECTION
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    charset: str | None = None
    base_uri: str | None = None
    root: Path | None = None
    source: str | None = None
    marked: bool = False
    rules: Rules = field(default_factory=Rules)

    def uri_of(self, document_id: str) -> str | None:
        if self.base_uri is None:
            return None
        return self.base_uri + ("" if self.base_uri.endswith(("/", "=", "#")) else "/") + quote(document_id)

    def takes(self, relative: str) -> bool:
        """Whether the globs take a file of a folder, by its path in it."""
        name = relative.rpartition("/")[2]

        def matches(globs: Sequence[str]) -> bool:
            return any(fnmatch(relative, glob) or fnmatch(name, glob) for glob in globs)

        return (not self.include or matches(self.include)) and not matches(self.exclude)

    def mark_of(self, folder: Path) -> str:
        """What `loaded_from` says of documents of this folder: an address, which is read as no fact and no word."""
        if self.source is not None:
            return f"folder:/{quote(self.source, safe='')}"
        place = os.path.abspath(folder)  # noqa: PTH100 - a link to a folder is a folder of its own
        digest = hashlib.sha256(os.fsencode(place)).hexdigest()[:8]
        return f"folder:/{quote(Path(place).name, safe='')}-{digest}"


class Found(NamedTuple):
    """A file that is taken; `document_id` is its id, `mark` that of its folder, None for a file named singly."""

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


def find_files(path: str, selection: Selection) -> Iterator[Found | Missing | Refused | LeftOut]:
    """The file itself, or those of a folder in the order of their paths, after what is left out of it. Links to folders
    are not followed, so there are no loops; a folder that cannot be read is refused.

    A file that is named is taken, whatever the rules; below a root, where it is one of the root's, only as it would be
    with the others.
    """
    place = Path(path)
    if selection.root is None and not place.is_dir():
        yield Found(place, place.name, None)
        return
    prefix = relative_to_root(path, selection.root)
    if prefix is None:
        yield Refused(path, "outside_root", f"It does not lie below the root {str(selection.root)!r}.")
        return
    mark = selection.mark_of(selection.root or place) if selection.marked else None
    is_folder = place.is_dir()
    if not is_folder and not selection.takes(prefix):
        return
    try:
        rules, reason = rules_around(place, selection.root, selection.rules)
    except UnreadableRules as error:
        yield Refused(error.file, "unreadable", str(error))
        return
    if prefix and reason is None:
        reason = rules.why_not(prefix.rpartition("/")[2], is_folder=is_folder)
    if reason is not None:
        yield LeftOut(_shown(place, is_folder=is_folder), prefix, reason)
    elif is_folder:
        yield from _walk(place, prefix, selection, mark, rules)
    elif place.exists() or place.is_symlink():
        yield Found(place, prefix, mark)
    else:
        yield Missing(path, prefix)


def relative_to_root(path: str, root: Path | None) -> str | None:
    """The path as ids have it, `""` for the root itself, or where there is no root; None where it does not lie below
    the root. It need not be there; one that is not absolute is taken from the working directory."""
    if root is None:
        return ""
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
            raise WrongSetting("--sync compares folders with what was loaded from them; - is not a folder.")
        if selection.root is None and not Path(path).is_dir():
            raise WrongSetting(
                f"{path!r} is not a folder, and --sync compares folders. Name its folder, or the folder that ids are "
                "relative to with --root."
            )
        prefix = relative_to_root(path, selection.root)
        if prefix is not None:  # else it is refused when it is read
            scopes.append(Scope(selection.mark_of(selection.root or Path(path)), prefix))
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
    stay. `ignored` are those of `gone` that are left out now, and why: their files may be there.
    """

    gone: list[str]
    known: int
    present: int
    unmarked: list[str]
    ignored: dict[str, Reason] = field(default_factory=dict)

    @property
    def left(self) -> list[str]:
        """Those of `gone` whose files are not there."""
        return [each for each in self.gone if each not in self.ignored]

    @property
    def said_ignored(self) -> list[str]:
        """`ignored`, with the reason beside each."""
        return [f"{document_id} ({LABELS[reason]})" for document_id, reason in self.ignored.items()]

    def why_not(self) -> str | None:
        """Why deleting needs to be confirmed; None for nothing."""
        if not self.gone:
            return None
        if len(self.gone) > MOST * self.known:
            if self.present:
                what = "Most of the folder's files are gone" + (" or left out now" if self.ignored else "")
            else:
                what = "No file of the folder is loaded now" if self.ignored else "No file is in the folder"
            return (
                f"{what}: {len(self.gone):,} of the {self.known:,} documents that came from it would be deleted. If "
                "that is meant, add --yes; --dry-run lists them."
            )
        return None


def _look(paths: Sequence[str], selection: Selection) -> tuple[set[str], "LeftOutIds"]:
    """The ids of the files that are taken, and those that are left out. Raises Failure, see `plan_sync`."""
    present: set[str] = set()
    left_out = LeftOutIds()
    for item in (each for path in paths for each in find_files(path, selection)):
        if isinstance(item, LeftOut):
            left_out.add(item)
        if isinstance(item, Refused) and item.reason == "unreadable":
            raise Failure(
                f"{item.origin}: {item.message} What left the folder is therefore not known; nothing was sent."
            )
        if isinstance(item, Found):
            present.add(item.document_id)
    return present, left_out


def plan_sync(paths: Sequence[str], selection: Selection, documents: Iterable[KnownDocument]) -> SyncPlan:
    """Compare the folders with the documents of the collection.

    To go, a document must carry the folder's mark, lie in what the paths cover and be what the selection takes, and
    there must be no such file, readable or not. Raises Failure where a folder cannot be read: it may hold the file.
    """
    scopes = scopes_of(paths, selection)
    present, left_out = _look(paths, selection)
    marks = {scope.mark for scope in scopes}
    every = list(documents)
    absent = [each for each in every if each.document_id not in present and _is_covered(each, selection, scopes)]
    gone = sorted(each.document_id for each in absent if each.mark is not None)
    unmarked = sorted(
        each.document_id
        for each in absent
        if each.mark is None and media_type_of(each.document_id) and left_out.reason_of(each.document_id) is None
    )
    ignored = {each: reason for each in gone if (reason := left_out.reason_of(each)) is not None}
    return SyncPlan(gone, sum(each.mark in marks for each in every), len(present), unmarked, ignored)


def _is_covered(document: KnownDocument, selection: Selection, scopes: Iterable[Scope]) -> bool:
    """Whether a file of the folders could be this document, by its id and its mark, where it has one."""
    of_mark = (scope for scope in scopes if document.mark in (None, scope.mark))
    return selection.takes(document.document_id) and any(scope.covers(document.document_id) for scope in of_mark)


@dataclass
class LeftOutIds:
    """The ids that what is left out would have, by file or by folder."""

    reasons: dict[str, Reason] = field(default_factory=dict)

    def add(self, item: LeftOut) -> None:
        self.reasons[item.document_id] = item.reason

    def reason_of(self, document_id: str) -> Reason | None:
        """Why a document of this id is left out; None where it is not, or has no file."""
        parts = document_id.split("/") if self.reasons else []
        above = ("/".join(parts[:length]) for length in range(1, len(parts) + 1))
        return next((self.reasons[each] for each in above if each in self.reasons), None)


def _walk(
    folder: Path, prefix: str, selection: Selection, mark: str | None, rules: Rules
) -> Iterator[Found | Refused | LeftOut]:
    """The files that are taken, `prefix` before their paths in the folder, and what is left out by the rules; `rules`
    are those above the folder."""
    found: list[Found] = []
    refused: list[Refused] = []
    left_out: list[LeftOut] = []

    def refuse(error: OSError) -> None:
        refused.append(Refused(str(error.filename), "unreadable", f"The folder cannot be read: {error.strerror}."))

    above = {str(folder): rules}
    for where, folders, names in os.walk(folder, onerror=refuse):
        try:
            here = above.pop(where).entering(where, [*folders, *names])
        except UnreadableRules as error:
            refused.append(Refused(error.file, "unreadable", str(error)))
            folders.clear()
            continue
        inside = Path(where).relative_to(folder).as_posix()
        start = "/".join(part for part in (prefix, inside) if part not in {"", "."})
        kept = []
        for name in (*folders, *names):
            place = Path(where, name)
            is_folder = name in folders
            document_id = f"{start}/{name}" if start else name
            if not is_folder and not (selection.takes(document_id) and place.is_file()):
                continue
            reason = here.why_not(name, is_folder=is_folder and not place.is_symlink())
            if reason is not None:
                left_out.append(LeftOut(_shown(place, is_folder=is_folder), document_id, reason))
            elif is_folder:
                kept.append(name)
                above[os.path.join(where, name)] = here  # noqa: PTH118 - as os.walk names it
            else:
                found.append(Found(place, document_id, mark))
        folders[:] = kept
    yield from refused
    yield from sorted(left_out, key=lambda each: each.document_id.split("/"))
    yield from sorted(found, key=lambda each: each.document_id.split("/"))


def _shown(place: Path, *, is_folder: bool) -> str:
    return f"{place}/" if is_folder else str(place)
