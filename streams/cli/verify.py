"""`thalweg verify`: the stores held against their checksums, against each other, and against the log."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from schemas.errors import Exit, Failure, plain_failures
from schemas.terminal import plain_json, say
from streams.cli.load import DataDir, Json

if TYPE_CHECKING:
    from streams.settings import WorkerSettings
    from streams.verification.ledger import LedgerReport
    from streams.verification.sample import SampleReport

app = typer.Typer()

BROKER_SECONDS = 3.0


@app.command()
@plain_failures()
def verify(
    wait_seconds: Annotated[
        float, typer.Option(help="How long to wait for a graph snapshot that has caught up with the text.", min=0)
    ] = 30.0,
    log: Annotated[
        bool, typer.Option("--log/--no-log", help="Read the log too: what became of each record. Needs Kafka.")
    ] = True,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also derive a sample of the documents again, and compare. Needs the model.")
    ] = False,
    sample: Annotated[int, typer.Option(help="With --deep: how many documents.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="With --deep: which ones; the same seed chooses the same.")] = 1,
    as_json: Json = False,
    data_dir: DataDir = None,
) -> None:
    """Hold every file and row against its checksum, the two stores against each other, and both against the log.

    Beside a running worker; nothing is changed. The digest is of content: equal content has an equal digest. Exits with
    1 when anything differs or does not balance.
    """
    import msgspec

    from indexer.errors import EncoderFailure, IncompatibleGeneration, TransientStoreError
    from indexer.verify import verify_when_complete
    from streams.loader.loader import settings_for

    settings = settings_for(data_dir)
    ledger: LedgerReport | None = None
    derived: SampleReport | None = None
    note: str | None = None
    try:
        report = verify_when_complete(settings.storage.data_dir, wait_seconds)
        if (log or deep) and report.digest:
            ledger, derived, note = _hold_against_log(settings, (sample, seed) if deep else None, shown=not as_json)
    except (IncompatibleGeneration, TransientStoreError, EncoderFailure, FileNotFoundError) as error:
        raise Failure(str(error)) from error
    ok = report.ok and (ledger is None or ledger.balanced) and (derived is None or not derived.differing_count)
    if as_json:
        answer = msgspec.to_builtins(report) | {"ok": ok, "ledger": ledger, "sample": derived, "log_note": note}
        print(plain_json(msgspec.json.encode(answer).decode()))
    else:
        parts = [part.lines() for part in (report, ledger, derived) if part is not None]
        say("\n".join([*(line for lines in parts for line in lines), *([note] if note else [])]))
    if not ok:
        raise typer.Exit(Exit.FAILED)


def _hold_against_log(
    settings: "WorkerSettings", sampled: tuple[int, int] | None, *, shown: bool
) -> tuple["LedgerReport | None", "SampleReport | None", str | None]:
    """The ledger, and the sample of (documents, seed); or why the log was not read, where Kafka is away."""
    from aiokafka.errors import KafkaError

    from indexer.errors import IncompatibleGeneration
    from indexer.generations import current_generation
    from indexer.read.lance import LanceReader
    from kafka_client.sync_clients import answers_metadata
    from schemas.errors import Unreachable
    from streams.loader.loader import bootstrap_servers, progress_bars
    from streams.verification.log import InstallationLog

    generation = current_generation(settings.storage.data_dir)
    if generation is None:
        raise IncompatibleGeneration(f"There are no stores in {settings.storage.data_dir}.")

    async def read(installation: InstallationLog) -> tuple["LedgerReport", "SampleReport | None"]:
        snapshot = LanceReader.open(generation).snapshot()
        with progress_bars(shown=shown) as bar:
            offsets = bar("log")
            if sampled is None:
                return await installation.ledger(generation, snapshot, offsets.is_of, offsets.advance), None
            from streams.generations.role import WorkerRole
            from streams.verification.sample import Sample, SampleComparison, open_builder, require_same_pipeline

            require_same_pipeline(generation)
            sample = Sample(snapshot.known_documents(), *sampled)
            ledger = await installation.ledger(generation, snapshot, offsets.is_of, offsets.advance, sample.take)
            role = WorkerRole(settings, None)
            choices = await installation.choices(role.chunking.parameters())
            documents = bar("sample")
            documents.is_of(len(sample.records))
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
