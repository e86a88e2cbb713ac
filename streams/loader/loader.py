"""What `thalweg load` and `thalweg delete` do: publish, follow to searchable, report the outcome."""

import asyncio
import json
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Protocol

from kafka_client.partitioner import murmur2_partition
from schemas.errors import Failure, MalformedEvent, Unreachable, WrongSetting
from schemas.ids import DocumentKey
from schemas.runtime import find_running
from schemas.settings import KafkaConnection
from schemas.terminal import plain
from schemas.topics import TopicNames, TopicSpec
from streams.kafka.topics import inspect_topics
from streams.loader.publishing import ABSENT, Followed, Published, follow, open_producer, open_receipts, publish
from streams.loader.sources import (
    Record,
    Refused,
    Selection,
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


class Bar(Protocol):
    """How many of something are done, of a number that may be set later."""

    def advance(self, by: int = 1) -> None: ...
    def set(self, done: int) -> None: ...
    def is_of(self, total: int) -> None: ...


class NoBar:
    """Shows nothing."""

    def advance(self, by: int = 1) -> None:
        """Nothing."""

    def set(self, done: int) -> None:
        """Nothing."""

    def is_of(self, total: int) -> None:
        """Nothing."""


@contextmanager
def progress_bars(*, shown: bool) -> Iterator[Callable[[str], Bar]]:
    """Makes bars by their names, shown until the end of the block."""
    if not shown:
        yield lambda _name: NoBar()
        return
    from rich.console import Console  # what is not shown need not be imported
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    class Shown:
        def __init__(self, name: str) -> None:
            self._task = progress.add_task(name, total=None)

        def advance(self, by: int = 1) -> None:
            progress.advance(self._task, by)

        def set(self, done: int) -> None:
            progress.update(self._task, completed=done)

        def is_of(self, total: int) -> None:
            progress.update(self._task, total=total)

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as progress:
        yield Shown


@dataclass(frozen=True)
class Loaded:
    """What was published, and its outcomes, None without waiting. `absent` are keys of deletes of unknown documents,
    `notes` {key: what could not be read as intended}, `unknown_fields` {name: how many envelopes hold it}, which were
    left out, of at most MAX_UNKNOWN_FIELDS names.

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

    def show(self, *, as_json: bool) -> None:
        if as_json:
            print(json.dumps(asdict(self)))
            return
        from rich.console import Console  # with its parts half as long to import as all else: not for --json

        console = Console(highlight=False, markup=False, soft_wrap=True)

        def print_line(line: str) -> None:
            console.print(plain(line))

        outcomes = ", ".join(f"{count} {self._named(name)}" for name, count in sorted((self.outcomes or {}).items()))
        print_line(f"{self.published} published{': ' + outcomes if outcomes else ''} in {self.seconds:.1f} s")
        reasons = Counter(item.reason for item in self.refused)
        if reasons:
            print_line("refused: " + ", ".join(f"{count} {reason}" for reason, count in reasons.most_common()))
            for item in self.refused[:SHOWN_REFUSALS]:
                print_line(f"  {item.origin}: {item.message}")
            if len(self.refused) > SHOWN_REFUSALS:
                print_line(f"  … and {len(self.refused) - SHOWN_REFUSALS} more (--json lists all)")
        if self.notes:
            print_line(f"indexed, but not all as it was meant: {len(self.notes)}")
            for key, notes in list(self.notes.items())[:SHOWN_REFUSALS]:
                print_line(f"  {key}: {' '.join(notes)}")
            if len(self.notes) > SHOWN_REFUSALS:
                print_line(f"  … and {len(self.notes) - SHOWN_REFUSALS} more (--json lists all)")
        if self.token:
            print_line(f"token {self.token}")

    def _named(self, outcome: str) -> str:
        """The outcome; with the keys for deletes of unknown documents."""
        if outcome != ABSENT:
            return outcome
        more = len(self.absent) - SHOWN_REFUSALS
        named = [*self.absent[:SHOWN_REFUSALS], *([f"and {more} more, which --json lists"] if more > 0 else [])]
        return f"{outcome} ({', '.join(named)})"


def describe_unknown(fields: Mapping[str, int]) -> str:
    """A warning about fields that were left out, {name: how many envelopes hold it}."""
    from schemas.unknown_fields import suggest_field  # pydantic, which a load without them does not need

    shown = []
    for name, count in sorted(fields.items(), key=lambda item: (-item[1], item[0]))[:SHOWN_REFUSALS]:
        meant = suggest_field(name)
        shown.append(f"{name!r} in {count:,}" + (f" (is {meant!r} meant?)" if meant else ""))
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
class Loader:
    """Publishes to the cluster the settings name, or that runs on the data directory."""

    settings: WorkerSettings
    connection: KafkaConnection
    wait: bool
    timeout_seconds: float
    quiet: bool

    @classmethod
    def connect(cls, data_dir: Path | None, *, wait: bool, timeout_seconds: float, quiet: bool) -> "Loader":
        """Raises Unreachable when nothing runs there."""
        settings = settings_for(data_dir)
        return cls(settings, settings.kafka.at(bootstrap_servers(settings)), wait, timeout_seconds, quiet)

    def load(self, paths: Sequence[str], selection: Selection) -> Loaded:
        """Every document the paths hold. What would end as a dead letter is not published but listed as refused.

        Raises Failure when a path does not exist, WrongSetting for what cannot be a collection's name, is no character
        set or begins no address, and where folders hold no file that is selected.
        """
        require_paths(paths)
        require_charset(selection)
        require_base_uri(selection)
        _key(selection.collection, "any")
        refused: list[Refused] = []
        unknown: Counter[str] = Counter()
        sizes = Sizes(self.settings.limits, self.settings.kafka.max_record_bytes)

        def accepted() -> Iterator[Record]:
            for item in read_sources(paths, selection, sizes):
                if isinstance(item, Refused):
                    refused.append(item)
                else:
                    for name in {name[:MAX_NAME_CHARACTERS] for name in item.unknown_fields}:
                        if name in unknown or len(unknown) < MAX_UNKNOWN_FIELDS:
                            unknown[name] += 1
                    yield item

        records = accepted()
        first = next(records, None)
        if first is None and not refused:
            require_matches(paths, selection)
        loaded = self._run(records if first is None else chain([first], records), refused)
        return replace(loaded, unknown_fields=dict(unknown))

    def delete(self, collection: str, document_ids: Sequence[str]) -> Loaded:
        """Raises WrongSetting for what cannot be a document's id."""
        keys = [_key(collection, document_id) for document_id in document_ids]
        return self._run([Record(key, None, (), str(key)) for key in keys], [])

    def _run(self, records: Iterable[Record], refused: list[Refused]) -> Loaded:
        published = Published()
        try:
            return self._send(records, refused, published)
        except KeyboardInterrupt:
            raise Failure(
                f"Interrupted; at least {published.records:,} records are in the log. To go on, do the same again: "
                "what is indexed already stays as it is."
            ) from None

    def _send(self, records: Iterable[Record], refused: list[Refused], published: Published) -> Loaded:
        kafka, connection = self.settings.kafka, self.connection
        documents = TopicNames(kafka.topic_prefix).documents
        followed = Followed()
        with (
            progress_bars(shown=not self.quiet) as bar,
            open_receipts(kafka, connection) as receipts,
            open_producer(kafka, connection) as producer,
        ):
            (topic,) = asyncio.run(inspect_topics(connection, [TopicSpec(documents, kafka.partitions, {})]))
            published.topic_id = topic.topic_id
            sent = bar("published")
            began = time.monotonic()
            everywhere = with_repeated_tombstones(records, self.settings.storage.data_dir, topic.partitions)
            publish(producer, documents, everywhere, published, sent.advance)
            sent.is_of(published.records)
            if self.wait:
                searchable = bar("searchable")
                searchable.is_of(published.records)
                followed = follow(
                    receipts,
                    published,
                    lambda _receipt: searchable.advance(),
                    timeout_seconds=self.timeout_seconds,
                )
            seconds = time.monotonic() - began
        refused += [
            Refused(receipt.key, receipt.reason or "unknown", receipt.message or "") for receipt in followed.refused
        ]
        outcomes = dict(followed.outcomes) if self.wait else None
        notes = {receipt.key: list(receipt.notes) for receipt in followed.noted}
        return Loaded(published.records, published.token, outcomes, refused, round(seconds, 3), followed.absent, notes)


def with_repeated_tombstones(records: Iterable[Record], data_dir: Path, partitions: int) -> Iterator[Record]:
    """The records, and after each tombstone one for every other partition in which its document was seen.

    A tombstone removes the records of its own partition only: others would bring the document back when the stores are
    rebuilt. Which these are is known where the stores are on this machine.
    """
    from indexer.read.rows import DocumentLookup  # LanceDB, which only deletes need

    stores: DocumentLookup | None = None
    for record in records:
        yield record
        if record.value is not None:
            continue
        stores = stores or DocumentLookup.open(data_dir)
        row = stores.find(record.key)
        if row is not None:
            belongs = murmur2_partition(partitions)(str(record.key).encode("utf-8", "surrogatepass"))
            yield from (
                replace(record, partition=partition)
                for partition in sorted({row.partition, *row.other_partitions} - {belongs})
                if partition < partitions
            )


def _key(collection: str, document_id: str) -> DocumentKey:
    try:
        return DocumentKey.checked(collection, document_id)
    except MalformedEvent as error:
        raise WrongSetting(str(error)) from error


def settings_for(data_dir: Path | None) -> WorkerSettings:
    """The settings, with the data directory of the command line where one is given."""
    return WorkerSettings.load({"storage": {"data_dir": data_dir}} if data_dir is not None else {})


def bootstrap_servers(settings: WorkerSettings) -> str:
    """The cluster to talk to: the setting, else what `thalweg up` announced in the data directory."""
    if settings.kafka.bootstrap_servers:
        return settings.kafka.bootstrap_servers
    running = find_running(settings.storage.data_dir)
    if running is None:
        raise Unreachable(
            f"Nothing runs on {settings.storage.data_dir}. Start it with 'thalweg up', name its --data-dir, "
            "or set THALWEG_KAFKA__BOOTSTRAP_SERVERS."
        )
    return running.kafka
