"""What `thalweg load` and `thalweg delete` do: publish, follow to searchable, report the outcome."""

import json
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path

from schemas.errors import Failure, MalformedEvent, Unreachable, WrongSetting
from schemas.ids import DEFAULT_COLLECTION, DocumentKey
from schemas.progress_bars import progress_bars
from schemas.refusals import EXPLANATIONS
from schemas.runtime import find_running
from schemas.terminal import say
from streams.loader.folders import MISSING, Refused, Selection, SyncPlan, plan_sync, scopes_of
from streams.loader.http_publishing import Service, ServicePublisher
from streams.loader.ignoring import LABELS, LeftOut, Reason, by_reason, describe_left_out
from streams.loader.publishing import ABSENT, KafkaPublisher, Published, Publisher
from streams.loader.sources import (
    Record,
    Sizes,
    read_sources,
    require_base_uri,
    require_charset,
    require_matches,
    require_paths,
)
from streams.settings import WorkerSettings

SHOWN_REFUSALS = 20
MAX_UNKNOWN_FIELDS = 1_000
MAX_NAME_CHARACTERS = 80


@dataclass(frozen=True)
class Loaded:
    """What was published, and its outcomes, None without waiting. `absent` are keys of deletes of unknown documents,
    `notes` {key: what could not be read as intended}, `unknown_fields` {name: how many envelopes hold it}, which were
    left out, of at most MAX_UNKNOWN_FIELDS names, `left_folder` ids of documents that were deleted for it;
    `left_out` {reason: files and folders that were not read}.

    `seconds` are from the first record sent to the last receipt, or to the broker's last confirmation.
    """

    published: int
    token: str
    outcomes: dict[str, int] | None
    refused: list[Refused]
    seconds: float
    absent: list[str] = field(default_factory=list)
    notes: dict[str, list[str]] = field(default_factory=dict)
    unknown_fields: dict[str, int] = field(default_factory=dict)
    left_folder: list[str] = field(default_factory=list)
    left_out: dict[Reason, list[str]] = field(default_factory=dict)

    def show(self, *, as_json: bool, verbose: bool = False) -> None:
        if as_json:
            print(json.dumps(asdict(self)))
            return
        outcomes = ", ".join(f"{count} {self._named(name)}" for name, count in sorted((self.outcomes or {}).items()))
        say(f"{self.published} published{': ' + outcomes if outcomes else ''} in {self.seconds:.1f} s")
        reasons = Counter(item.reason for item in self.refused)
        if reasons:
            counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
            _list_names(f"refused: {counts}", [f"{item.origin}: {item.message}" for item in self.refused])
        for reason, (title, advice) in EXPLANATIONS.items():
            if reason in reasons:
                say(f"{reason}: {title}. {advice}")
        _say_left_out(self.left_out, verbose=verbose)
        if self.notes:
            noted = [f"{key}: {' '.join(notes)}" for key, notes in self.notes.items()]
            _list_names(f"indexed with warnings: {len(self.notes)}", noted)
        if self.token:
            say(f"token {self.token}")

    def _named(self, outcome: str) -> str:
        """The outcome; with the keys for deletes of unknown documents."""
        if outcome != ABSENT:
            return outcome
        more = len(self.absent) - SHOWN_REFUSALS
        named = [*self.absent[:SHOWN_REFUSALS], *([f"and {more} more, which --json lists"] if more > 0 else [])]
        return f"{outcome} ({', '.join(named)})"


def describe_unknown(fields: Mapping[str, int]) -> str:
    """A warning about fields that were left out, {name: how many envelopes hold it}."""
    from schemas.unknown_fields import describe_field  # rapidfuzz, which a load without them does not need

    commonest = sorted(fields.items(), key=lambda item: (-item[1], item[0]))[:SHOWN_REFUSALS]
    shown = [describe_field(name, count) for name, count in commonest]
    more = f" and {len(fields) - SHOWN_REFUSALS} more" if len(fields) > SHOWN_REFUSALS else ""
    return (
        f"Left out, as no document has such fields: {', '.join(shown)}{more}. What describes a document goes under "
        "'metadata'."
    )


def suggest_collection(collection: str, absent: Iterable[str]) -> str | None:
    """What to type where unknown ids may be `<collection>/<id>`, as searches print them; None where none has a slash.

    An id may have slashes itself, so this is a suggestion only. `absent` are keys of `collection`.
    """
    ids: dict[str, list[str]] = {}
    for key in absent:
        other, slash, document_id = key.removeprefix(f"{collection}/").partition("/")
        if slash and document_id:
            ids.setdefault(other, []).append(document_id)
    if not ids:
        return None
    other, document_ids = next(iter(ids.items()))
    shown = " ".join(map(shlex.quote, document_ids[:SHOWN_REFUSALS]))
    return (
        f"An id is given without its collection. Where {other!r} is the collection, type: "
        f"thalweg delete --collection {shlex.quote(other)} {shown}"
    )


@dataclass(frozen=True)
class Rehearsal:
    """What a load would do: `would_send` are keys, `would_delete` and `stay` ids that are not in the folder; those that
    stay do not say that they came from it. `ignored` are those that would be deleted as they are left out now, with the
    reason; `left_out` is {reason: files and folders that are not read}, `unknown_fields` as a load counts them."""

    would_send: list[str]
    would_delete: list[str]
    stay: list[str]
    refused: list[Refused]
    ignored: dict[str, Reason] = field(default_factory=dict)
    left_out: dict[Reason, list[str]] = field(default_factory=dict)
    unknown_fields: dict[str, int] = field(default_factory=dict)

    def show(self, *, as_json: bool, verbose: bool = False) -> None:
        if as_json:
            print(json.dumps(asdict(self)))
            return
        _list_names(f"would be sent: {len(self.would_send):,}", self.would_send)
        why = {each: f" (left out now, {LABELS[reason]})" for each, reason in self.ignored.items()}
        deleted = [each + why.get(each, "") for each in self.would_delete]
        _list_names(f"would be deleted: {len(deleted):,}", deleted)
        if self.stay:
            _list_names(
                f"not in the folder, and not known to come from it, so they stay: {len(self.stay):,}", self.stay
            )
        if self.refused:
            reasons = [f"{item.origin}: {item.message}" for item in self.refused]
            _list_names(f"refused: {len(self.refused):,}", reasons)
        _say_left_out(self.left_out, verbose=verbose)


@dataclass(frozen=True)
class _Found:
    """What was met while records were read: `unknown` counts fields that no envelope has."""

    refused: list[Refused] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    left_out: list[LeftOut] = field(default_factory=list)


@dataclass(frozen=True)
class Loader:
    """Publishes what paths hold, and what deletes it."""

    settings: WorkerSettings
    publisher: Publisher
    wait: bool
    timeout_seconds: float
    quiet: bool

    @classmethod
    def connect(
        cls, data_dir: Path | None, *, wait: bool, timeout_seconds: float, quiet: bool, service: Service | None = None
    ) -> "Loader":
        """To the service, or to the cluster that the settings name or that runs on the data directory. Raises
        Unreachable when nothing runs there."""
        settings = settings_for(data_dir)
        if service is not None:
            return cls(settings, ServicePublisher(service, settings.limits), wait, timeout_seconds, quiet)
        connection = settings.kafka.at(bootstrap_servers(settings))
        publisher = KafkaPublisher(settings.kafka, connection, settings.storage.data_dir)
        return cls(settings, publisher, wait, timeout_seconds, quiet)

    def load(
        self,
        paths: Sequence[str],
        selection: Selection,
        agree: Callable[[SyncPlan], None] | None = None,
        *,
        may_be_empty: bool = False,
    ) -> Loaded:
        """Every document the paths hold. What would end as a dead letter is not published but listed as refused.

        With `agree`, what left the folders is deleted afterwards; `agree` is shown what that is before anything is
        sent, and raises where it is not to be. Raises Failure when a path does not exist, WrongSetting for what cannot
        be a collection's name, is not a character set or begins no address, and, unless they `may_be_empty`, where
        folders hold no file that is selected.
        """
        self.check(paths, selection)
        plan = None
        if agree is not None:
            plan = self._plan(paths, selection)
            agree(plan)
        found = _Found()
        records = self._records(paths, selection, found, plan, may_be_empty=may_be_empty)
        loaded = self.run(records, found.refused)
        return replace(
            loaded,
            unknown_fields=dict(found.unknown),
            left_folder=plan.gone if plan else [],
            left_out=by_reason(found.left_out),
        )

    def rehearse(
        self, paths: Sequence[str], selection: Selection, *, sync: bool, may_be_empty: bool = False
    ) -> tuple[Rehearsal, SyncPlan | None]:
        """What `load` would do, and what would be deleted for it. Nothing is sent; what is there is looked up where it
        is synced. Raises as `load` does."""
        self.check(paths, selection)
        plan = self._plan(paths, selection) if sync else None
        found = _Found()
        records = list(self._records(paths, selection, found, plan, may_be_empty=may_be_empty))
        rehearsal = Rehearsal(
            [str(record.key) for record in records if record.value is not None],
            [record.key.document_id for record in records if record.value is None],
            plan.unmarked if plan else [],
            found.refused,
            plan.ignored if plan else {},
            by_reason(found.left_out),
            dict(found.unknown),
        )
        return rehearsal, plan

    def delete(self, collection: str | None, document_ids: Sequence[str]) -> Loaded:
        """Without a collection, from DEFAULT_COLLECTION. Raises WrongSetting for what cannot be a document's id, and
        for one that only other collections hold where none is named; nothing is deleted then."""
        named = DEFAULT_COLLECTION if collection is None else collection
        keys = [_key(named, document_id) for document_id in document_ids]
        if collection is None:
            self._refuse_other_collections(document_ids)
        return self.run([tombstone(key, str(key)) for key in keys], [])

    def _refuse_other_collections(self, document_ids: Sequence[str]) -> None:
        for document_id in document_ids:
            holding = self.publisher.collections_with(document_id)
            if holding and DEFAULT_COLLECTION not in holding:
                raise WrongSetting(
                    f"{document_id!r} is not in the collection {DEFAULT_COLLECTION!r} but in {', '.join(holding)}, so "
                    "nothing was deleted. Name the collection, such as: thalweg delete --collection "
                    f"{shlex.quote(holding[0])} {shlex.quote(document_id)}"
                )

    def check(self, paths: Sequence[str], selection: Selection) -> None:
        """Raises Failure or WrongSetting for what is known before anything is read."""
        require_paths(paths, selection)
        require_charset(selection)
        require_base_uri(selection)
        if selection.source is not None and not selection.source.strip():
            raise WrongSetting("--source is a name of the folder, such as handbook; it cannot be empty.")
        _key(selection.collection, "any")

    @property
    def sizes(self) -> Sizes:
        return Sizes(self.settings.limits, self.settings.kafka.max_record_bytes)

    def _plan(self, paths: Sequence[str], selection: Selection) -> SyncPlan:
        scopes_of(paths, selection)  # what is not a folder is refused before the stores are asked
        return plan_sync(paths, selection, self.publisher.documents(selection.collection))

    def _records(
        self, paths: Sequence[str], selection: Selection, found: "_Found", plan: SyncPlan | None, *, may_be_empty: bool
    ) -> Iterator[Record]:
        """What is accepted, and then a tombstone for each document that is to go; `found` grows meanwhile. Raises
        WrongSetting, before anything is sent, where there is nothing at all."""
        records = self._read(paths, selection, found, plan)
        first = next(records, None)
        if first is None and not found.refused and not may_be_empty:
            require_matches(paths, selection)
        return records if first is None else chain([first], records)

    def _read(
        self, paths: Sequence[str], selection: Selection, found: "_Found", plan: SyncPlan | None
    ) -> Iterator[Record]:
        gone = set(plan.gone) if plan else set()
        for item in read_sources(paths, selection, self.sizes):
            if isinstance(item, Record):
                gone.discard(item.key.document_id)  # the file came while the others were read
                for name in {name[:MAX_NAME_CHARACTERS] for name in item.unknown_fields}:
                    if name in found.unknown or len(found.unknown) < MAX_UNKNOWN_FIELDS:
                        found.unknown[name] += 1
                yield item
            elif isinstance(item, LeftOut):
                found.left_out.append(item)
            elif plan is None or item.reason != MISSING:
                found.refused.append(item)
        for document_id in sorted(gone):
            yield tombstone(DocumentKey(selection.collection, document_id), f"{document_id} (left the folder)")

    def run(self, records: Iterable[Record], refused: list[Refused]) -> Loaded:
        """Send them, and follow them where it waits. `refused` grows."""
        published = Published()
        try:
            return self._send(records, refused, published)
        except KeyboardInterrupt:
            raise Failure(f"Interrupted; {_so_far(published)}") from None
        except Unreachable as error:
            if not published.records:
                raise
            raise Unreachable(f"{error}\nBefore that, {_so_far(published)}") from error

    def _send(self, records: Iterable[Record], refused: list[Refused], published: Published) -> Loaded:
        with progress_bars(shown=not self.quiet) as bars:
            patience = self.timeout_seconds if self.wait else None
            followed = self.publisher.send(records, published, bars, patience)
            seconds = time.monotonic() - published.began_seconds
        refused += followed.refused
        outcomes = dict(followed.outcomes) if self.wait else None
        notes = {key: list(notes) for key, notes in followed.noted}
        return Loaded(published.records, published.token, outcomes, refused, round(seconds, 3), followed.absent, notes)


def tombstone(key: DocumentKey, origin: str) -> Record:
    """The record that deletes a document."""
    return Record(key, None, (), origin)


def _so_far(published: Published) -> str:
    return (
        f"at least {published.records:,} records are in the log. To go on, do the same again: "
        "what is indexed already stays as it is."
    )


def _say_left_out(left_out: Mapping[Reason, Sequence[str]], *, verbose: bool) -> None:
    """How many, with the first names; all of them where `verbose`."""
    if left_out:
        say(describe_left_out(left_out) + ("" if verbose else "; to list them: --verbose"))
    for reason, names in left_out.items() if verbose else ():
        for name in names:
            say(f"  {name}: {LABELS[reason]}")


def _list_names(heading: str, names: Sequence[str]) -> None:
    say(heading)
    for name in names[:SHOWN_REFUSALS]:
        say(f"  {name}")
    if len(names) > SHOWN_REFUSALS:
        say(f"  … and {len(names) - SHOWN_REFUSALS:,} more (--json lists all)")


def _key(collection: str, document_id: str) -> DocumentKey:
    try:
        return DocumentKey.checked(collection, document_id)
    except MalformedEvent as error:
        raise WrongSetting(str(error)) from error


def settings_for(data_dir: Path | None) -> WorkerSettings:
    """The settings, with the data directory of the command line where one is given."""
    return WorkerSettings.load({"storage": {"data_dir": data_dir}})


def bootstrap_servers(settings: WorkerSettings) -> str:
    """The cluster to talk to: the setting, else what `thalweg up` announced in the data directory."""
    if settings.kafka.bootstrap_servers:
        return settings.kafka.bootstrap_servers
    running = find_running(settings.storage.data_dir)
    if running is None:
        raise Unreachable(
            f"Nothing runs on {settings.storage.data_dir}. Start it with 'thalweg up --data-dir "
            f"{shlex.quote(str(settings.storage.data_dir))}', name another with --data-dir, or set "
            "THALWEG_KAFKA__BOOTSTRAP_SERVERS."
        )
    return running.kafka
