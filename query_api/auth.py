"""Who calls: the API key, which may do all; the one that only reads; session tokens, which read for a while.

A session token is a JSON Web Token (RFC 7519), signed with a secret made from the keys: it survives restarts, is good
for every process with the same keys, and a changed key revokes it. It is for pages in a browser, whose EventSource
sends no headers.
"""

import hmac
import time
from typing import Literal, Self
from urllib.parse import unquote_plus

import jwt
from starlette.datastructures import Headers
from starlette.types import Scope

from query_api.errors import ApiProblem
from query_api.settings import ServiceBlock
from schemas.frames import EVENT_STREAM

Access = Literal["full", "read", "session"]

SEARCH_PATH = "/v1/search"
SESSION_TOKENS_PATH = "/v1/session-tokens"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
ACCESS_TOKEN = "access_token"  # noqa: S105 - the name that RFC 6750 has for the parameter
READS = f"GET, HEAD and POST {SEARCH_PATH}"

_ALGORITHM = "HS256"
_AUDIENCE = "thalweg"
_PURPOSE = b"thalweg session tokens\0"
_RENEW = f"Ask for a new one with the key: POST {SESSION_TOKENS_PATH}."


class ApiKeys:
    """The keys of a service, and the session tokens it gives out. Compared in constant time."""

    def __init__(self, full: str, read: str | None, session_seconds: int) -> None:
        self._accesses: dict[bytes, Access] = {full.encode(): "full"}
        if read is not None:
            self._accesses[read.encode()] = "read"
        self._secret = hmac.digest(full.encode(), _PURPOSE + (read or "").encode(), "sha256")
        self.session_seconds = session_seconds

    @classmethod
    def from_settings(cls, settings: ServiceBlock) -> Self | None:
        """None where every caller may do all, as on loopback."""
        if settings.api_key is None:
            return None
        read = None if settings.read_api_key is None else settings.read_api_key.get_secret_value()
        return cls(settings.api_key.get_secret_value(), read, settings.session_token_seconds)

    def access_of(self, scope: Scope, headers: Headers, access_token: str | None) -> Access:
        """What a caller may do. `access_token` is the parameter of that name. Raises ApiProblem 401 for one without a
        key or a valid token."""
        if "authorization" in headers or access_token is None:
            return self._by_header(headers.get("authorization", ""))
        if scope["method"] != "GET" or EVENT_STREAM not in headers.get("accept", "").lower():
            raise unauthorized(
                f"`{ACCESS_TOKEN}` is for streams alone, GET with `Accept: {EVENT_STREAM}`, as an EventSource sends "
                "it. Elsewhere send the token as `Authorization: Bearer <token>`."
            )
        self._check_token(access_token)
        return "session"

    def issue_token(self) -> str:
        """A token good for `session_seconds`."""
        claims = {"aud": _AUDIENCE, "scope": "read", "exp": int(time.time()) + self.session_seconds}
        return jwt.encode(claims, self._secret, _ALGORITHM)

    def _by_header(self, authorization: str) -> Access:
        scheme, _, given = authorization.partition(" ")
        sent = given.strip() if scheme.lower() == "bearer" else ""
        matching = [access for key, access in self._accesses.items() if hmac.compare_digest(sent.encode(), key)]
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
                token, self._secret, [_ALGORITHM], audience=_AUDIENCE, options={"require": ["exp", "aud"]}
            )
        except jwt.ExpiredSignatureError as error:
            raise unauthorized(f"The session token has expired. {_RENEW}", invalid=True) from error
        except jwt.InvalidTokenError as error:
            raise unauthorized(
                f"That is no session token of this service, or its key has been changed since. {_RENEW}", invalid=True
            ) from error
        if claims.get("scope") != "read":
            raise unauthorized(f"The session token is for something else. {_RENEW}", invalid=True)


def unauthorized(detail: str, *, invalid: bool = False) -> ApiProblem:
    challenge = 'Bearer error="invalid_token"' if invalid else "Bearer"
    return ApiProblem(401, "Unauthorized", detail, headers={"WWW-Authenticate": challenge})


def take_access_token(scope: Scope) -> str | None:
    """The parameter `access_token` of a request; removed from it, so that nothing that logs, keeps or checks parameters
    meets it."""
    query = scope.get("query_string") or b""
    if not query:
        return None
    named = [(unquote_plus(part.partition(b"=")[0].decode("latin-1")), part) for part in query.split(b"&")]
    scope["query_string"] = b"&".join(part for name, part in named if name != ACCESS_TOKEN)
    given = [part.partition(b"=")[2] for name, part in named if name == ACCESS_TOKEN]
    return unquote_plus(given[0].decode("latin-1")) if given else None


def check_access(access: Access, method: str, path: str) -> None:
    """Raises ApiProblem 403 for a request that does more than read, where that is all that is allowed. Searching is
    reading, though it leaves a retrieval; judging one by feedback is not. No token renews itself."""
    renews = access == "read" and (method, path) == ("POST", SESSION_TOKENS_PATH)
    if access == "full" or renews or only_reads(method, path):
        return
    caller = "This key only reads: it" if access == "read" else "A session token only reads: it"
    raise ApiProblem(
        403,
        "Read only",
        f"{caller} allows {READS}. Send the service's own key, THALWEG_SERVICE__API_KEY, for {method} {path[:80]}.",
        members={"reason": "read_only"},
    )


def only_reads(method: str, path: str) -> bool:
    return method in SAFE_METHODS or (method, path) == ("POST", SEARCH_PATH)
