"""Admission control of searches: how many run at once, who waits for a turn, and who is refused at the door.

A search that could not begin soon is refused before anything is done for it, so that those admitted have the processors
to be complete. The bound is a time, not a number: the expected wait is what is in flight, times the mean of the recent
searches' seconds, divided by how many run at once.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Self

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from query_api.errors import ApiProblem
from schemas.openai_protocol import CHAT_PATH, RESPONSES_PATH

Reason = Literal["overloaded", "fair_share"]

MAX_WAIT_SECONDS = 2.0  # well under the time-outs of clients: more is refused at once
FIRST_GUESS_SECONDS = 0.1  # of one search, before one has ended
SMOOTHING = 0.1  # the share of the latest search in the mean
SEARCH_PATH = "/v1/search"
ANSWERS_PATH = "/v1/answers"
RESEARCH_PATH = "/v1/research"
FACT_CHECKS_PATH = "/v1/fact-checks"
SEARCHING_PATHS = frozenset({SEARCH_PATH, ANSWERS_PATH, CHAT_PATH, RESPONSES_PATH, RESEARCH_PATH, FACT_CHECKS_PATH})
SLACK = 1.5  # a queue that turns out slower than expected is shortened once its wait is so much longer than allowed


class SearchRefused(ApiProblem):
    """A search that was not begun; after `retry_after_seconds` it may be."""

    def __init__(self, reason: Reason, wait_seconds: float) -> None:
        self.reason = reason
        self.retry_after_seconds = max(1, math.ceil(wait_seconds))
        again = f"Ask again in {self.retry_after_seconds} s."
        details = {
            "overloaded": (503, f"As many searches wait as can be answered in time. {again}"),
            "fair_share": (429, f"Searches of this client take more than their share while others wait. {again}"),
        }
        status, detail = details[reason]
        super().__init__(
            status,
            "Too many searches",
            detail,
            retry_after_seconds=self.retry_after_seconds,
            members={"reason": reason},
        )


def caller_of(connection: HTTPConnection) -> str:
    """Who asks, for the shares: the client's address and the key it sent, since many may share one of the two."""
    address = connection.client.host if connection.client else ""
    return f"{address} {connection.headers.get('authorization', '')}"


class AdmissionMiddleware:
    """ASGI middleware. A search that would get no place is refused before its body is read and before any route is
    looked for: of a thousand that come at once, hundreds are refused, and each waits for all before it. What is left of
    a stream (`Last-Event-ID`) may take no search, and passes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in SEARCHING_PATHS and "last-event-id" not in Headers(scope=scope):
            admission: SearchAdmission = scope["app"].state.service.admission
            try:
                admission.check(caller_of(HTTPConnection(scope)))
            except SearchRefused as refusal:
                await refusal.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)


class Turn:
    """The place of one search: in the queue, then running, then over. As a context manager it is over at the end."""

    def __init__(self, admission: "SearchAdmission", caller: str) -> None:
        self.caller = caller
        self._admission = admission
        self._admitted: asyncio.Future[None] | None = None  # None before it is in the queue
        self._began: float | None = None
        self._over = False

    def enqueue(self) -> None:
        """Take a place in the queue. Raises SearchRefused when there is none."""
        if self._admitted is None:
            self._admitted = asyncio.get_running_loop().create_future()
            try:
                self._admission.enter(self)
            except SearchRefused:
                self._over = True
                raise

    async def begin(self) -> None:
        """Wait in the queue until the search may run. Raises SearchRefused, also when the queue is shortened
        meanwhile."""
        self.enqueue()
        if self._admitted is not None:
            await asyncio.shield(self._admitted)

    def end(self, *, answered: bool = False) -> None:
        """Give the place back, once; the duration of an `answered` search predicts that of others."""
        if self._admitted is not None and not self._over:
            self._admission.leave(self, self._began if answered else None)
        self._over = True

    def admit(self, now: float) -> None:
        """For SearchAdmission: the search may run."""
        self._began = now
        if self._admitted is not None:
            self._admitted.set_result(None)

    def refuse(self, refusal: SearchRefused) -> None:
        """For SearchAdmission: there is no place any more."""
        self._over = True
        if self._admitted is not None:
            self._admitted.set_exception(refusal)
            self._admitted.exception()  # a client that has left does not ask for it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@dataclass(eq=False)
class SearchAdmission:
    """At most `at_once` searches run; others wait in the order they came, as long as the expected wait of one more is
    within `longest_wait_seconds`. Used on the event loop only.

    When the queue is full, a caller with less than an equal share of all places takes that of the caller with most, and
    the latter's newest search is refused as `fair_share`. `on_refused` gets each reason.
    """

    at_once: int
    longest_wait_seconds: float
    on_refused: Callable[[Reason], None] = lambda _: None
    clock: Callable[[], float] = time.perf_counter
    running: int = 0
    refused: Counter[Reason] = field(default_factory=Counter)
    mean_seconds: float = FIRST_GUESS_SECONDS
    _waiting: dict[Turn, None] = field(default_factory=dict)  # in order of arrival
    _places: Counter[str] = field(default_factory=Counter)  # of each caller, waiting or running

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def expected_wait_seconds(self) -> float:
        """How long one more search would wait."""
        return self._wait_behind(self.waiting)

    def check(self, caller: str) -> None:
        """Raises SearchRefused where a search of this caller would get no place now."""
        self._yielding(caller)

    def turn(self, caller: str) -> Turn:
        """For one search, not in the queue yet; to be ended, however the search goes."""
        return Turn(self, caller)

    def enter(self, turn: Turn) -> None:
        """For `Turn.enqueue`. Raises SearchRefused."""
        yielding = self._yielding(turn.caller)
        if yielding is not None:
            self._refuse(yielding, "fair_share")
        self._places[turn.caller] += 1
        self._waiting[turn] = None
        self._admit()

    def leave(self, turn: Turn, began: float | None) -> None:
        """For `Turn.end`."""
        self._forget(turn.caller)
        if turn in self._waiting:
            del self._waiting[turn]
            return
        self.running -= 1
        if began is not None:
            self.mean_seconds += SMOOTHING * (self.clock() - began - self.mean_seconds)
        self._admit()
        self._shorten()

    def _wait_behind(self, waiting: int) -> float:
        if self.running < self.at_once:
            return 0.0
        return (waiting + 1) * self.mean_seconds / self.at_once

    def _yielding(self, caller: str) -> Turn | None:
        """Who has to make room for one more search of this caller; None while there is room. Raises SearchRefused when
        nobody has to."""
        if self.expected_wait_seconds <= self.longest_wait_seconds:
            return None
        share = self._fair_share(caller)
        if self._places[caller] > share:
            raise self._refusal("fair_share")
        newest = self._newest_of_greediest()
        if newest is None or self._places[caller] >= share or self._places[newest.caller] <= share:
            raise self._refusal("overloaded")
        return newest

    def _fair_share(self, *callers: str) -> int:
        return math.ceil(self._places.total() / len(self._places.keys() | set(callers)))

    def _newest_of_greediest(self) -> Turn | None:
        if not self._waiting:
            return None
        greediest = max({turn.caller for turn in self._waiting}, key=self._places.__getitem__)
        return next(turn for turn in reversed(self._waiting) if turn.caller == greediest)

    def _admit(self) -> None:
        while self._waiting and self.running < self.at_once:
            turn = next(iter(self._waiting))
            del self._waiting[turn]
            self.running += 1
            turn.admit(self.clock())

    def _shorten(self) -> None:
        """Searches that take longer than those before make the queue too long: refuse the newest at once."""
        while self._waiting and self._wait_behind(self.waiting - 1) > SLACK * self.longest_wait_seconds:
            newest = self._newest_of_greediest()
            if newest is None:
                return
            greedy = self._places[newest.caller] > self._fair_share()
            self._refuse(newest, "fair_share" if greedy else "overloaded")

    def _refuse(self, turn: Turn, reason: Reason) -> None:
        del self._waiting[turn]
        self._forget(turn.caller)
        turn.refuse(self._refusal(reason))

    def _refusal(self, reason: Reason) -> SearchRefused:
        self.refused[reason] += 1
        self.on_refused(reason)
        return SearchRefused(reason, self.expected_wait_seconds)

    def _forget(self, caller: str) -> None:
        self._places[caller] -= 1
        if not self._places[caller]:
            del self._places[caller]
