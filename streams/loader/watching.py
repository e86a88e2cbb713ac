"""`thalweg load --watch`: follows the files of folders, and sends what changed until it is ended."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from indexer.parsing import media_type_of
from schemas.errors import Failure, WrongSetting
from schemas.ids import DocumentKey
from schemas.progress_bars import Bar
from streams.loader.folders import Found, LeftOutIds, Refused, Selection, find_files
from streams.loader.ignoring import LABELS, LeftOut, Reason
from streams.loader.loader import Loader, tombstone
from streams.loader.publishing import Followed, Published
from streams.loader.sources import Record, is_json_lines, read_found

FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 30.0
QUIET_MS = 200  # without another change, before what changed is looked at
LONGEST_GATHERING_MS = 2_000
START_MS = 500

Change = Literal["created", "changed", "renamed", "deleted", "ignored"]

_GONE: frozenset[Change] = frozenset({"deleted", "ignored"})


class Signature(NamedTuple):
    """What shows that a file is another one than before. `changed_ns` is when anything about it changed, which shows a
    file that was written in place with its old size and time; a rename keeps all but that."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @property
    def renamed(self) -> tuple[int, ...]:
        """What stays."""
        return self[:-1]


@dataclass(frozen=True)
class Event:
    """A change of a file and what became of it; `before` is the id that a renamed file had, `reason` why one is ignored
    from now on."""

    change: Change
    document_id: str
    outcome: str = ""
    before: str | None = None
    reason: Reason | None = None

    def sentence(self) -> str:
        name = self.document_id if self.before is None else f"{self.before} → {self.document_id}"
        name += f" ({LABELS[self.reason]})" if self.reason is not None else ""
        return f"{time.strftime('%H:%M:%S')}  {self.change:<8} {name}: {self.outcome}"


@dataclass(frozen=True)
class Picture:
    """The files of the folders at one moment, by id, and what is left out. `holes` says what could not be looked at: a
    file that is missing from the picture may be there."""

    files: dict[str, tuple[Found, Signature]]
    holes: list[str]
    left_out: LeftOutIds = field(default_factory=LeftOutIds)

    def changes_since(self, before: "Picture") -> Iterator[Event]:
        """Created, changed and renamed files in the order of their ids, then those deleted or left out, without
        outcomes. None is deleted while there is a hole."""
        gone = {} if self.holes else {each: before.files[each] for each in before.files.keys() - self.files.keys()}
        moved = {sign.renamed: document_id for document_id, (_, sign) in gone.items()}
        for document_id, (_, sign) in sorted(self.files.items()):
            if document_id in before.files:
                if before.files[document_id][1] != sign:
                    yield Event("changed", document_id)
            elif (origin := moved.pop(sign.renamed, None)) is not None:
                del gone[origin]
                yield Event("renamed", document_id, before=origin)
            else:
                yield Event("created", document_id)
        for document_id in sorted(gone):
            reason = self.left_out.reason_of(document_id)
            yield Event("deleted" if reason is None else "ignored", document_id, reason=reason)


def require_folders(paths: Sequence[str]) -> None:
    """Raises WrongSetting for what cannot be followed."""
    for path in paths:
        if not Path(path).is_dir():
            what = "standard input" if path == "-" else f"{path!r}"
            raise WrongSetting(f"--watch follows folders, and {what} is none.")


def wakes(paths: Sequence[str]) -> Iterator[object]:
    """Something each time that something may have changed below the paths, and once when it is being watched."""
    from watchfiles import watch

    started = False
    for changes in watch(
        *paths,
        watch_filter=None,  # which files count is the loader's own rule
        step=QUIET_MS,
        debounce=LONGEST_GATHERING_MS,
        rust_timeout=START_MS,
        yield_on_timeout=True,
        ignore_permission_denied=True,
    ):
        if changes or not started:
            started = True
            yield changes


@dataclass
class Watcher:
    """Sends what changed since `picture`; reports each event. What could not be sent is sent again until it could."""

    loader: Loader
    paths: Sequence[str]
    selection: Selection
    report: Callable[[Event], None]
    complain: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        """Raises WrongSetting for what is not a folder."""
        require_folders(self.paths)
        self._devices = {path: Path(path).stat().st_dev for path in self.paths}
        self._reported_holes: list[str] = []

    def look(self) -> Picture:
        """The files that are there now."""
        files: dict[str, tuple[Found, Signature]] = {}
        holes = []
        left_out = LeftOutIds()
        for path in self.paths:
            try:
                same = Path(path).stat().st_dev == self._devices[path]
            except OSError:
                same = False
            if not same:
                holes.append(f"{path} is gone, or another disk: its documents stay as they are until it is back.")
                continue
            for item in find_files(path, self.selection):
                if isinstance(item, Refused):
                    holes.append(f"{item.origin}: {item.message}")
                elif isinstance(item, LeftOut):
                    left_out.add(item)
                elif isinstance(item, Found) and (sign := _signature(item.file)) is not None:
                    files.setdefault(item.document_id, (item, sign))
        return Picture(files, holes, left_out)

    def follow(self, picture: Picture, woken: Iterable[object]) -> None:
        """Until `woken` ends. `picture` is what was sent already."""
        for _ in woken:
            picture = self._catch_up(picture)

    def _catch_up(self, before: Picture) -> Picture:
        """What was sent, once all of it is."""
        delay = FIRST_RETRY_SECONDS
        while True:
            now = self.look()
            for hole in now.holes:
                if hole not in self._reported_holes:
                    self.complain(hole)
            self._reported_holes = now.holes
            events = list(now.changes_since(before))
            if not events:
                return self._kept(now, before)
            try:
                outcomes = self._send(events, before, now)
            except WrongSetting:
                raise
            except Failure as failure:
                self.complain(f"{failure} Trying again in {delay:.0f} s: {len(events):,} changes wait.")
                self.sleep(delay)
                delay = min(LONGEST_RETRY_SECONDS, delay * 2)
                continue
            for event in outcomes:
                self.report(event)
            return self._kept(now, before)

    @staticmethod
    def _kept(now: Picture, before: Picture) -> Picture:
        """The picture to compare with: what a hole hides is still as it was."""
        return Picture(before.files | now.files, []) if now.holes else now

    def _send(self, events: Sequence[Event], before: Picture, now: Picture) -> list[Event]:
        """The events with what became of them. Upserts go first: a renamed document is never missing."""
        refused: dict[str, str] = {}
        of_files: dict[str, list[str]] = {}
        left = [each.before or each.document_id for each in events if each.change in {*_GONE, "renamed"}]
        ours = self._ours([before.files[document_id][0] for document_id in left])

        def records() -> Iterator[Record]:
            for event in events:
                if event.change in _GONE:
                    continue
                found, _ = now.files[event.document_id]
                keys = of_files.setdefault(event.document_id, [])
                for item in read_found(found, self.selection, self.loader.sizes):
                    if isinstance(item, Record):
                        keys.append(str(item.key))
                        yield item
                    else:
                        refused[event.document_id] = f"refused: {item.message}"
            for document_id in sorted(ours):
                key = DocumentKey(self.selection.collection, document_id)
                of_files.setdefault(document_id, []).append(str(key))
                yield tombstone(key, document_id)

        patience = self.loader.timeout_seconds if self.loader.wait else None
        followed = self.loader.publisher.send(records(), Published(), Bar, patience)
        return [
            Event(
                event.change,
                event.document_id,
                _outcome(of_files.get(event.document_id, []), followed, refused.get(event.document_id)),
                event.before,
                event.reason,
            )
            for event in events
        ]

    def _ours(self, files: Sequence[Found]) -> set[str]:
        """Of files that left, the ids whose documents carry the folder's mark: these are deleted. What was refused,
        was in JSON lines, or came from elsewhere since, is not. Without waiting, a document may not be listed yet:
        it counts as the folder's if it was sent."""
        if not files:
            return set()
        documents = {each.document_id: each.mark for each in self.loader.publisher.documents(self.selection.collection)}
        if not self.loader.wait:
            documents = {each.document_id: each.mark for each in files if _is_document(each)} | documents
        return {
            each.document_id for each in files if each.mark is not None and documents.get(each.document_id) == each.mark
        }


def _is_document(found: Found) -> bool:
    """Whether a file of this name may have been sent as a document of its own."""
    return media_type_of(found.file.name) is not None and not is_json_lines(found.file)


def _outcome(keys: Sequence[str], followed: Followed, refused: str | None) -> str:
    """What became of a file's records; of several, how many of each, and why the last that was refused here was."""
    if refused is not None:
        return f"{_outcome(keys, followed, None)}; {refused}" if keys else refused
    messages = {item.origin: item.message for item in followed.refused}
    named = [followed.of_keys.get(key, "refused" if key in messages else "published") for key in keys]
    if not named:
        return "no document came from it"
    if len(named) == 1:
        return f"{named[0]}: {messages[keys[0]]}" if keys[0] in messages else named[0]
    return ", ".join(f"{named.count(each)} {each}" for each in sorted(set(named)))


def _signature(file: Path) -> Signature | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return Signature(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
