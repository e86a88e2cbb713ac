"""How to reach a Kafka cluster: addresses, TLS and SASL. Every client of both processes is made from one of these."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

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
        None, min_length=1, description="For `OAUTHBEARER`: the scope to ask for, where the endpoint wants one."
    )
    ssl_cafile: ExistingFile = Field(
        None,
        description="With TLS: PEM file of the authorities that sign the brokers' certificates. Unset: the system's.",
    )
    ssl_certfile: ExistingFile = Field(
        None, description="With TLS: PEM file of the client's own certificate, where the brokers ask for one."
    )
    ssl_keyfile: ExistingFile = Field(
        None, description="PEM file of that certificate's private key. Unset: it stands in `ssl_certfile`."
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
        """Who the client says it is, for messages."""
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
