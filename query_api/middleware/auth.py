"""API key, host and origin checks before every route, and the form of its address."""

import hmac
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from query_api.errors import ApiProblem
from query_api.settings import ServiceBlock

OPEN_PATHS = frozenset({"/livez", "/readyz"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_PARAMETERS = 256
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class AuthMiddleware:
    """ASGI middleware. With an API key, every request but /livez and /readyz must carry it as a bearer token.

    Without one the service listens on loopback only, and must be kept from web pages in a browser on this machine:
    requests must be addressed to a known host name (against DNS rebinding), and a page may write if it came from this
    service itself or from one of THALWEG_SERVICE__CORS_ORIGINS (against request forgery). Only browsers send `Origin`.
    """

    def __init__(self, app: ASGIApp, settings: ServiceBlock) -> None:
        self._app = app
        self._key = None if settings.api_key is None else settings.api_key.get_secret_value().encode()
        self._hosts = frozenset(host.lower() for host in settings.allowed_hosts)
        self._origins = frozenset(origin.lower() for origin in settings.cors_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check_caller(scope, Headers(scope=scope))
            check_parameters(scope)
            check_characters(scope)
        except ApiProblem as problem:
            await problem.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_caller(self, scope: Scope, headers: Headers) -> None:
        if scope["path"] in OPEN_PATHS:
            return
        if self._key is not None:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._key):
                raise ApiProblem(
                    401,
                    "Unauthorized",
                    "Send the service's API key: `Authorization: Bearer <key>`.",
                    headers={"WWW-Authenticate": "Bearer"},
                )
            return
        host = host_name(headers.get("host", ""))
        if host not in self._hosts:
            raise ApiProblem(
                421,
                "Unknown host name",
                f"This service does not answer to the name {host[:80]!r}. Use one of {', '.join(sorted(self._hosts))}, "
                "or add the name to THALWEG_SERVICE__ALLOWED_HOSTS.",
            )
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in SAFE_METHODS and not self._may_write(origin, headers["host"]):
            raise ApiProblem(
                403,
                "Foreign origin",
                f"A page of {origin[:80]!r} may not write here, only one of this service itself. Add the origin to "
                "THALWEG_SERVICE__CORS_ORIGINS if it is to.",
            )

    def _may_write(self, origin: str, host: str) -> bool:
        """Whether the origin is the address that the request went to, with or without TLS ended before this service."""
        scheme, _, address = origin.lower().partition("://")
        port = DEFAULT_PORTS.get(scheme)
        if port is not None and address.removesuffix(port) == host.lower().removesuffix(port):
            return True
        return origin.lower() in self._origins


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets, in lower case. Raises ApiProblem 400 for what is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError as error:
        raise ApiProblem(
            400, "Malformed host", f"The header Host is {host[:80]!r}, which is no host name with or without a port."
        ) from error


def check_parameters(scope: Scope) -> None:
    """Raises ApiProblem 400 for more query parameters than any route takes."""
    count = (scope.get("query_string") or b"").count(b"&") + 1
    if count > MAX_PARAMETERS:
        raise ApiProblem(
            400, "Too many parameters", f"The address has {count:,} parameters; {MAX_PARAMETERS} are the most."
        )


def check_characters(scope: Scope) -> None:
    """Raises ApiProblem 400 for an address whose escapes are not UTF-8: decoded, different names would become one."""
    for part, escaped in (("path", scope.get("raw_path")), ("query", scope.get("query_string"))):
        try:
            unquote_to_bytes(escaped or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            found = error.object[error.start : error.end]
            raise ApiProblem(
                400,
                "Not UTF-8",
                f"The {part} of the address holds {quote_from_bytes(found)}, which is no UTF-8. "
                "Names are sent as UTF-8, percent-encoded: ü is %C3%BC.",
                members={"reason": "not_utf8"},
            ) from error
