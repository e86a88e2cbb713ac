"""ASGI middleware: API key, hosts and origins; limits of request bodies.

Bytes count as they arrive, not as a request announces them. Members are counted before decoding: a megabyte of `{}` is
350,000 objects, and 60 times its size once they are made.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexer.runtime.resources import trim_memory
from query_api.auth import SAFE_METHODS, ApiKeys, check_access, take_parameters, take_secrets
from query_api.errors import ApiProblem, invalid_request
from query_api.settings import ServiceBlock
from query_api.stream_tickets import StreamTickets
from schemas.frames import EVENT_STREAM
from schemas.hosts import host_name
from schemas.settings import MIB

OPEN_PATHS = frozenset({"/livez", "/readyz"})
PAGE_PATH, PAGE_FILES = "/", "/console/"  # the web console's own files, which hold no data
MAX_PARAMETERS = 256
MAX_REQUEST_BYTES = 64 * MIB  # of one body: a batch of documents, or uploaded files
REQUEST_BYTES_AT_ONCE = 128 * MIB  # of documents' bodies; each byte costs about four while it is read and published
ENVELOPE_FACTOR = 1.6  # what a document may have as an envelope: a third more for base64, and its metadata
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class AuthMiddleware:
    """ASGI middleware. With an API key, every request but those for /livez, /readyz and the files of the web console
    must carry it as a bearer token, or, to read, the key that only reads or a session token; or a ticket for a stream.
    Routes find in `request.state.access` what the caller may do.

    Without one the service listens on loopback only, and must be kept from web pages in a browser on this machine:
    requests must be addressed to a known host name (against DNS rebinding), and a page may write if it came from this
    service itself or from one of THALWEG_SERVICE__CORS_ORIGINS (against request forgery). Only browsers send `Origin`.
    """

    def __init__(self, app: ASGIApp, settings: ServiceBlock, tickets: StreamTickets) -> None:
        self._app = app
        self._keys = ApiKeys.from_settings(settings)
        self._tickets = tickets
        self._hosts = frozenset(host.lower() for host in settings.allowed_hosts)
        self._origins = frozenset(origin.lower() for origin in settings.cors_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check_caller(scope, Headers(scope=scope), take_secrets(scope))
            resume_by_header(scope)
            check_parameters(scope)
            check_characters(scope)
        except ApiProblem as problem:
            await problem.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_caller(self, scope: Scope, headers: Headers, in_address: Mapping[str, str]) -> None:
        if scope["path"] in OPEN_PATHS:
            return
        if self._keys is not None:
            if scope["path"] == PAGE_PATH or scope["path"].startswith(PAGE_FILES):
                return
            access = self._keys.access_of(scope, headers, in_address, self._tickets)
            check_access(access, scope["method"], scope["path"])
            scope.setdefault("state", {})["access"] = access
            return
        host = addressed_host(headers.get("host", ""))
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


def resume_by_header(scope: Scope) -> None:
    """The `lastEventId` with which polyfills of EventSource resume a stream, by any usual spelling, becomes the header
    that it stands for."""
    headers = Headers(scope=scope)
    if EVENT_STREAM in headers.get("accept", ""):
        named = take_parameters(scope, lambda name: re.sub(r"[-_]", "", name).lower() == "lasteventid")
        last = next(filter(None, named.values()), None)
        if last is not None and "last-event-id" not in headers:
            scope["headers"] = [*scope["headers"], (b"last-event-id", last.encode("latin-1", "replace"))]


def addressed_host(header: str) -> str:
    """The name in a Host header. Raises ApiProblem 400 for what is none."""
    try:
        return host_name(header)
    except ValueError as error:
        raise ApiProblem(
            400, "Malformed host", f"The header Host is {header[:80]!r}, not a host name with or without a port."
        ) from error


def check_parameters(scope: Scope) -> None:
    """Raises ApiProblem 400 for more query parameters than any route takes."""
    count = (scope.get("query_string") or b"").count(b"&") + 1
    if count > MAX_PARAMETERS:
        raise ApiProblem(
            400, "Too many parameters", f"The address has {count:,} parameters; the limit is {MAX_PARAMETERS}."
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
                f"The {part} of the address holds {quote_from_bytes(found)}, which is not UTF-8. "
                "Names are sent as UTF-8, percent-encoded: ü is %C3%BC.",
                members={"reason": "not_utf8"},
            ) from error


DOCUMENTS_PATH = "/v1/documents"
EVALUATIONS_PATH = "/v1/evaluations"
LARGER_PATHS = (EVALUATIONS_PATH, "/v1/nodes", "/v1/edges")
LARGER_BODY_BYTES = 8 * MIB  # a node's text and properties may be of 700,000 characters, each escaped
SMALL_BODY_BYTES = 256 * 1024
SMALL_BODIES_BYTES = 32 * MIB  # together; a budget of their own, so that large writes keep no search out
RETRY_SECONDS = 2
LARGE_BYTES = 4 * MIB  # from here on memory is returned to the system after the answer
MAX_FIELDS = 100  # of a model
BLOCK_BYTES = 256 * 1024
_QUOTE, _COMMA, _BACKSLASH = b'",\\'
_OPENING = b"[{"
_CLOSING = b"]}"


class BodySizeMiddleware:
    """ASGI middleware. A body over its route's limit gets 413; one that all bodies together leave no room for gets 503
    with `Retry-After`. Bytes are counted until the answer begins. For one event loop."""

    def __init__(self, app: ASGIApp, max_request_bytes: int, bytes_at_once: int) -> None:
        self._app = app
        self._max_request_bytes = max_request_bytes
        self._at_once = {"documents": max(bytes_at_once, max_request_bytes), "others": SMALL_BODIES_BYTES}
        self._held = dict.fromkeys(self._at_once, 0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kind, limit = self._limit(scope["path"])
        declared = Headers(scope=scope).get("content-length", "0")[:19]  # digits that no limit has
        announced = int(declared) if declared.isascii() and declared.isdigit() else 0
        if problem := self._refusal(announced, limit, announced, kind):
            await problem.response()(scope, receive, send)
            return
        size = held = 0

        async def counted() -> Message:
            nonlocal size, held
            message = await receive()
            more = len(message.get("body", b""))
            size += more
            if problem := self._refusal(size, limit, more, kind):
                raise HTTPException(problem.status, problem.detail, problem.headers)
            held += more
            self._held[kind] += more
            return message

        def release() -> None:
            nonlocal held
            self._held[kind] -= held
            held = 0

        async def send_and_release(message: Message) -> None:
            if message["type"] == "http.response.start":
                release()
            await send(message)

        try:
            await self._app(scope, counted, send_and_release)
        finally:
            release()
            if size >= LARGE_BYTES:
                await asyncio.to_thread(trim_memory)

    def _limit(self, path: str) -> tuple[str, int]:
        if path.startswith(DOCUMENTS_PATH):
            return "documents", self._max_request_bytes
        return "others", LARGER_BODY_BYTES if path.startswith(LARGER_PATHS) else SMALL_BODY_BYTES

    def _refusal(self, size: int, limit: int, more: int, kind: str) -> ApiProblem | None:
        """Of a body of so many bytes with so many `more` than are held."""
        if size > limit:
            return ApiProblem(
                413,
                "Request too large",
                f"The body is over {limit:,} bytes. Send less at once"
                + ("; for a larger document raise THALWEG_LIMITS__MAX_DOCUMENT_BYTES." if kind == "documents" else "."),
            )
        if self._held[kind] + more > self._at_once[kind]:
            return ApiProblem(
                503,
                "Too many large requests",
                f"The service holds other requests' bodies, and at most {self._at_once[kind]:,} bytes of them at once. "
                "Send it again in a while.",
                retry_after_seconds=RETRY_SECONDS,
            )
        return None


class JsonSize(NamedTuple):
    """`members`: elements of lists and fields of objects, of the whole text, at most a few too many (empty lists and
    objects count as one). `top`: those of the outermost list or object alone."""

    members: int
    top: int


def json_size(text: bytes | bytearray, most: int) -> JsonSize:
    """The size of a JSON text; counting stops once there are more than `most` members. Text that is not JSON gives any
    number. numpy works on blocks, which costs the same whatever the bytes are (about 5 ms a MiB)."""
    import numpy as np  # not at the start of the service: the port is to be open before

    members = top = depth = backslashes = 0
    inside = False  # a string
    for start in range(0, len(text), BLOCK_BYTES):
        block = np.frombuffer(text, np.uint8, min(BLOCK_BYTES, len(text) - start), start)
        quotes = block == _QUOTE
        escapes = block == _BACKSLASH
        if backslashes or escapes.any():
            at = np.arange(len(block), dtype=np.int32)
            others = np.where(escapes, np.int32(-1 - backslashes), at)
            before = np.empty_like(at)  # where the last byte that is not a backslash is, before each
            before[0] = -1 - backslashes
            np.maximum.accumulate(others[:-1], out=before[1:])
            np.maximum(before, before[0], out=before)
            quotes &= (at - before) % 2 == 1
            backslashes = int(len(block) - 1 - max(before[-1], others[-1])) % 2
        strings = np.logical_xor.accumulate(quotes) ^ inside
        inside = bool(strings[-1])
        outside = ~strings
        commas = (block == _COMMA) & outside
        opening = ((block == _OPENING[0]) | (block == _OPENING[1])) & outside
        closing = ((block == _CLOSING[0]) | (block == _CLOSING[1])) & outside
        depths = np.cumsum(opening.astype(np.int8) - closing.astype(np.int8), dtype=np.int32) + depth
        depth = int(depths[-1])
        members += int(np.count_nonzero(commas)) + int(np.count_nonzero(opening))
        top += int(np.count_nonzero(commas & (depths == 1)))
        if members > most:
            break
    return JsonSize(members, top + 1 if members else 0)


def check_members(size: JsonSize, most: int) -> None:
    """Raises ApiProblem 413 for a JSON text with more than `most` members."""
    if size.members > most:
        raise ApiProblem(
            413,
            "Request too large",
            f"The lists and objects of the body have more than {most:,} members, all counted. Send less at once.",
            members={"reason": "too_many_members"},
        )


class ModelRoute(APIRoute):
    """`APIRouter(route_class=ModelRoute)`: limits the members of bodies that FastAPI makes a model of. A model that is
    wrong costs a sentence for each wrong member."""

    max_members = 2_000

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def counted(request: Request) -> Response:
            body = await request.body()  # which keeps it for the handler
            if len(body) <= BLOCK_BYTES:  # a thousand small ones would wait for a thread longer than they take
                size = json_size(body, self.max_members)
            else:
                size = await asyncio.to_thread(json_size, body, self.max_members)
            check_members(size, self.max_members)
            if size.top > MAX_FIELDS:
                raise invalid_request(f"The body has {size.top:,} fields; no route takes over {MAX_FIELDS}.")
            return await handle(request)

        return counted


class LargeModelRoute(ModelRoute):
    """For lists of questions and judgements."""

    max_members = 100_000
