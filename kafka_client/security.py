"""TLS and SASL for both client libraries: the certificates, the tokens, and why a cluster lets a client not in."""

import asyncio
import logging
import ssl
import threading
import time
from typing import Any

from aiokafka.abc import AbstractTokenProvider as AsyncTokenProvider
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from kafka_client.client_internals import was_connected
from schemas.errors import NoAccess, Unreachable, WrongSetting
from schemas.settings import KafkaConnection

PROBE_SECONDS = 10.0
CLOSE_SECONDS = 1.0
TOKEN_SECONDS = 10.0
_TOKEN_REUSE = 0.8  # of its lifetime
_DEFAULT_LIFETIME_SECONDS = 300.0
_AUTHENTICATION_ERRORS = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    IllegalSaslStateError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)


class AccessDenied(NoAccess, KafkaError):  # type: ignore[misc]  # aiokafka is not typed
    """The cluster answers and does not let this client in, or the client does not trust it: waiting helps nothing."""

    def __str__(self) -> str:
        return str(self.args[0])


class WrongCertificate(WrongSetting, KafkaError):  # type: ignore[misc]  # aiokafka is not typed
    """A file of certificates or keys holds something else."""

    def __str__(self) -> str:
        return str(self.args[0])


def tls_context(connection: KafkaConnection) -> ssl.SSLContext | None:
    """What TLS connections are made with; None without TLS. Raises WrongCertificate."""
    if not connection.uses_tls:
        return None
    try:
        context = ssl.create_default_context(cafile=connection.ssl_cafile)
    except (OSError, ssl.SSLError) as error:
        raise WrongCertificate(
            f"THALWEG_KAFKA__SSL_CAFILE: {connection.ssl_cafile} holds no certificates in PEM: {_reason(error)}."
        ) from error
    context.check_hostname = connection.ssl_check_hostname
    if connection.ssl_certfile is not None:
        password = "" if connection.ssl_password is None else connection.ssl_password.get_secret_value()
        try:
            # a password that is a function keeps OpenSSL from asking for one at the terminal
            context.load_cert_chain(connection.ssl_certfile, connection.ssl_keyfile, lambda: password)
        except (OSError, ssl.SSLError) as error:
            raise WrongCertificate(
                f"THALWEG_KAFKA__SSL_CERTFILE: {connection.ssl_certfile} cannot be used with its key "
                f"({_reason(error)}). Both are PEM files that belong together; THALWEG_KAFKA__SSL_PASSWORD opens "
                "an encrypted key."
            ) from error
    return context


class TokenEndpointAway(OSError):
    """The token endpoint gives no token just now. Kafka's clients try again after an OSError."""


class TokenSource:
    """OAuth 2.0 access tokens by client credentials, each used for most of its lifetime. May be called by threads.

    `token` blocks while it asks. Raises AuthenticationFailedError where the endpoint refuses the client, else
    TokenEndpointAway.
    """

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._token = ""
        self._reusable_until = 0.0

    def token(self) -> str:
        with self._lock:
            if time.monotonic() >= self._reusable_until:
                self._token, lifetime_seconds = self._ask()
                self._reusable_until = time.monotonic() + _TOKEN_REUSE * lifetime_seconds
            return self._token

    def _ask(self) -> tuple[str, float]:
        import httpx  # only those who use tokens pay for it

        connection = self._connection
        url, secret = connection.sasl_oauthbearer_token_endpoint_url, connection.sasl_oauthbearer_client_secret
        form = {"grant_type": "client_credentials"}
        if connection.sasl_oauthbearer_scope is not None:
            form["scope"] = connection.sasl_oauthbearer_scope
        login = (connection.sasl_oauthbearer_client_id or "", secret.get_secret_value() if secret else "")
        try:
            answer = httpx.post(url or "", data=form, auth=login, timeout=TOKEN_SECONDS)
        except httpx.HTTPError as error:
            raise TokenEndpointAway(f"The token endpoint {url} does not answer: {error}") from error
        if answer.is_client_error:
            raise AuthenticationFailedError(f"the token endpoint {url} answers with {answer.status_code}")
        try:
            found = answer.raise_for_status().json()
            return str(found["access_token"]), float(found.get("expires_in", _DEFAULT_LIFETIME_SECONDS))
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise TokenEndpointAway(f"The token endpoint {url} gives no token: status {answer.status_code}") from error


class _AsyncTokens(AsyncTokenProvider):  # type: ignore[misc]  # aiokafka is not typed
    def __init__(self, source: TokenSource) -> None:
        self._source = source

    async def token(self) -> str:
        return await asyncio.to_thread(self._source.token)


def aiokafka_options(connection: KafkaConnection) -> dict[str, Any]:
    """What each of aiokafka's clients is made with. Raises WrongCertificate."""
    options = {"bootstrap_servers": connection.servers, **_common_options(connection)}
    if connection.sasl_mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = _AsyncTokens(TokenSource(connection))
    return options


def kafka_python_options(connection: KafkaConnection) -> dict[str, Any]:
    """What each of kafka-python's clients is made with. Raises WrongCertificate."""
    options = {"bootstrap_servers": connection.servers, **_common_options(connection)}
    if connection.sasl_mechanism == "OAUTHBEARER":
        from kafka.net.sasl.oauth import AbstractTokenProvider

        class SyncTokens(TokenSource, AbstractTokenProvider):  # type: ignore[misc]  # kafka-python is not typed
            pass

        options["sasl_oauth_token_provider"] = SyncTokens(connection)
    return options


def _common_options(connection: KafkaConnection) -> dict[str, Any]:
    if connection.security_protocol != "PLAINTEXT":
        _keep_secrets_out_of_the_log()
    options: dict[str, Any] = {
        "security_protocol": connection.security_protocol,
        "ssl_context": tls_context(connection),
    }
    if connection.sasl_mechanism is not None:
        options["sasl_mechanism"] = connection.sasl_mechanism
    if connection.sasl_username is not None and connection.sasl_password is not None:
        options["sasl_plain_username"] = connection.sasl_username
        options["sasl_plain_password"] = connection.sasl_password.get_secret_value()
    return options


def _keep_secrets_out_of_the_log() -> None:
    """At DEBUG both libraries write their settings, and each request with the password or token in it."""
    for library in ("aiokafka", "kafka"):
        logger = logging.getLogger(library)
        if logger.getEffectiveLevel() < logging.INFO:
            logger.setLevel(logging.INFO)


async def require_access(connection: KafkaConnection) -> None:
    """Return where a broker lets this client in, and where none answers.

    Both libraries retry a refused login or an untrusted certificate as if the broker were away, and give no reason:
    this says which it is. Raises AccessDenied or WrongCertificate.
    """
    if connection.security_protocol != "PLAINTEXT":
        await _probe(connection)


def require_access_blocking(connection: KafkaConnection) -> None:
    """The same, blocking; over TLS or SASL only in a thread without an event loop."""
    if connection.security_protocol != "PLAINTEXT":
        asyncio.run(_probe(connection))


def require_answer(connection: KafkaConnection, advice: str, *, seconds: float = PROBE_SECONDS) -> None:
    """Try each server once. Blocks; raises AccessDenied, WrongCertificate or Unreachable, with a reason to act on."""
    answered, reason = asyncio.run(_probe(connection, seconds))
    if not answered:
        raise Unreachable(" ".join(filter(None, (f"No Kafka broker answers at {connection}.", reason, advice))))


async def _probe(connection: KafkaConnection, seconds: float = PROBE_SECONDS) -> tuple[bool, str]:
    """Whether a broker answers, and where none does why, in a sentence; empty where there is nothing to say.

    Raises AccessDenied or WrongCertificate.
    """
    options = aiokafka_options(connection)
    reason = ""
    for server in options.pop("bootstrap_servers"):
        host, _, port = server.rpartition(":")
        try:
            async with asyncio.timeout(seconds):
                client = AIOKafkaConnection(host.strip("[]"), int(port), **options)
                try:
                    await client.connect()
                    await client.send(MetadataRequest([]))
                finally:
                    if was_connected(client):
                        await asyncio.wait([client.close()], timeout=CLOSE_SECONDS)  # or its loop ends before it
        except TokenEndpointAway as error:
            reason = f"{error}."
        except _AUTHENTICATION_ERRORS as error:
            raise AccessDenied(
                f"Kafka at {server} does not let {connection.identity} in: {_reason(error)}. Check the "
                "THALWEG_KAFKA__SASL_… settings."
            ) from error
        except (OSError, KafkaError, TimeoutError, ValueError) as error:
            tls = next((each for each in (error, error.__cause__) if isinstance(each, ssl.SSLError)), None)
            if tls is not None:
                raise AccessDenied(_tls_problem(connection, server, tls)) from error
            if isinstance(error, (KafkaConnectionError, ConnectionResetError)):
                reason = (
                    f"What listens at {server} ends the connection: THALWEG_KAFKA__SECURITY_PROTOCOL is "
                    f"{connection.security_protocol}, which may not be what it speaks."
                )
        else:
            return True, ""
    return False, reason


def _tls_problem(connection: KafkaConnection, server: str, error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"The certificate of Kafka at {server} is not trusted: {error.verify_message.rstrip('.')}. Name "
            "the authority that signed it in THALWEG_KAFKA__SSL_CAFILE, or the host that it names in "
            "THALWEG_KAFKA__BOOTSTRAP_SERVERS."
        )
    return (
        f"Kafka at {server} does not agree on TLS with {connection.identity}: {_reason(error)}. Check "
        "THALWEG_KAFKA__SECURITY_PROTOCOL, __SSL_CERTFILE and __SSL_KEYFILE."
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, UnsupportedSaslMechanismError):
        return "it does not offer this mechanism"
    if isinstance(error, ssl.SSLError):
        return error.reason.lower().replace("_", " ") if error.reason else "OpenSSL cannot read it"
    if isinstance(error, KafkaError) and error.args:
        return str(error.args[0]).rstrip(".")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
