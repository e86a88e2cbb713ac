"""Logging configuration: of long-running processes, a line an event, readable or JSON; of commands, warnings alone."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping

import structlog

_REPEAT_SECONDS = 30.0


def configure_logging(level: str = "INFO", *, chatty: Mapping[str, int]) -> None:
    """Log to standard error, including the libraries' logging, warnings and uncaught exceptions. Call once, in `main`.

    `chatty` are libraries with their minimum levels; repeated messages of these are suppressed for a while.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]  # never the values of locals
        if sys.stderr.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer]
        )
    )
    handler.addFilter(RepeatFilter(chatty))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name, at_least in chatty.items():
        logging.getLogger(name).setLevel(at_least)
    logging.captureWarnings(True)
    threading.excepthook = _log_end_of_thread
    sys.unraisablehook = _log_unraisable


def log_to_stderr() -> None:
    """For commands, whose standard output is their answer: log warnings and failures to standard error, a line each."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def _log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        name = ended.thread.name if ended.thread else None
        structlog.get_logger(__name__).error("a thread ended with a failure", thread=name, exc_info=ended.exc_value)


def _log_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    structlog.get_logger(__name__).error(
        "a failure where none can be raised", at=repr(unraisable.object)[:200], exc_info=unraisable.exc_value
    )


class RepeatFilter:
    """Passes a message of a library once in _REPEAT_SECONDS: without a broker, aiokafka logs one 100 times a second."""

    def __init__(self, libraries: Collection[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._libraries = libraries
        self._clock = clock
        self._last: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] not in self._libraries:
            return True
        now = self._clock()
        message = (record.name, str(record.msg))
        if now - self._last.get(message, float("-inf")) < _REPEAT_SECONDS:
            return False
        self._last[message] = now
        return True
