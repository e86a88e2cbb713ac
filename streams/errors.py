"""What can stop the worker, by what to do about it."""

from enum import IntEnum


class WorkerExit(IntEnum):
    """Exit codes of the worker beyond those every command has (`schemas.errors`)."""

    RESTART = 70
    """Nothing it could recover from in place: start it again, and it continues from where the stores are."""


class RestartNeeded(Exception):
    """No document is to blame and no retry in place helps. Nothing was acknowledged: restart the worker."""


class StoreFailure(RestartNeeded):
    """A store failed in a way it does not call transient."""


class ParserFailure(RestartNeeded):
    """The child processes that parse do not start: repair the installation."""


class BrokerRefused(RestartNeeded):
    """Kafka permanently refused what must be delivered: correct the cluster's topics."""


class WorkerStuck(RestartNeeded):
    """A partition has records and makes no progress."""


class StartAgain(RestartNeeded):
    """The worker has to start again automatically: what it holds in memory is to be made again."""
