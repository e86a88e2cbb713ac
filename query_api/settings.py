"""The query service's settings; where they come from stands in `schemas/settings.py`."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from schemas.hosts import LOOPBACK_NAMES, is_loopback
from schemas.settings import (
    MIB,
    EmbeddingSettings,
    EndpointAddress,
    EndpointKey,
    KafkaSettings,
    LimitSettings,
    ProcessSettings,
    StorageSettings,
)


class SearchBudgetSettings(BaseModel):
    """How long each step of a search may take. A channel that takes longer is left out, and the answer says so."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    embed_seconds: float = Field(2.0, gt=0, le=600, description="Turning the question into a vector.")
    vector_seconds: float = Field(2.0, gt=0, le=600, description="The vector index; raise it for cold, large tables.")
    keyword_seconds: float = Field(2.0, gt=0, le=600, description="The keyword index; raise it with the one above.")
    structured_seconds: float = Field(1.0, gt=0, le=600, description="Documents' own fields, in memory.")
    graph_seconds: float = Field(2.0, gt=0, le=600, description="Following the graph in memory.")
    texts_seconds: float = Field(5.0, gt=0, le=600, description="Reading the hits' texts; late here fails the search.")


class ServiceBlock(BaseModel):
    """What only the query service needs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on. Any but loopback needs `api_key`.")
    port: int = Field(8420, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    api_key: SecretStr | None = Field(
        None,
        min_length=16,
        description="When set, every request but /livez, /readyz and the console's page needs it as a bearer token.",
    )
    read_api_key: SecretStr | None = Field(
        None,
        min_length=16,
        description="A second key, for who may only read: GET, HEAD and `POST /v1/search`. All else gets 403: writes, "
        "edits, feedback, rebuilds, evaluations, clearing the cache. It goes beside `api_key`, and is another one.",
    )
    session_token_seconds: int = Field(
        600,
        ge=10,
        le=86_400,
        description="How long a token of `POST /v1/session-tokens` is good for, with which a page in a browser reads; "
        "it ends before when its key is changed. A stream that is open when it expires goes on; choose it longer than "
        "a page's streams are resumed.",
    )
    allowed_hosts: tuple[str, ...] = Field(
        LOOPBACK_NAMES,
        description="Host names a request may be addressed to while there is no `api_key`; this keeps web pages that "
        "point a name of their own at this machine away. Add the name a proxy in front uses.",
    )
    cors_origins: tuple[str, ...] = Field(
        (),
        description="Origins of web pages that may use this service from a browser, such as "
        "`https://wiki.example.org`; its own pages always may. Of other pages, writes are refused.",
    )
    search_threads: int = Field(
        4,
        ge=1,
        le=256,
        description="Threads that search the stores, and searches that run at once (at least two for each of "
        "`search_processes`); others wait for their turn. About two for each core; more only queue. Raise it where "
        "vectors come from an endpoint.",
    )
    max_search_wait_seconds: float = Field(
        2.0,
        gt=0,
        le=60,
        description="The longest that a search may be expected to wait for its turn, by how long recent ones took. "
        "One that would wait longer is refused at once with 503 and `Retry-After`; 429 where its client holds more "
        "than its share of the queue. Stay well under the time-out of your clients.",
    )
    search_processes: int = Field(
        0,
        ge=0,
        le=64,
        description="Processes that search while several searches come at once: the service, and copies of it that "
        "share its memory, of which each needs some 100 MB. 0 for one for each core that the "
        "service may use (a container's quota counts), four at most; 1 for the service alone. Linux only.",
    )
    budgets: SearchBudgetSettings = SearchBudgetSettings()
    max_streams: int = Field(
        256,
        ge=1,
        description="Searches that may stream at once; one more gets 503. Each holds some 100 kB beside its frames, "
        "which count towards `replay_bytes`.",
    )
    max_status_streams: int = Field(
        256, ge=1, description="Documents that may be followed by streams at once; one more gets 503."
    )
    send_timeout_seconds: float = Field(
        30.0,
        gt=0,
        description="A client that reads nothing of an answer for so long is disconnected; a stream can be resumed.",
    )
    keep_alive_seconds: float = Field(
        15.0, gt=0, description="A stream is silent for at most so long; stay under the idle limit of proxies between."
    )
    replay_retrievals: int = Field(1_000, ge=0, description="Streams that can be resumed with Last-Event-ID, at most.")
    replay_seconds: float = Field(300.0, ge=0, description="How long after its last frame a stream can be resumed.")
    replay_bytes: int = Field(
        64 * MIB,
        ge=0,
        description="Memory for the frames of streams, kept for resuming or not read yet. The oldest go first, then "
        "those of clients that do not read, whose streams end with an error.",
    )
    cursor_snapshots: int = Field(
        8,
        ge=0,
        le=256,
        description="Snapshots kept for cursors, at most; each shares with the newest one what did not change. Raise "
        "it where documents change while people turn pages.",
    )
    cursor_seconds: float = Field(
        300.0,
        ge=0,
        le=480,
        description="How long a snapshot is kept after a first page was read from it; then its cursors get 410.",
    )
    resident_text_bytes: int = Field(
        512 * MIB,
        ge=0,
        le=2_000 * MIB,
        description="Memory for the passages' texts; with more of them, searches read them from the tables, which "
        "takes about 15 ms longer.",
    )
    cache_entries: int = Field(100, ge=0, description="Answers in the cache of results, at most; 0 turns it off.")
    cache_seconds: float = Field(300.0, ge=0, description="How long an answer stays in the cache of results, at most.")
    cache_bytes: int = Field(32 * MIB, ge=0, description="Memory for the cache of results.")
    provenance_buffer: int = Field(
        10_000, ge=1, description="Retrievals queued while Kafka is away; further ones are dropped and counted."
    )
    provenance_flush_seconds: float = Field(5.0, ge=0, description="How long a stop waits for unsent retrievals.")
    refresh_seconds: float = Field(
        2.0, gt=0, le=60, description="How often newer tables and graph snapshots are taken from disk."
    )
    canary_seconds: float = Field(
        60.0,
        ge=0,
        description="After so many seconds in which no document measured freshness, a canary measures it: a delete of "
        "a document that does not exist, which no list or count shows. 0 turns it off.",
    )
    max_lag_seconds: float | None = Field(
        None,
        gt=0,
        description="/readyz says 503 while a document has waited longer than this to become searchable, so that a "
        "balancer asks another service; choose it above what your largest load takes. Unset: never. While Kafka is "
        "away the lag is unknown, and does not count.",
    )
    write_timeout_seconds: float = Field(
        4.0, gt=0, le=60, description="How long a write waits for Kafka before it is refused with 503."
    )
    max_request_bytes: int = Field(
        64 * MIB, ge=1_024, description="Largest body of one request: a batch of documents, or uploaded files."
    )
    request_bytes_at_once: int = Field(
        128 * MIB,
        ge=1_024,
        description="Bodies of documents in memory at once, over all requests; more gets 503 with `Retry-After`. "
        "Each byte costs about four of memory while it is read and published. `max_request_bytes` is let in anyway.",
    )
    max_batch_documents: int = Field(1_000, ge=1, description="Most documents in one request.")

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        if not self.is_loopback and self.api_key is None:
            raise ValueError(
                f"refusing to listen on {self.host} without an API key: set THALWEG_SERVICE__API_KEY "
                "(16 characters or more), or listen on 127.0.0.1"
            )
        return self

    @model_validator(mode="after")
    def _two_keys(self) -> Self:
        if self.read_api_key is None:
            return self
        if self.api_key is None:
            raise ValueError(
                "a key that only reads protects nothing without one for the rest: set THALWEG_SERVICE__API_KEY too"
            )
        if self.read_api_key == self.api_key:
            raise ValueError(
                "the key that only reads is the same as THALWEG_SERVICE__API_KEY, which may do all: choose another for "
                "THALWEG_SERVICE__READ_API_KEY"
            )
        return self

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            parts = urlsplit(origin)
            if (
                parts.scheme not in ("http", "https")
                or origin != f"{parts.scheme}://{parts.netloc}"
                or not parts.netloc
            ):
                raise ValueError(
                    f"{origin!r} is no origin: write scheme, host and port as a browser does, such as "
                    "https://wiki.example.org or http://localhost:3000"
                )
        return origins


class RerankerSettings(BaseModel):
    """Which model reads the question together with each of the first hits, to put these into another order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Literal["none", "cross-encoder", "endpoint"] = Field(
        "none",
        description="What re-orders the first hits. `none`: nothing. `cross-encoder`: a model on this machine, in "
        "torch (the extra `torch`). `endpoint`: one that is asked at `base_url`.",
    )
    model: str | None = Field(
        None,
        min_length=1,
        description="For `cross-encoder` a folder with a model, or the name of one that is in this machine's Hugging "
        "Face cache; nothing is downloaded. For `endpoint` the name it knows the model by; unset where it has one.",
    )
    base_url: EndpointAddress = Field(
        None,
        description="For `endpoint`: where it is, up to what comes before `/rerank`, such as "
        "`http://localhost:8000/v1`. Questions and the texts of their first hits are sent there.",
    )
    api_key: EndpointKey = Field(
        None, description="For `endpoint`: sent as the bearer token. Leave it out where the endpoint wants none."
    )
    form: Literal["documents", "texts"] = Field(
        "documents",
        description="For `endpoint`: how it takes texts. `documents` as Jina, Cohere, vLLM, Infinity and LiteLLM do; "
        "`texts` as text-embeddings-inference does.",
    )
    depth: int = Field(
        30,
        ge=2,
        le=200,
        description="How many of the first hits the model reads: more can bring up what stands further down, and take "
        "as much more time.",
    )
    budget_seconds: float = Field(
        5.0,
        gt=0,
        le=600,
        description="How long a search waits for the model; then its order stays as it was, and the answer says so.",
    )

    @property
    def configured(self) -> bool:
        return self.provider != "none"

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.provider == "cross-encoder" and self.model is None:
            raise ValueError("the provider cross-encoder needs to know which: set THALWEG_RERANKER__MODEL")
        if self.provider == "endpoint" and self.base_url is None:
            raise ValueError("the provider endpoint needs to know where: set THALWEG_RERANKER__BASE_URL")
        return self


class ServiceSettings(ProcessSettings):
    """Everything the query service reads once, at its start, and hands down."""

    kafka: KafkaSettings = KafkaSettings()
    storage: StorageSettings = StorageSettings()
    limits: LimitSettings = LimitSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    reranker: RerankerSettings = RerankerSettings()
    service: ServiceBlock = ServiceBlock()
