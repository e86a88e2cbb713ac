"""How large the body of a request may be, and all bodies together."""

import asyncio
import ctypes
import sys
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from query_api.errors import ApiProblem
from query_api.middleware.body_budget import BodyBudget, BodyShare, OverBudget
from query_api.settings import ServiceBlock
from schemas.settings import MIB

DOCUMENTS_PATH = "/v1/documents"
EVALUATIONS_PATH = "/v1/evaluations"
EVALUATION_BODY_BYTES = 8 * MIB
SMALL_BODY_BYTES = 256 * 1024
SMALL_BODIES_BYTES = 32 * MIB  # together; a budget of their own, so that large writes keep no search out
RETRY_SECONDS = 2
LARGE_BYTES = 4 * MIB  # from here on memory is handed back to the system after the answer


class BodyLimits:
    """ASGI middleware. A body over its route's limit gets 413; one that all bodies together leave no room for gets 503
    with `Retry-After`. Bytes are counted until the answer begins."""

    def __init__(self, app: ASGIApp, settings: ServiceBlock) -> None:
        self._app = app
        self._max_request_bytes = settings.max_request_bytes
        self._documents = BodyBudget(max(settings.request_bytes_at_once, settings.max_request_bytes))
        self._small = BodyBudget(SMALL_BODIES_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit, budget = self._limit(scope["path"])
        try:
            check_declared(Headers(scope=scope), limit, budget)
        except ApiProblem as problem:
            await problem.response()(scope, receive, send)
            return
        with budget.share() as share:

            async def send_and_give_back(message: Message) -> None:
                if message["type"] == "http.response.start":
                    share.give_back()
                await send(message)

            received = Received(receive, limit, share)
            try:
                await self._app(scope, received.next_message, send_and_give_back)
            finally:
                if received.size >= LARGE_BYTES:
                    await asyncio.to_thread(hand_back_memory)

    def _limit(self, path: str) -> tuple[int, BodyBudget]:
        if path.startswith(DOCUMENTS_PATH):
            return self._max_request_bytes, self._documents
        return (EVALUATION_BODY_BYTES if path.startswith(EVALUATIONS_PATH) else SMALL_BODY_BYTES), self._small


def check_declared(headers: Mapping[str, str], limit: int, budget: BodyBudget) -> None:
    """Raises ApiProblem for a body that says it is too large, before any of it is read."""
    declared = headers.get("content-length", "0")
    if not (declared.isascii() and declared.isdigit()):
        return
    if len(declared) > 18 or int(declared) > limit:
        raise ApiProblem(413, "Request too large", _too_large(limit))
    if not budget.has_room(int(declared)):
        raise ApiProblem(503, "Too many large requests", _no_room(budget), retry_after_seconds=RETRY_SECONDS)


class Received:
    """The body of one request as it comes; `size` counts its bytes."""

    def __init__(self, receive: Receive, limit: int, share: BodyShare) -> None:
        self._receive = receive
        self._limit = limit
        self._share = share
        self.size = 0

    async def next_message(self) -> Message:
        """Raises HTTPException once the body has more than `limit` bytes, or there is no room for it."""
        message = await self._receive()
        size = len(message.get("body", b""))
        self.size += size
        if self.size > self._limit:
            raise HTTPException(413, _too_large(self._limit))
        try:
            self._share.take(size)
        except OverBudget as error:
            raise HTTPException(503, _no_room(self._share.budget), {"Retry-After": str(RETRY_SECONDS)}) from error
        return message


def hand_back_memory() -> None:
    """glibc keeps what was freed for the next that asks, tens of megabytes for each thread. Elsewhere nothing."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _too_large(limit: int) -> str:
    return f"The body is over {limit:,} bytes. Send less at once, or raise THALWEG_SERVICE__MAX_REQUEST_BYTES."


def _no_room(budget: BodyBudget) -> str:
    return (
        f"The service holds other requests' bodies, and at most {budget.limit_bytes:,} bytes of them at once. "
        "Send it again in a while."
    )
