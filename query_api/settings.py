"""The query service's settings; `schemas/settings.py` explains where they come from."""

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
    LanguageModelSettings,
    LimitSettings,
    ProcessSettings,
    StorageSettings,
)


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
        description="A second key, for who only reads: GET, HEAD, `POST /v1/search` and `/v1/answers`, "
        "/mcp's reading tools. Else 403: "
        "writes, edits, feedback, rebuilds, evaluations, clearing the cache. Beside `api_key`, and another one.",
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
    search_processes: int = Field(
        0,
        ge=0,
        le=64,
        description="Processes that search while several searches come at once: the service, and copies of it that "
        "share its memory, of which each needs some 100 MB. 0 for one for each core that the "
        "service may use (a container's quota counts), four at most; 1 for the service alone. Linux only.",
    )
    resident_text_bytes: int = Field(
        512 * MIB,
        ge=0,
        le=2_000 * MIB,
        description="Memory for the passages' texts; with more of them, searches read them from the tables, which "
        "takes about 15 ms longer.",
    )
    max_lag_seconds: float | None = Field(
        None,
        gt=0,
        description="/readyz says 503 while a document has waited longer than this to become searchable, so that a "
        "balancer asks another service; choose it above what your largest load takes. Unset: never. While Kafka is "
        "away the lag is unknown, and does not count.",
    )

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
                    f"{origin!r} is not an origin: write scheme, host and port as a browser does, such as "
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
        None, description="For `endpoint`: sent as the bearer token. Leave it out where the endpoint requires none."
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
        description="How many of the first hits the model reads: more can bring up what is further down, and take "
        "as much more time.",
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
    language_model: LanguageModelSettings = LanguageModelSettings()
    service: ServiceBlock = ServiceBlock()
