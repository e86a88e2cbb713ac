"""The worker's log."""

import structlog

log = structlog.get_logger("thalweg.worker")
