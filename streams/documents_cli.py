"""The commands that put documents in and take them out: `thalweg load`, `thalweg delete`; and `thalweg verify`."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from schemas.errors import MalformedEvent
from schemas.exits import Exit, Unreachable, WrongSetting, plain_failures
from schemas.ids import DocumentKey
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames
from streams.settings import WorkerSettings, load_settings
from streams.sources import Record, Refused, Selection, read_sources

app = typer.Typer()

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="The data directory of the `thalweg up` to talk to.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until everything is searchable.")]
Patience = Annotated[float, typer.Option(help="Give up waiting after so many seconds without a receipt.", min=0)]
SHOWN_REFUSALS = 20


@app.command()
@plain_failures()
def load(
    paths: Annotated[
        list[str], typer.Argument(help="Files, folders, JSON lines of envelopes (.jsonl, also .gz and .xz), or -.")
    ],
    collection: Annotated[
        str, typer.Option(help="Collection for files, and for envelopes that name none.")
    ] = "default",
    include: Annotated[list[str] | None, typer.Option(help="Take only files of a folder that match this glob.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Leave out files of a folder that match this glob.")] = None,
    wait: Wait = True,
    patience: Patience = 60.0,
    as_json: Json = False,
    data_dir: DataDir = None,
) -> None:
    """Publish documents and follow them until they are searchable.

    A line {"id": …, "collection": …, "deleted": true} in JSON lines deletes. What would end as a dead letter is
    refused here and listed; the rest goes in. Prints the token: search with --after TOKEN to see at least these.
    """
    settings = _settings(data_dir)
    selection = Selection(collection=collection, include=include or (), exclude=exclude or ())
    refused: list[Refused] = []

    def accepted() -> Iterator[Record]:
        for item in read_sources(paths, selection, settings.limits):
            if isinstance(item, Refused):
                refused.append(item)
            else:
                yield item

    summary = _publish_and_follow(settings, accepted(), wait=wait, patience=patience, quiet=as_json)
    summary["refused"] += [vars(item) for item in refused]
    _print_summary(summary, as_json=as_json)
    if summary["refused"]:
        raise typer.Exit(Exit.FAILED)


@app.command()
@plain_failures()
def delete(
    document_ids: Annotated[list[str], typer.Argument(help="Ids of the documents.")],
    collection: Annotated[str, typer.Option(help="Their collection.")] = "default",
    wait: Wait = True,
    patience: Patience = 60.0,
    as_json: Json = False,
    data_dir: DataDir = None,
) -> None:
    """Delete documents from both stores. Prints the token."""
    try:
        keys = [DocumentKey.checked(collection, document_id) for document_id in document_ids]
    except MalformedEvent as error:
        raise WrongSetting(str(error)) from error
    records = [Record(key, None, (), str(key)) for key in keys]
    summary = _publish_and_follow(_settings(data_dir), records, wait=wait, patience=patience, quiet=as_json)
    _print_summary(summary, as_json=as_json)


@app.command()
@plain_failures()
def verify(
    wait_seconds: Annotated[
        float, typer.Option(help="How long to wait for a graph snapshot that has caught up with the text.", min=0)
    ] = 30.0,
    as_json: Json = False,
    data_dir: DataDir = None,
) -> None:
    """Hold the two stores against each other, beside a running worker, on the newest snapshot.

    The digest is of content: equal content has an equal digest. Exits with 1 when anything differs.
    """
    from indexer.verify import verify_when_complete  # opens both stores: half a second of imports

    settings = _settings(data_dir)
    report = verify_when_complete(settings.storage.data_dir, wait_seconds)
    if as_json:
        print(msgspec.json.encode(report).decode())
    else:
        console = Console()
        for line in report.lines():
            console.print(line, highlight=False)
    if not report.ok:
        raise typer.Exit(Exit.FAILED)


def _settings(data_dir: Path | None) -> WorkerSettings:
    return load_settings({"storage": {"data_dir": data_dir}} if data_dir is not None else {})


def bootstrap_servers(settings: WorkerSettings) -> str:
    """The cluster to talk to: the setting, else what `thalweg up` announced in the data directory."""
    from schemas.discovery import find_running

    if settings.kafka.bootstrap_servers:
        return settings.kafka.bootstrap_servers
    running = find_running(settings.storage.data_dir)
    if running is None:
        raise Unreachable(
            f"Nothing runs on {settings.storage.data_dir}. Start it with 'thalweg up', name its --data-dir, "
            "or set THALWEG_KAFKA__BOOTSTRAP_SERVERS."
        )
    return running.kafka


def _publish_and_follow(
    settings: WorkerSettings, records: Iterable[Record], *, wait: bool, patience: float, quiet: bool
) -> dict[str, Any]:
    return asyncio.run(
        _published(settings.kafka, bootstrap_servers(settings), records, wait=wait, patience=patience, quiet=quiet)
    )


async def _published(
    kafka: KafkaSettings, servers: str, records: Iterable[Record], *, wait: bool, patience: float, quiet: bool
) -> dict[str, Any]:
    from streams.publishing import Followed, Published, follow, open_producer, open_receipts, publish

    published, followed = Published(), Followed()
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=quiet,
    )
    with progress:
        async with open_receipts(kafka, servers) as receipts, open_producer(kafka, servers) as producer:
            sending = progress.add_task("published", total=None)
            topic = TopicNames(kafka.topic_prefix).documents
            await publish(producer, topic, records, published, lambda: progress.advance(sending))
            progress.update(sending, total=published.records)
            if wait:
                showing = progress.add_task("searchable", total=published.records)
                followed = await follow(
                    receipts, published, lambda _receipt: progress.advance(showing), patience_seconds=patience
                )
    return {
        "published": published.records,
        "token": published.token,
        "outcomes": dict(followed.outcomes) if wait else None,
        "refused": [
            {"origin": receipt.key, "reason": receipt.reason, "message": receipt.message}
            for receipt in followed.refused
        ],
    }


def _print_summary(summary: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(summary))
        return
    console = Console()
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted((summary["outcomes"] or {}).items()))
    console.print(f"{summary['published']} published{': ' + outcomes if outcomes else ''}", highlight=False)
    reasons = Counter(item["reason"] for item in summary["refused"])
    if reasons:
        console.print("refused: " + ", ".join(f"{count} {reason}" for reason, count in reasons.most_common()))
        for item in summary["refused"][:SHOWN_REFUSALS]:
            console.print(f"  {item['origin']}: {item['message']}", markup=False, highlight=False)
        if len(summary["refused"]) > SHOWN_REFUSALS:
            console.print(f"  … and {len(summary['refused']) - SHOWN_REFUSALS} more (--json lists all)")
    if summary["token"]:
        console.print(f"token {summary['token']}", highlight=False)
