"""Settings: how a process reads them, the connection to Kafka, and the blocks that both processes share.

The command line wins over the environment (`THALWEG_…`), the environment over the TOML file, the file over the
defaults. The file is `thalweg.toml`, see `schemas/settings_file.py`. A field's variable is `THALWEG_` and its path in
capitals with `__` between: `THALWEG_KAFKA__PARTITIONS`."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from schemas.environment import refuse_unknown_variables, variable_of
from schemas.errors import WrongSetting
from schemas.settings_file import DEFAULT_DATA_DIR, read_file, suggestion

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

_PREFIX = "THALWEG_KAFKA__"
_PASSWORD_FIELDS = ("sasl_username", "sasl_password")
_TOKEN_FIELDS = (
    "sasl_oauthbearer_token_endpoint_url",
    "sasl_oauthbearer_client_id",
    "sasl_oauthbearer_client_secret",
)
_FILE_FIELDS = ("ssl_cafile", "ssl_certfile", "ssl_keyfile")


def _is_file(path: Path | None) -> Path | None:
    if path is not None and not path.is_file():
        raise ValueError("there is no such file")
    return path


def _http_address(url: str | None) -> str | None:
    if url is not None and not url.startswith(("http://", "https://")):
        raise ValueError("an address that begins with https:// or http://")
    return url


ExistingFile = Annotated[Path | None, AfterValidator(_is_file)]
TokenEndpoint = Annotated[str | None, AfterValidator(_http_address)]


class KafkaConnection(BaseModel):
    """Where a cluster is and how to be let in. The names are Kafka's own, as its Python clients write them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bootstrap_servers: str | None = Field(
        None, description="host:port[,host:port…] of a Kafka cluster. Unset: `thalweg up` runs an embedded one."
    )
    security_protocol: SecurityProtocol = Field(
        "PLAINTEXT",
        description="What the brokers' listener speaks: `PLAINTEXT`, `SSL` (TLS), `SASL_PLAINTEXT` or `SASL_SSL` (TLS "
        "with a password or a token). Over a network use one with TLS.",
    )
    sasl_mechanism: SaslMechanism | None = Field(
        None,
        description="With `SASL_…`: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`, as the brokers ask.",
    )
    sasl_username: str | None = Field(None, min_length=1, description="For `PLAIN` and `SCRAM-…`.")
    sasl_password: SecretStr | None = Field(None, min_length=1, description="For `PLAIN` and `SCRAM-…`.")
    sasl_oauthbearer_token_endpoint_url: TokenEndpoint = Field(
        None, description="For `OAUTHBEARER`: where tokens are issued for client credentials (OAuth 2.0)."
    )
    sasl_oauthbearer_client_id: str | None = Field(None, min_length=1, description="For `OAUTHBEARER`.")
    sasl_oauthbearer_client_secret: SecretStr | None = Field(None, min_length=1, description="For `OAUTHBEARER`.")
    sasl_oauthbearer_scope: str | None = Field(
        None, min_length=1, description="For `OAUTHBEARER`: the scope to ask for, where the endpoint requires one."
    )
    ssl_cafile: ExistingFile = Field(
        None,
        description="With TLS: PEM file of the authorities that sign the brokers' certificates. Unset: the system's.",
    )
    ssl_certfile: ExistingFile = Field(
        None, description="With TLS: PEM file of the client's own certificate, where the brokers ask for one."
    )
    ssl_keyfile: ExistingFile = Field(
        None, description="PEM file of that certificate's private key. Unset: it is in `ssl_certfile`."
    )
    ssl_password: SecretStr | None = Field(None, min_length=1, description="Password of the private key.")
    ssl_check_hostname: bool = Field(
        True, description="Whether a broker's certificate must name the host that was connected to."
    )

    def __str__(self) -> str:
        return self.bootstrap_servers or "no address"

    @property
    def servers(self) -> list[str]:
        return [server.strip() for server in (self.bootstrap_servers or "").split(",") if server.strip()]

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def identity(self) -> str:
        """The client's user, for messages."""
        if not self.uses_sasl:
            return "the certificate of ssl_certfile" if self.ssl_certfile else "a client without certificate"
        name = self.sasl_username or self.sasl_oauthbearer_client_id
        return f"{name!r} ({self.sasl_mechanism})"

    def at(self, bootstrap_servers: str) -> "KafkaConnection":
        """The same way in to a cluster at another address."""
        own = {name: getattr(self, name) for name in KafkaConnection.model_fields}
        return KafkaConnection.model_construct(**{**own, "bootstrap_servers": bootstrap_servers})

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.uses_sasl and self.sasl_mechanism is None:
            raise ValueError(
                f"{self.security_protocol} needs a mechanism: set {_PREFIX}SASL_MECHANISM to PLAIN, SCRAM-SHA-256, "
                "SCRAM-SHA-512 or OAUTHBEARER"
            )
        by_token = self.sasl_mechanism == "OAUTHBEARER"
        if not self.uses_sasl:
            self._refuse(
                ("sasl_mechanism", *_PASSWORD_FIELDS, *_TOKEN_FIELDS, "sasl_oauthbearer_scope"),
                f"has no SASL: set {_PREFIX}SECURITY_PROTOCOL to SASL_SSL or SASL_PLAINTEXT",
            )
        else:
            for name in _TOKEN_FIELDS if by_token else _PASSWORD_FIELDS:
                if getattr(self, name) is None:
                    raise ValueError(f"the mechanism {self.sasl_mechanism} needs {_PREFIX}{name.upper()}")
            unused = _PASSWORD_FIELDS if by_token else (*_TOKEN_FIELDS, "sasl_oauthbearer_scope")
            self._refuse(unused, f"with {self.sasl_mechanism} has no use for it")
        if not self.uses_tls:
            self._refuse(
                (*_FILE_FIELDS, "ssl_password"),
                f"has no TLS: set {_PREFIX}SECURITY_PROTOCOL to SSL or SASL_SSL",
            )
        elif self.ssl_certfile is None:
            for name in ("ssl_keyfile", "ssl_password"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{_PREFIX}{name.upper()} needs {_PREFIX}SSL_CERTFILE")
        return self

    def _refuse(self, names: tuple[str, ...], why: str) -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise ValueError(f"{_PREFIX}{name.upper()} is set, but {self.security_protocol} {why}")


_MAY_HOLD_SECRETS = ("API_KEY", "PASSWORD", "SECRET", "_URL")


class ProcessSettings(BaseSettings):
    """What a process reads once, at its start, and hands down: one subclass a process, made of blocks.

    The values of another process's blocks are left alone; a name that no process has is refused by all.
    """

    model_config = SettingsConfigDict(
        env_prefix="THALWEG_", env_nested_delimiter="__", frozen=True, extra="ignore", env_ignore_empty=True
    )

    @classmethod
    def load(cls, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> Self:
        """The settings of this process; `overrides` (block → field → value) come from the command line; None is none.
        Raises WrongSetting with a sentence for each value that does not fit, and each name that is not a setting."""
        refuse_unknown_variables(os.environ)
        blocks = (overrides or {}).items()
        given = {name: {key: value for key, value in block.items() if value is not None} for name, block in blocks}
        try:
            return cls(**given)  # type: ignore[arg-type]  # blocks are validated from mappings
        except ValidationError as error:
            raise WrongSetting("\n".join(_sentence(problem, cls) for problem in error.errors())) from error
        except SettingsError as error:
            raise WrongSetting(f"A setting cannot be read: {error}.") from error

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del dotenv_settings, file_secret_settings
        file = read_file(_data_dir_of(init_settings()))
        return init_settings, env_settings, InitSettingsSource(settings_cls, dict(file.values))


def _data_dir_of(overrides: Mapping[str, Any]) -> Path | None:
    """The data directory of the command line."""
    storage = overrides.get("storage", {})
    directory = storage.get("data_dir") if isinstance(storage, Mapping) else storage.data_dir
    return None if directory is None else Path(directory)


def _sentence(problem: Any, settings: type[BaseSettings]) -> str:
    variable = variable_of(*map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":  # in a block that is given as JSON
        meant = suggestion(problem["loc"][-1], _names_beside(problem, settings))
        return f"{variable}: there is no such setting.{meant}"
    message = str(problem["msg"]).removeprefix("Value error, ").replace(" items after validation", " characters")
    message = message.rstrip(".")
    if isinstance(problem["input"], (str, int, float)) and not variable.endswith(_MAY_HOLD_SECRETS):
        return f"{variable}: {message} (it is {problem['input']!r})."
    return f"{variable}: {message}."


def _names_beside(problem: Any, settings: type[BaseModel]) -> list[str]:
    """The settings that there are where the unknown one is."""
    model: Any = settings
    for part in problem["loc"][:-1]:
        model = model.model_fields[part].annotation
    return list(model.model_fields)


MIB = 1024 * 1024


def _plain(url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("an address without a name, password or query in it: a key goes to `api_key`")
    return url.rstrip("/")


def _sendable(key: SecretStr | None) -> SecretStr | None:
    bare = "" if key is None else key.get_secret_value().strip()
    if not all("!" <= letter <= "~" for letter in bare):
        raise ValueError("a key of printable ASCII letters, without blanks in it")
    return SecretStr(bare) if bare else None


EndpointAddress = Annotated[str | None, AfterValidator(_plain)]
"""Where an endpoint is, without a slash at its end and without anything secret in it."""
EndpointKey = Annotated[SecretStr | None, AfterValidator(_sendable)]
"""A key as it can be sent in a header; None for one of blanks."""


class KafkaSettings(KafkaConnection):
    """Which cluster, and how its topics are named and sized."""

    topic_prefix: str = Field(
        "thalweg.",
        pattern=r"^[A-Za-z0-9._-]{0,100}$",
        description="What every topic's name begins with. Change it to keep two installations apart on one cluster.",
    )
    partitions: int = Field(
        4,
        ge=1,
        le=1024,
        description="Partitions of the documents topic: the most workers that can share it. Fixed once it is in use.",
    )
    max_record_bytes: int = Field(
        16 * MIB,
        ge=MIB,
        description="Largest record the topics take: the document limit, plus a third for base64, plus metadata.",
    )
    tombstone_days: int = Field(
        90,
        ge=1,
        le=36_500,
        description="How long the log keeps deletes. Stores that were away longer are compared with the whole log at "
        "their next start. A topic that is there keeps what it was made with.",
    )
    provenance_days: int = Field(
        90,
        ge=1,
        le=36_500,
        description="How long retrievals and feedback on them are kept, on their topic and in the tables. A topic that "
        "is there keeps what it was made with.",
    )


class LimitSettings(BaseModel):
    """What is refused before it is parsed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_document_bytes: int = Field(
        10 * MIB,
        ge=1,
        description="Largest content of one document. Raise `kafka.max_record_bytes` with it; the largest body of a "
        "request, 64 MiB, grows with it.",
    )
    max_metadata_bytes: int = Field(64 * 1024, ge=2, description="Largest metadata of one document, as JSON.")


EmbeddingProvider = Literal["onnx-int8", "onnx", "onnx-file", "sentence-transformers", "openai", "hashing"]


class EmbeddingSettings(BaseModel):
    """Which encoder turns texts into vectors; worker and query service must agree, and a generation fixes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Literal["auto", EmbeddingProvider] = Field(
        "auto",
        description=(
            "What runs the model. `auto`: what the data directory was made with, else `onnx-int8` where the processor "
            "has byte dot products and `onnx` (float32) where not. `onnx-file` runs a model of any architecture that "
            "comes as an ONNX file; `sentence-transformers` runs its weights, in torch (the extra "
            "`torch`). `openai` asks an endpoint, at `base_url`. `hashing` replaces a model where tests "
            "need none."
        ),
    )
    model: str = Field(
        "all-MiniLM-L6-v2",
        description="`all-MiniLM-L6-v2`, which is downloaded once into the user's cache; or a folder that holds "
        "another model, or an `.onnx` file in it; for `openai` the name the endpoint knows it by.",
    )
    base_url: EndpointAddress = Field(
        None,
        description="For `openai`: where the endpoint is, up to what comes before `/embeddings`, such as "
        "`http://localhost:11434/v1`. The texts of all documents and questions are sent there.",
    )
    api_key: EndpointKey = Field(
        None, description="For `openai`: sent as the bearer token. Leave it out where the endpoint requires none."
    )
    dimension: int | None = Field(
        None,
        ge=1,
        le=65_536,
        description="Length of the vectors: the first so many numbers of the model's, for models that were trained to "
        "be cut so (Matryoshka). `openai` asks the endpoint for it. Unset: the model's own.",
    )
    query_prefix: str | None = Field(
        None,
        max_length=2_000,
        description="What is put before each question, as the model expects it: `query: ` for e5, `search_query: ` for "
        "nomic-embed. Unset: what the model's `config_sentence_transformers.json` names, else nothing.",
    )
    passage_prefix: str | None = Field(
        None,
        max_length=2_000,
        description="The same before each passage, such as `passage: ` or `search_document: `. A change of either "
        "needs the stores to be rebuilt.",
    )

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.provider == "openai" and self.base_url is None:
            raise ValueError("the provider openai needs to know where: set THALWEG_EMBEDDING__BASE_URL")
        return self


class StorageSettings(BaseModel):
    """Where the stores are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_dir: Path = Field(
        DEFAULT_DATA_DIR, description="Everything Thalweg keeps on disk. Deleting it loses nothing the log has."
    )


class LanguageModelSettings(BaseModel):
    """The language model that extracts the entities of collections that choose it, and writes answers where it is
    asked to. Without an address there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: EndpointAddress = Field(
        None,
        description="Where an OpenAI-compatible endpoint is, up to what comes before `/chat/completions`, such as "
        "`http://localhost:11434/v1`. The texts of collections that choose `language_model` are sent there, and, with "
        "`answer_form=model`, `summary_form=model`, `plan_form=model` or `--judge model`, the question, the messages "
        "before it, and the passages that were found.",
    )
    model: str | None = Field(
        None,
        max_length=200,
        description="The name the endpoint knows it by. Two, with a comma between them, where a smaller one is to "
        "complete follow-ups and take questions apart, as in `qwen3:8b,qwen3:1.7b`: the first writes.",
    )
    api_key: EndpointKey = Field(
        None, description="Sent as the bearer token. Leave it out where the endpoint requires none."
    )
    timeout_seconds: float = Field(60.0, gt=0, le=600, description="How long one answer may take.")

    @field_validator("model")
    @classmethod
    def _one_or_two(cls, model: str | None) -> str | None:
        names = ["one"] if model is None else model.split(",")
        if len(names) > 2 or not all(map(str.strip, names)):
            raise ValueError("give the name of one model, or of two, as in `qwen3:8b,qwen3:1.7b`")
        return model

    @property
    def configured(self) -> bool:
        return self.base_url is not None and self.model is not None

    @property
    def writer(self) -> str:
        return (self.model or "").partition(",")[0].strip()

    @property
    def decider(self) -> str:
        return (self.model or "").rpartition(",")[2].strip()
