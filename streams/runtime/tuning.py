"""Processor time the worker need not spend beside the encoder: threads that wait busily, searches for garbage."""

import gc

from threadpoolctl import threadpool_limits

COLLECT_EVERY = (50_000, 20, 100)


def limit_blas_threads() -> None:
    """Let numpy's BLAS use one thread in this process.

    The cosines of a document's chunks are a small product: several threads share it out at five times the processor
    time, since they wait for each other busily. The encoder's threads are its own and stay as they are.
    """
    threadpool_limits(limits=1, user_api="blas")


def tune_gc() -> None:
    """Call it when everything is started: what is there now stays, and is not searched for garbage again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_EVERY)
