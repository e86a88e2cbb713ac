"""One-use tickets for streams, for the EventSource of a browser, which sends no headers.

A ticket is random, and known to this process alone: it opens one stream at one path, once, within seconds.
"""

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import TTLCache

from query_api.errors import ApiProblem, invalid_request

STREAM_TICKETS_PATH = "/v1/stream-tickets"
TICKET = "ticket"
TICKET_SECONDS = 10
MAX_TICKETS = 1_000  # that have not expired, used ones too
STREAM_PATHS = re.compile(r"/v1/search|/v1/documents/.+/status", re.DOTALL)  # those of GET with text/event-stream


class TicketRefused(Exception):
    """The message says why, for the caller."""


@dataclass
class _Ticket:
    path: str
    used: bool = False


class StreamTickets:
    """Used on the event loop. `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._tickets: TTLCache[str, _Ticket] = TTLCache(MAX_TICKETS, TICKET_SECONDS, self._now)

    def issue(self, path: str) -> str:
        """A ticket for a stream at `path`, without escapes. Raises ApiProblem 422 where no stream is, 503 while there
        are MAX_TICKETS."""
        if not STREAM_PATHS.fullmatch(path):
            raise invalid_request(
                "`path` is to be that of a stream, without its query: /v1/search, or /v1/documents/{id}/status."
            )
        self._tickets.expire()
        if len(self._tickets) >= MAX_TICKETS:
            raise ApiProblem(
                503,
                "Too many tickets",
                f"{MAX_TICKETS:,} tickets were made within {TICKET_SECONDS} s, the most at once. Try again then, or "
                "stream by fetch with the header Authorization, which needs none.",
                retry_after_seconds=TICKET_SECONDS,
            )
        ticket = secrets.token_urlsafe(32)
        self._tickets[ticket] = _Ticket(path)
        return ticket

    def redeem(self, ticket: str, path: str) -> None:
        """Use it up. Raises TicketRefused; one that was made for another path stays good for that one."""
        found = self._tickets.get(ticket)
        if found is None:
            raise TicketRefused(f"The ticket is over {TICKET_SECONDS} s old, or not one of this service.")
        if found.used:
            raise TicketRefused("The ticket has been used: each opens one stream, and reconnecting needs a new one.")
        if found.path != path:
            raise TicketRefused("The ticket was made for another path.")
        found.used = True

    def _now(self) -> float:
        return self.clock()
