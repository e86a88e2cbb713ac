"""How the worker's log looks: one line an event, for people on a terminal, as JSON anywhere else."""

import logging
import sys
import time
from collections.abc import Callable

import structlog

_REPEAT_SECONDS = 30.0
_CHATTY = {"aiokafka": logging.ERROR, "faust": logging.WARNING, "mode": logging.WARNING, "httpx": logging.WARNING}


def configure_logging(level: str = "INFO") -> None:
    """Called once, by the process's main. All of it, Faust's and the libraries' logging too, goes to standard error."""
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
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    handler.addFilter(RepeatFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name, at_least in _CHATTY.items():
        logging.getLogger(name).setLevel(at_least)


class RepeatFilter:
    """Lets a library's message through once in a while: without its broker, aiokafka says the same a hundred times a
    second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] not in _CHATTY:
            return True
        now = self._clock()
        what = (record.name, str(record.msg))
        if now - self._said.get(what, float("-inf")) < _REPEAT_SECONDS:
            return False
        self._said[what] = now
        return True
