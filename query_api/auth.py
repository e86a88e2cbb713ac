"""Who calls: the API key, which may do all, and the one that only reads."""

import hmac
from typing import Literal, Self

from query_api.errors import ApiProblem
from query_api.settings import ServiceBlock

Access = Literal["full", "read"]

SEARCH_PATH = "/v1/search"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
READS = f"GET, HEAD and POST {SEARCH_PATH}"


class ApiKeys:
    """The keys of a service. Compared in constant time."""

    def __init__(self, full: str, read: str | None = None) -> None:
        self._accesses: dict[bytes, Access] = {full.encode(): "full"}
        if read is not None:
            self._accesses[read.encode()] = "read"

    @classmethod
    def from_settings(cls, settings: ServiceBlock) -> Self | None:
        """None where every caller may do all, as on loopback."""
        if settings.api_key is None:
            return None
        read = settings.read_api_key
        return cls(settings.api_key.get_secret_value(), None if read is None else read.get_secret_value())

    def access_of(self, authorization: str) -> Access:
        """What the caller with this header may do. Raises ApiProblem 401 for one without a key."""
        scheme, _, given = authorization.partition(" ")
        sent = given.strip().encode() if scheme.lower() == "bearer" else b""
        matching = [access for key, access in self._accesses.items() if hmac.compare_digest(sent, key)]
        if not matching:
            raise unauthorized("Send the service's API key: `Authorization: Bearer <key>`.")
        return matching[0]


def unauthorized(detail: str) -> ApiProblem:
    return ApiProblem(401, "Unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})


def check_access(access: Access, method: str, path: str) -> None:
    """Raises ApiProblem 403 for a request that does more than read, where that is all that is allowed. Searching is
    reading, though it leaves a retrieval; judging one by feedback is not."""
    if access == "full" or only_reads(method, path):
        return
    raise ApiProblem(
        403,
        "Read only",
        f"This key only reads: it allows {READS}. Send the service's own key, THALWEG_SERVICE__API_KEY, for {method} "
        f"{path[:80]}.",
        members={"reason": "read_only"},
    )


def only_reads(method: str, path: str) -> bool:
    return method in SAFE_METHODS or (method, path) == ("POST", SEARCH_PATH)
