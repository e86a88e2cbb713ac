"""An embedded Kafka with a listener for each way to be let in: passwords over TLS, certificates, tokens."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import SecretStr

from schemas.settings import KafkaConnection
from streams.embedded_kafka.broker import EmbeddedKafka
from streams.ports import LOOPBACK, free_port
from tests.support.http_server import Request, Response, http_server

USER, PASSWORD = "alice", "alices-password-nobody-may-read"
CLIENT_ID, CLIENT_SECRET = "thalweg-client", "clients-secret-nobody-may-read"
KEY_PASSWORD = "keys-password-nobody-may-read"
LISTENERS = {"PASSWORDS": "SASL_SSL", "CERTIFICATES": "SSL", "TOKENS": "SASL_PLAINTEXT"}
_LOGIN = "org.apache.kafka.common.security"


class SecuredBroker:
    """`kafka` runs; the connections below are let in, each by its own listener."""

    def __init__(self, folder: Path, token_endpoint: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.ports = {name: free_port() for name in LISTENERS}
        self.authority = trustme.CA()
        self.ca_file = folder / "ca.pem"
        self.authority.cert_pem.write_to_path(str(self.ca_file))
        self.stranger_file = folder / "stranger.pem"
        trustme.CA().cert_pem.write_to_path(str(self.stranger_file))
        self.certificate_file, self.key_file = folder / "client.pem", folder / "client.key"
        client = self.authority.issue_cert("client@example.org")
        self.certificate_file.write_bytes(client.cert_chain_pems[0].bytes())
        key = load_pem_private_key(client.private_key_pem.bytes(), None)
        encrypted = BestAvailableEncryption(KEY_PASSWORD.encode())
        self.key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encrypted))
        self._token_endpoint = token_endpoint
        scram = [f"{mechanism}=[name={USER},password={PASSWORD}]" for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
        self.kafka = EmbeddedKafka(
            folder / "broker",
            properties=self._properties(folder),
            format_options=[word for each in scram for word in ("--add-scram", each)],
        )

    @property
    def inside(self) -> str:
        """The listener without security, for what a test asks of the broker itself."""
        return self.kafka.bootstrap_servers

    def passwords(self, mechanism: str = "SCRAM-SHA-512", **changed: Any) -> KafkaConnection:
        return self._connection(
            "PASSWORDS",
            sasl_mechanism=mechanism,
            sasl_username=USER,
            sasl_password=SecretStr(PASSWORD),
            ssl_cafile=self.ca_file,
            **changed,
        )

    def certificates(self, **changed: Any) -> KafkaConnection:
        own = {"ssl_certfile": self.certificate_file, "ssl_keyfile": self.key_file, "ssl_password": KEY_PASSWORD}
        return self._connection("CERTIFICATES", ssl_cafile=self.ca_file, **(own | changed))

    def tokens(self, **changed: Any) -> KafkaConnection:
        return self._connection(
            "TOKENS",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=self._token_endpoint,
            sasl_oauthbearer_client_id=CLIENT_ID,
            sasl_oauthbearer_client_secret=CLIENT_SECRET,
            **changed,
        )

    def _connection(self, listener: str, **settings: Any) -> KafkaConnection:
        server = {"bootstrap_servers": f"{LOOPBACK}:{self.ports[listener]}"}
        return KafkaConnection.model_validate(server | {"security_protocol": LISTENERS[listener]} | settings)

    def _properties(self, folder: Path) -> dict[str, str]:
        broker = self.authority.issue_cert(LOOPBACK)
        key = load_pem_private_key(broker.private_key_pem.bytes(), None)
        keystore = folder / "broker.pem"
        keystore.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + b"".join(each.bytes() for each in broker.cert_chain_pems)
        )
        tls = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca_file),
        }
        passwords = "listener.name.passwords"
        listeners = ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in self.ports.items())
        return {
            **tls,
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
            f"{passwords}.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
            f"{passwords}.scram-sha-256.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
            f"{passwords}.scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
            f"{passwords}.plain.sasl.jaas.config": (
                f'{_LOGIN}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
            ),
            "listener.name.certificates.ssl.client.auth": "required",
            "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.tokens.oauthbearer.sasl.jaas.config": (
                f'{_LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
            ),
        }


def _token(request: Request) -> Response:
    """An unsigned token, which Kafka's validator for tests takes, for the one client it knows."""
    form = parse_qs(request.body.decode())
    login = "Basic " + base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
    if request.headers.get("authorization") != login or form["grant_type"] != ["client_credentials"]:
        return Response(b'{"error": "who"}', 401)
    now = int(time.time())
    claims = {"sub": CLIENT_ID, "iat": now, "exp": now + 600, "scope": form.get("scope", [""])[0]}
    token = f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."
    return Response(json.dumps({"access_token": token, "token_type": "bearer", "expires_in": 600}).encode())


def _encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


@contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    with http_server(_token) as address:
        broker = SecuredBroker(folder, f"{address}/token")
        with broker.kafka:
            yield broker
