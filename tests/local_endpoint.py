"""What the endpoints that run on this machine for tests have in common: they misbehave as they are told."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, TypeVar

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Answer:
    """How one request is answered: `status` with `headers`; of the right body only `share` is sent, after `change`;
    `instead` of it something else."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    change: Callable[[Rows], Rows] = lambda rows: rows
    instead: bytes | None = None
    share: float = 1.0
    breaks_off: bool = False
    hangs: bool = False


GOOD = Answer()
HANGING = Answer(hangs=True)
BROKEN = Answer(500)
CUT = Answer(share=0.5)
BREAKING_OFF = Answer(share=0.5, breaks_off=True)


def busy(retry_after: str | None = None) -> Answer:
    return Answer(429, () if retry_after is None else (("Retry-After", retry_after),))


class Endpoint(Protocol):
    """`closing` lets go of the requests that hang."""

    closing: threading.Event


Running = TypeVar("Running", bound=Endpoint)


@contextmanager
def running(handler: "type[Handler]", made: Callable[[str], Running]) -> Iterator[Running]:
    """An endpoint on a port of its own, `made` with its address; handlers find it as `self.server.endpoint`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    endpoint = made(f"http://127.0.0.1:{server.server_port}/v1")
    server.endpoint = endpoint  # type: ignore[attr-defined]  # how the standard library hands things to handlers
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    """Each request is put to `answer`, which ends by `say`, or hangs."""

    def answer(self, body: dict[str, Any]) -> None:
        raise NotImplementedError

    def do_POST(self) -> None:
        self.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def sent_headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def say(self, answer: Answer, content: Any) -> None:
        """The content, as JSON, in the way of the answer."""
        whole = json.dumps(content).encode() if answer.instead is None else answer.instead
        sent = whole[: int(len(whole) * answer.share)]
        self.send_response(answer.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(whole if answer.breaks_off else sent)))
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class names it
        """Says nothing: what it was asked is kept."""
