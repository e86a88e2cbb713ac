"""The worker process: from its settings to its exit code."""

import asyncio
import logging
import os
import signal
import sys
import time
from typing import Any

import structlog
from threadpoolctl import threadpool_limits

from indexer.errors import EncoderFailure, IncompatibleGeneration, StoreInUse
from indexer.runtime.logs import configure_logging
from indexer.runtime.resources import limit_malloc_arenas, tune_gc
from schemas.errors import Exit, Failure, InUse, WrongSetting
from streams.context import WorkerContext
from streams.errors import WorkerExit
from streams.kafka.transport import raise_group_errors
from streams.settings import WorkerSettings
from streams.supervisor.data_directory import WORKER_LOCK, locked, make_directory, set_umask

STOP_SECONDS = 9.0
GC_THRESHOLDS = (50_000, 20, 100)
_CHATTY = {
    "aiokafka": logging.ERROR,
    "kafka": logging.ERROR,
    **dict.fromkeys(("faust", "mode", "streams.kafka.transport", "httpx"), logging.WARNING),
}


def run_worker(settings: WorkerSettings) -> int:
    """Run one worker until SIGTERM or SIGINT; its exit code.

    Raises Failure, with its own exit code, for what the operator can correct.
    """
    if not settings.kafka.bootstrap_servers:
        raise WrongSetting("No Kafka is named: set THALWEG_KAFKA__BOOTSTRAP_SERVERS, or use 'thalweg up'.")
    configure_logging(chatty=_CHATTY)
    limit_malloc_arenas()
    limit_blas_threads()
    raise_group_errors()
    data_dir = make_directory(settings.storage.data_dir)
    if warning := set_umask(data_dir):
        structlog.get_logger("thalweg.worker").warning(warning)
    with locked(data_dir, WORKER_LOCK, "worker"):
        try:
            return asyncio.run(_live(settings))
        except (IncompatibleGeneration, EncoderFailure) as error:
            raise WrongSetting(str(error)) from error
        except StoreInUse as error:
            raise InUse(str(error)) from error


async def _live(settings: WorkerSettings) -> int:
    log = structlog.get_logger("thalweg.worker")
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    log.info("worker starting")
    context = WorkerContext(settings)
    heartbeat = context.heartbeat
    beating = asyncio.create_task(heartbeat.run())
    stopping = asyncio.create_task(stop.wait())
    life = asyncio.create_task(_run(context))
    code = int(Exit.OK)
    try:
        await asyncio.wait({life, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if life.done():
            life.result()
    except (Failure, IncompatibleGeneration, EncoderFailure, StoreInUse, PermissionError) as error:
        heartbeat.failed(str(error))
        raise
    except Exception as error:  # the edge of the process: whatever it is, the supervisor starts it again
        heartbeat.failed(f"{type(error).__name__}: {error}")
        code = int(WorkerExit.RESTART)
        log.exception("worker failed; it must be started again", error=f"{type(error).__name__}: {error}")
    finally:
        stopping.cancel()
        life.cancel()
        await asyncio.wait({life})
        all_ended = await _closed(context, log)
        beating.cancel()
        await asyncio.wait({beating})
        heartbeat.stopped()
        if not all_ended:  # a thread is busy with what may be cut off at any point
            sys.stderr.flush()
            os._exit(code)
    return code


async def _run(context: WorkerContext) -> None:
    """Raises what made the worker fail."""
    await context.create()
    tune_gc(GC_THRESHOLDS)
    await context.failure


async def _closed(context: WorkerContext, log: Any) -> bool:
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
