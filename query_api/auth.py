"""Who calls: the API key, which may do all; the one that only reads; session tokens, which read for a while.

A session token is a JSON Web Token (RFC 7519), signed with a secret made from the key that asked for it: it survives
restarts, is good for every process with that key, and ends when that key is changed. It is for pages in a browser,
which need not hold a key.

Keys and tokens are sent as headers. The address of a request, which ends up in logs and histories, takes nothing but a
ticket (`query_api/stream_tickets.py`).
"""

import hmac
import time
from collections.abc import Callable, Mapping
from typing import Literal, Self
from urllib.parse import unquote_plus

import jwt
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from query_api.admission import SEARCHING_PATHS
from query_api.errors import ApiProblem
from query_api.settings import ServiceBlock
from query_api.stream_tickets import STREAM_TICKETS_PATH, TICKET, StreamTickets, TicketRefused
from schemas.choices import STUDY_PATHS
from schemas.conversations import CONVERSATIONS_PATH
from schemas.frames import EVENT_STREAM
from schemas.ground_truth import GROUND_TRUTH_PATH

KeyAccess = Literal["full", "read"]
Access = KeyAccess | Literal["session"]

MCP_PATH = "/mcp"  # whose tools that write check the access themselves
SESSION_TOKENS_PATH = "/v1/session-tokens"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
ACCESS_TOKEN = "access_token"  # noqa: S105 - RFC 6750's name of the parameter, which is refused
OWN_PATHS = (CONVERSATIONS_PATH, GROUND_TRUTH_PATH, *STUDY_PATHS.values())
"""Under these is what a caller saves for itself, also with a key that only reads."""
READS = f"GET, HEAD, POST {', '.join(sorted(SEARCHING_PATHS))}, and the tools of {MCP_PATH} that read"

SESSION_SECONDS = 600  # longer than the streams of a page are resumed
_ALGORITHM = "HS256"
_AUDIENCE = "thalweg"
_PURPOSE = b"thalweg session tokens\0"
_MAKE_TICKET = f"make a one-use ticket with the key or a session token: POST {STREAM_TICKETS_PATH}."
_RENEW = f"Ask for a new one with the key: POST {SESSION_TOKENS_PATH}."


class ApiKeys:
    """The keys of a service, and the session tokens it gives out. Compared in constant time."""

    def __init__(self, full: str, read: str | None, session_seconds: int) -> None:
        self._keys: dict[KeyAccess, bytes] = {"full": full.encode()}
        if read is not None:
            self._keys["read"] = read.encode()
        self._secrets = {access: hmac.digest(key, _PURPOSE, "sha256") for access, key in self._keys.items()}
        self.session_seconds = session_seconds

    @classmethod
    def from_settings(cls, settings: ServiceBlock) -> Self | None:
        """None where every caller may do all, as on loopback."""
        if settings.api_key is None:
            return None
        read = None if settings.read_api_key is None else settings.read_api_key.get_secret_value()
        return cls(settings.api_key.get_secret_value(), read, SESSION_SECONDS)

    def access_of(
        self, scope: Scope, headers: Headers, in_address: Mapping[str, str], tickets: StreamTickets
    ) -> Access:
        """What a caller may do. `in_address` is from `take_secrets`. Raises ApiProblem 401 for one without a key or a
        valid token or ticket."""
        if ACCESS_TOKEN in in_address:
            raise unauthorized(
                f"An address is not a place for a key or a token, so `{ACCESS_TOKEN}` is not taken: send it as "
                f"`Authorization: Bearer <token>`. For an EventSource, which sends no headers, {_MAKE_TICKET}"
            )
        if "authorization" in headers or TICKET not in in_address:
            return self._by_header(headers.get("authorization", ""))
        if scope["method"] != "GET" or EVENT_STREAM not in headers.get("accept", "").lower():
            raise unauthorized(
                f"A `{TICKET}` is for streams alone, GET with `Accept: {EVENT_STREAM}`, as an EventSource sends it. "
                "Elsewhere send the key or a session token as `Authorization: Bearer <key>`."
            )
        try:
            tickets.redeem(in_address[TICKET], scope["path"])
        except TicketRefused as error:
            raise unauthorized(f"{error} To get one, {_MAKE_TICKET}", invalid=True) from error
        return "session"

    def issue_token(self, access: KeyAccess) -> str:
        """A token good for `session_seconds`, which ends when the key with this access is changed."""
        claims = {"aud": _AUDIENCE, "scope": "read", "exp": int(time.time()) + self.session_seconds}
        return jwt.encode(claims, self._secrets[access], _ALGORITHM, headers={"kid": access})

    def _by_header(self, authorization: str) -> Access:
        scheme, _, given = authorization.partition(" ")
        sent = given.strip() if scheme.lower() == "bearer" else ""
        matching = [access for access, key in self._keys.items() if hmac.compare_digest(sent.encode(), key)]
        if matching:
            return matching[0]
        if sent.count(".") != 2:
            raise unauthorized("Send the service's API key: `Authorization: Bearer <key>`.")
        self._check_token(sent)
        return "session"

    def _check_token(self, token: str) -> None:
        """Raises ApiProblem 401."""
        try:
            claims = jwt.decode(
                token, self._secret_of(token), [_ALGORITHM], audience=_AUDIENCE, options={"require": ["exp", "aud"]}
            )
        except jwt.ExpiredSignatureError as error:
            raise unauthorized(f"The session token has expired. {_RENEW}", invalid=True) from error
        except jwt.InvalidTokenError as error:
            raise unauthorized(
                f"That is not a session token of this service, or its key has changed since. {_RENEW}", invalid=True
            ) from error
        if claims.get("scope") != "read":
            raise unauthorized(f"The session token is for something else. {_RENEW}", invalid=True)

    def _secret_of(self, token: str) -> bytes:
        """That of the key which the token says asked for it. Raises jwt.InvalidTokenError."""
        kid = jwt.get_unverified_header(token).get("kid")
        for access, secret in self._secrets.items():
            if access == kid:
                return secret
        raise jwt.InvalidTokenError("no such key")


def unauthorized(detail: str, *, invalid: bool = False) -> ApiProblem:
    challenge = 'Bearer error="invalid_token"' if invalid else "Bearer"
    return ApiProblem(401, "Unauthorized", detail, headers={"WWW-Authenticate": challenge})


def take_secrets(scope: Scope) -> dict[str, str]:
    """The parameters `access_token` and `ticket` of a request; removed from it, so that nothing that logs, keeps or
    checks parameters meets them."""
    return take_parameters(scope, (ACCESS_TOKEN, TICKET).__contains__)


def take_parameters(scope: Scope, is_wanted: Callable[[str], bool]) -> dict[str, str]:
    """The wanted parameters of a request's address, removed from it. The first of several counts."""
    query = scope.get("query_string") or b""
    if not query:
        return {}
    named = [(unquote_plus(part.partition(b"=")[0].decode("latin-1")), part) for part in query.split(b"&")]
    scope["query_string"] = b"&".join(part for name, part in named if not is_wanted(name))
    return {
        name: unquote_plus(part.partition(b"=")[2].decode("latin-1"))
        for name, part in reversed(named)
        if is_wanted(name)
    }


def check_access(access: Access, method: str, path: str) -> None:
    """Raises ApiProblem 403 for a request that does more than read, where that is all that is allowed. Searching is
    reading, though it leaves a retrieval; feedback on one is not. No token renews itself, or saves anything."""
    own = access == "read" and (path == SESSION_TOKENS_PATH or path.startswith(OWN_PATHS))
    if access == "full" or own or only_reads(method, path):
        return
    caller = "This key only reads: it" if access == "read" else "A session token only reads: it"
    raise ApiProblem(
        403,
        "Read only",
        f"{caller} allows {READS}. Send the service's own key, THALWEG_SERVICE__API_KEY, for {method} {path[:80]}.",
        members={"reason": "read_only"},
    )


async def owner_of(request: Request) -> str:
    """Whose what is saved is: a name of the key, or of all callers without keys. A FastAPI dependency, async, so it
    needs no thread. Raises ApiProblem 403 for a session token: many visitors of a page may have tokens of one key."""
    access: Access = getattr(request.state, "access", "full")
    if access == "session":
        raise ApiProblem(
            403,
            "No place of its own",
            "Nothing is saved for a session token, which has no caller of its own: send a key, or ask outside a "
            "conversation.",
            members={"reason": "session_token"},
        )
    return access


def only_reads(method: str, path: str) -> bool:
    return method in SAFE_METHODS or (method == "POST" and path in (*SEARCHING_PATHS, STREAM_TICKETS_PATH, MCP_PATH))
