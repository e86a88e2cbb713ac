"""`thalweg verify`: the stores compared with their checksums, each other and the log."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from schemas.errors import Exit, Failure, WrongSetting, plain_failures
from schemas.terminal import plain_json, say
from streams.cli.load import DataDir, Json

if TYPE_CHECKING:
    from indexer.store_verification import VerifyReport
    from streams.settings import WorkerSettings
    from streams.verification.ledger import LedgerReport
    from streams.verification.repair import RepairPlan
    from streams.verification.sample import SampleReport

app = typer.Typer()


class Store(StrEnum):
    """What can be made again as a whole."""

    TEXT = "text"
    GRAPH = "graph"


BROKER_SECONDS = 3.0


@app.command(epilog="Example: thalweg verify --deep --sample 200")
@plain_failures()
def verify(
    wait_seconds: Annotated[
        float,
        typer.Option(
            "--wait", "--wait-seconds", help="Seconds to wait until text and graph can be compared as a whole.", min=0
        ),
    ] = 30.0,
    log: Annotated[
        bool, typer.Option("--log/--no-log", help="Read the log too: what became of each record. Needs Kafka.")
    ] = True,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also derive a sample of the documents again, and compare. Needs the model.")
    ] = False,
    sample: Annotated[int, typer.Option(help="With --deep: how many documents.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="With --deep: which ones; the same seed chooses the same.")] = 1,
    repair: Annotated[
        bool, typer.Option("--repair", help="Have the worker make what differs again from the log.")
    ] = False,
    document: Annotated[
        list[str] | None, typer.Option(help="With --repair: only this collection/id; may be repeated.")
    ] = None,
    store: Annotated[
        Store | None, typer.Option(help="With --repair: the whole graph; text makes the next generation of all stores.")
    ] = None,
    as_json: Json = False,
    data_dir: DataDir = None,
) -> None:
    """Check every file and row against its checksum, and compare the two stores with each other and with the log.

    The worker may run meanwhile; only --repair changes anything. The digest is of content: equal content has an equal
    digest. Exits with 1 when anything differs or does not balance, and with 7 when nothing does, but the graph had not
    caught up with the text within --wait, so that the two were not compared.
    """
    from streams.loader.loader import settings_for
    from streams.verification.repair import RepairPlan, require_keys

    settings = settings_for(data_dir)
    if document or store:
        if not repair:
            raise WrongSetting("--document and --store say what --repair is to make again: add --repair.")
        require_keys(document or [])
        asked = RepairPlan(document or [], graph=store is Store.GRAPH, stores=store is Store.TEXT)
        _carry_out(settings, asked, {}, as_json=as_json)
        return
    checked = _check(settings, wait_seconds, (sample, seed) if deep else None, log=log or deep, shown=not as_json)
    if repair and checked.is_wrong and checked.report.digest:
        if not as_json:
            say(checked.text())
        plan = RepairPlan.of(checked.report, checked.ledger, checked.sample)
        _carry_out(settings, plan, checked.answer(), as_json=as_json)
        return
    _print(checked.answer(), checked.text(), as_json=as_json)
    if not checked.ok:
        raise typer.Exit(Exit.FAILED if checked.is_wrong else Exit.INCOMPLETE)


@dataclass(frozen=True)
class Checked:
    """What was found: of the stores, of the log and of the sample, None where these were not looked at; `note` says why
    the log was not."""

    report: "VerifyReport"
    ledger: "LedgerReport | None" = None
    sample: "SampleReport | None" = None
    note: str | None = None

    @property
    def is_wrong(self) -> bool:
        log_differs = self.ledger is not None and not self.ledger.balanced
        return self.report.is_wrong or log_differs or (self.sample is not None and self.sample.differing_count > 0)

    @property
    def ok(self) -> bool:
        return self.report.ok and not self.is_wrong

    def answer(self) -> dict[str, object]:
        """For a program."""
        import msgspec

        of_log = {"ledger": self.ledger, "sample": self.sample, "log_note": self.note}
        return {**msgspec.to_builtins(self.report), "ok": self.ok, **of_log}

    def text(self) -> str:
        """For a person."""
        parts = [part.lines() for part in (self.report, self.ledger, self.sample) if part is not None]
        return "\n".join([*chain.from_iterable(parts), *([self.note] if self.note else [])])


def _check(
    settings: "WorkerSettings", wait_seconds: float, sampled: tuple[int, int] | None, *, log: bool, shown: bool
) -> Checked:
    from indexer.errors import EncoderFailure, IncompatibleGeneration, TransientStoreError
    from indexer.store_verification import verify_when_complete

    try:
        report = verify_when_complete(settings.storage.data_dir, wait_seconds)
        if not log or not report.digest:
            return Checked(report)
        return Checked(report, *_hold_against_log(settings, sampled, shown=shown))
    except (IncompatibleGeneration, TransientStoreError, EncoderFailure, FileNotFoundError) as error:
        raise Failure(str(error)) from error


def _carry_out(settings: "WorkerSettings", plan: "RepairPlan", answer: dict[str, object], *, as_json: bool) -> None:
    """Have it made again, and print the answer with what came of it."""
    try:
        repaired, text = _repair(settings, plan, shown=not as_json)
    except Failure as error:
        if as_json:
            _print(answer | {"repair": {"problem": str(error)}}, "", as_json=True)
        raise
    _print(answer | {"repair": repaired}, text, as_json=as_json)
    if repaired.get("failed"):
        raise typer.Exit(Exit.FAILED)


def _print(answer: dict[str, object], text: str, *, as_json: bool) -> None:
    import msgspec

    if as_json:
        print(plain_json(msgspec.json.encode(answer).decode()))
    else:
        say(text)


def _repair(settings: "WorkerSettings", plan: "RepairPlan", *, shown: bool) -> tuple[dict[str, object], str]:
    """Order it of the worker, and follow it. What came of it, for a program and a person."""
    import asyncio

    from kafka.errors import KafkaError

    from indexer.generation_folders import current_generation
    from schemas.progress_bars import progress_bars
    from streams.kafka.stores_log import own_documents_topic
    from streams.loader.loader import bootstrap_servers
    from streams.verification.repair import Orders, require_worker

    if not plan:
        raise Failure("Nothing could be repaired from the log; see each message.")
    generation = current_generation(settings.storage.data_dir)
    require_worker(settings.storage.data_dir)
    if generation is None:
        raise Failure(f"There are no stores in {settings.storage.data_dir}.")
    try:
        connection = settings.kafka.at(bootstrap_servers(settings))
        asyncio.run(own_documents_topic(connection, settings.kafka, settings.storage.data_dir))
        orders = Orders(connection, settings.kafka.topic_prefix, generation)
        if plan.stores:
            name = orders.rebuild()
            sentence = f"Generation {name} is ordered: 'thalweg generations show {name}' shows its progress."
            return {"generation": name}, sentence
        with progress_bars(shown=shown) as bar:
            repaired = bar("repaired", len(plan.documents))
            done = orders.repair(
                plan.documents,
                graph=plan.graph,
                show=lambda each: repaired.set(each.repaired + each.kept + each.failed),
            )
    except KafkaError as error:
        raise Failure(f"The repair cannot be ordered: Kafka does not answer ({type(error).__name__}).") from error
    text = f"{done.repaired:,} documents made again from the log" + (", and the graph." if done.graph else ".")
    if done.kept:
        text += f" {done.kept:,} stay as they are: the log no longer holds what they came from."
    if done.failed:
        text += f" {done.failed:,} could not be made again; the worker's log says why."
    return {"repaired": done.repaired, "kept": done.kept, "failed": done.failed, "graph": done.graph}, text


def _hold_against_log(
    settings: "WorkerSettings", sampled: tuple[int, int] | None, *, shown: bool
) -> tuple["LedgerReport | None", "SampleReport | None", str | None]:
    """The ledger, and the sample of (documents, seed); or why the log was not read, where Kafka is away."""
    import asyncio

    from aiokafka.errors import KafkaError

    from indexer.errors import IncompatibleGeneration
    from indexer.generation_folders import current_generation
    from indexer.read.lance_reader import LanceReader
    from kafka_client.sync_clients import answers_metadata
    from schemas.errors import Unreachable
    from schemas.progress_bars import progress_bars
    from streams.loader.loader import bootstrap_servers
    from streams.verification.log import InstallationLog

    generation = current_generation(settings.storage.data_dir)
    if generation is None:
        raise IncompatibleGeneration(f"There are no stores in {settings.storage.data_dir}.")

    async def read(installation: InstallationLog) -> tuple["LedgerReport", "SampleReport | None"]:
        snapshot = LanceReader.open(generation).snapshot()
        with progress_bars(shown=shown) as bar:
            if sampled is None:
                return await installation.ledger(generation, snapshot, bar("log")), None
            from streams.generations.role import WorkerRole
            from streams.indexing.extract import versions_of
            from streams.verification.sample import Sample, SampleComparison, open_builder, require_same_pipeline

            require_same_pipeline(generation)
            sample = Sample(snapshot.known_documents(), *sampled)
            ledger = await installation.ledger(generation, snapshot, bar("log"), sample.take)
            role = WorkerRole(settings, None)
            choices = await installation.choices(role.chunking, versions_of(settings))
            documents = bar("sample", len(sample.records))
            async with open_builder(settings, role, choices) as builder:
                comparison = SampleComparison(builder, choices, settings.limits, generation, snapshot)
                compared = await comparison.compare(sample, documents.advance)
            return ledger, compared

    try:
        connection = settings.kafka.at(bootstrap_servers(settings))
        if not answers_metadata(connection, seconds=BROKER_SECONDS):
            raise Unreachable(f"No Kafka broker answers at {connection}.")
        ledger, derived = asyncio.run(read(InstallationLog(connection, settings.kafka, settings.limits)))
    except (Unreachable, KafkaError, ConnectionError, TimeoutError) as error:
        what = str(error) if isinstance(error, Unreachable) else f"Kafka went away ({type(error).__name__})."
        return None, None, f"The log was not read, so only the stores were compared. {what}"
    return ledger, derived, None
