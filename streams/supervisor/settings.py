"""The settings of `thalweg up`: the worker's, and what `up` itself needs of the broker and the query service."""

from pydantic import BaseModel, ConfigDict, Field

from streams.embedded_kafka.broker import BrokerSettings
from streams.settings import WorkerSettings

DEFAULT_KAFKA_PORT = 9092
DEFAULT_SERVICE_PORT = 8420


class ServiceAddress(BaseModel):
    """Where the query service listens; its other settings are its own."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    host: str = Field(default="127.0.0.1", description="Address the query service listens on.")
    port: int = Field(default=DEFAULT_SERVICE_PORT, ge=0, le=65_535, description="Its port; 0 takes a free one.")

    @property
    def reachable_host(self) -> str:
        """The address under which this machine reaches it."""
        if self.host == "0.0.0.0":  # noqa: S104 - nothing is bound here
            return "127.0.0.1"
        return "[::1]" if self.host in ("::", "::1") else self.host


class UpSettings(WorkerSettings):
    """Read once at the start of `up`, `kafka` and `topics`."""

    broker: BrokerSettings = Field(default_factory=BrokerSettings)
    service: ServiceAddress = ServiceAddress()
