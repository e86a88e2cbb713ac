"""The worker process: from its settings to its exit code."""

import asyncio
import logging
import os
import signal
import sys
import time
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

from indexer.errors import DamagedStore, EncoderFailure, IncompatibleGeneration
from indexer.generation_folders import Generation, current_generation, restore_current
from indexer.integrity.noted_damage import Damaged, note_damage
from indexer.runtime.logs import configure_logging
from indexer.runtime.resources import limit_malloc_arenas, tune_gc
from kafka_client.client_internals import raise_group_errors
from kafka_client.skipped_batches import SkippedBatches
from schemas.errors import Exit, Failure, WrongSetting
from schemas.runtime import announced
from schemas.topics import TopicNames
from streams.child_processes import Child
from streams.errors import StartAgain, WorkerExit
from streams.faust_app import group_name
from streams.generations.build_and_switch import GenerationHost
from streams.generations.healing import UnsafeToHeal, keep_healing, order_successor
from streams.kafka.partition_reader import SettingsTopic
from streams.kafka.topics import delete_topics
from streams.runtime.partition_progress import Unreadable
from streams.settings import WorkerSettings
from streams.supervisor.data_directory import WORKER_LOCK, locked, make_directory, set_umask
from streams.worker_context import WorkerContext
from streams.worker_log import log

STOP_SECONDS = 9.0
BUILD_NICENESS = 5  # what people wait for goes first; beside one busy thread a build still gets a quarter of a core
GC_THRESHOLDS = (50_000, 20, 100)
_CHATTY = {
    "aiokafka": logging.ERROR,
    "kafka": logging.ERROR,
    **dict.fromkeys(("faust", "mode", "streams.kafka.transport", "httpx"), logging.WARNING),
}


def run_worker(settings: WorkerSettings, build: str | None = None) -> int:
    """Run one worker until SIGTERM or SIGINT; its exit code. `build` names the generation to build beside the live one.

    When another generation became the live one, the process becomes a worker on that. Raises Failure, with its own exit
    code, for what the operator can correct.
    """
    if not settings.kafka.bootstrap_servers:
        raise WrongSetting("No Kafka is named: set THALWEG_KAFKA__BOOTSTRAP_SERVERS, or use 'thalweg up'.")
    configure_logging(chatty=_CHATTY)
    limit_malloc_arenas()
    limit_blas_threads()
    raise_group_errors()
    data_dir = make_directory(settings.storage.data_dir)
    if warning := set_umask(data_dir):
        log.warning(warning)
    if build is not None:
        os.nice(BUILD_NICENESS)
    try:
        if build is not None:
            return asyncio.run(_live(settings, build))
        with (
            locked(data_dir, WORKER_LOCK, "worker"),
            announced(data_dir, "worker", kafka=settings.kafka.bootstrap_servers) as problem,
        ):
            if problem:
                log.warning(problem)
            restore_current(data_dir)
            return asyncio.run(_live(settings))
    except _Replaced:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this very program
    except (IncompatibleGeneration, EncoderFailure) as error:
        raise WrongSetting(str(error)) from error


class _Replaced(Exception):
    """Another generation is live, or the worker has to start again: start this program again."""


async def _live(settings: WorkerSettings, build: str | None = None) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    log.info("worker starting")
    context = WorkerContext(settings, build)
    host = generation_host(settings, context) if build is None else None
    heartbeat = context.heartbeat
    beating = asyncio.create_task(heartbeat.run())
    stopping = asyncio.create_task(stop.wait())
    hosting = asyncio.create_task(host.run() if host is not None else _never())
    life = asyncio.create_task(_run(context))
    code = int(Exit.OK)
    replaced = False
    try:
        replaced = await _until_over(context, life, {stopping, hosting}, settings, build)
        if hosting.done():
            hosting.result()
            replaced = True
    except (Failure, IncompatibleGeneration, EncoderFailure, PermissionError) as error:
        heartbeat.failed(str(error))
        raise
    except Exception as error:  # noqa: BLE001 - the edge of the process: whatever it is, the supervisor starts it again
        heartbeat.failed(f"{type(error).__name__}: {error}")
        code = int(WorkerExit.RESTART)
        log.exception("worker failed; it must be started again", error=f"{type(error).__name__}: {error}")
    finally:
        for task in (stopping, life, hosting):
            task.cancel()
        await asyncio.wait({life, hosting})
        stopping_build = asyncio.create_task(_stop_build(host))
        all_ended = await _closed(context)
        await stopping_build
        beating.cancel()
        await asyncio.wait({beating})
        heartbeat.stopped()
        if not all_ended and not replaced:  # a thread is busy with what may be cut off at any point
            sys.stderr.flush()
            os._exit(code)
    if replaced:
        raise _Replaced
    return code


async def _never() -> None:
    await asyncio.Event().wait()


async def _until_over(
    context: WorkerContext,
    life: "asyncio.Task[None]",
    others: set[asyncio.Task[Any]],
    settings: WorkerSettings,
    build: str | None,
) -> bool:
    """Returns when one of the others is done, or the worker is to start again: True then. Raises what ended the
    worker."""
    await asyncio.wait({life, *others}, return_when=asyncio.FIRST_COMPLETED)
    if life.done() and not life.cancelled():
        error = life.exception()
        live = _live_generation(settings) if build is None else None
        if isinstance(error, StartAgain):
            return True
        if isinstance(error, DamagedStore) and live is not None:
            noted = await asyncio.to_thread(note_damage, live, str(error))
            if context.is_running:
                return True  # the next start waits
            await _heal(context, live, noted, others, settings)
        elif isinstance(error, DamagedStore) and build is not None:
            await asyncio.to_thread(note_damage, Generation(settings.storage.data_dir, build), str(error))
            raise error
        elif isinstance(error, IncompatibleGeneration) and live is not None:
            context.stand_by(str(error))
            await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        else:
            life.result()
    return False


async def _heal(
    context: WorkerContext, live: Generation, noted: Damaged, others: set[asyncio.Task[Any]], settings: WorkerSettings
) -> None:
    """Stand by until another generation is live, or the worker is stopped."""
    context.stand_by(noted.sentence())
    healing = asyncio.create_task(keep_healing(live, partial(order_successor, live, settings.kafka)))
    await asyncio.wait({healing, *others}, return_when=asyncio.FIRST_COMPLETED)
    if healing.done() and isinstance(error := healing.exception(), UnsafeToHeal):
        context.stand_by(f"{noted.problem} {error}")
    await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
    healing.cancel()
    await asyncio.wait({healing})


def _live_generation(settings: WorkerSettings) -> Generation | None:
    """The one whose place another could take, named again where `CURRENT` is damaged; None where there is none."""
    restore_current(settings.storage.data_dir)
    return current_generation(settings.storage.data_dir)


def generation_host(settings: WorkerSettings, live: WorkerContext) -> GenerationHost:
    """What carries out orders about generations of this data directory, beside the worker that runs the live one."""
    data_dir = settings.storage.data_dir.absolute()
    names = TopicNames(settings.kafka.topic_prefix)
    skipped = SkippedBatches(lambda: settings.kafka, names.curation)
    topic = SettingsTopic(
        settings.kafka, names.curation, group_name(settings.kafka.topic_prefix, "orders"), skipped, Unreadable()
    )

    def start_build(name: str) -> Child:
        command = [sys.executable, "-m", "thalweg", "worker", "--build", name, "--data-dir", str(data_dir)]
        servers = ",".join(settings.kafka.servers)
        logs = make_directory(data_dir / "logs")
        return Child(
            [*command, "--bootstrap-servers", servers, "--metrics-port", "0"], output=logs / f"build-{name}.log"
        )

    def forget_topic(name: str) -> None:
        delete_topics(settings.kafka, [names.contributions(name)])

    return GenerationHost(data_dir, topic, live, start_build, forget_topic)


async def _run(context: WorkerContext) -> None:
    """Raises what made the worker fail."""
    await context.create()
    context.is_running = True
    tune_gc(GC_THRESHOLDS)
    await context.failure


async def _stop_build(host: GenerationHost | None) -> None:
    if host is None:
        return
    try:
        await host.close()
    except Exception as error:  # noqa: BLE001 - the edge of the process: it ends all the same, and the build with it
        log.exception("the build did not stop", error=f"{type(error).__name__}: {error}")


async def _closed(context: WorkerContext) -> bool:
    """Whether the worker stopped in time, with every thread of it."""
    began = time.monotonic()
    stop = asyncio.create_task(context.aclose())
    await asyncio.wait({stop}, timeout=STOP_SECONDS)
    seconds = round(time.monotonic() - began, 2)
    if not stop.done():
        log.warning("worker did not stop in time, and is cut off", seconds=seconds)
        return False
    if (error := stop.exception()) is not None:
        log.error("worker stopped with a failure", seconds=seconds, error=f"{type(error).__name__}: {error}")
    else:
        log.info("worker stopped", seconds=seconds)
    return not context.is_loading_encoder


def limit_blas_threads() -> None:
    """Let numpy's BLAS use one thread in this process.

    The cosines of a document's chunks are a small product: several threads take five times the processor time for it,
    since they wait for each other busily. The encoder's threads are its own and stay as they are.
    """
    threadpool_limits(limits=1, user_api="blas")
