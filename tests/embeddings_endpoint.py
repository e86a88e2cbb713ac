"""An endpoint that speaks OpenAI's `/embeddings` on this machine, and misbehaves as it is told."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from indexer.embedding.hashing import HashingEncoder
from schemas.settings import EmbeddingSettings

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


@dataclass
class EmbeddingsEndpoint:
    """Gives the vectors of feature hashing, three times as long as they should be, in reverse order.

    `script` answers the next requests, one each; then `otherwise` does. A request with a text that holds a word of
    `choking` is answered by that. Every request's texts are in `requests`.
    """

    url: str
    key: str | None = None
    model: str = "words"
    script: list[Answer] = field(default_factory=list)
    otherwise: Answer = GOOD
    choking: dict[str, Answer] = field(default_factory=dict)
    requests: list[list[str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def settings(self, **changed: Any) -> EmbeddingSettings:
        given = {"provider": "openai", "base_url": self.url, "model": self.model, "dimension": None, "batch_texts": 8}
        return EmbeddingSettings.model_validate({**given, "api_key": self.key, "timeout_seconds": 5.0, **changed})

    def answer_to(self, texts: Sequence[str]) -> Answer:
        for word, answer in self.choking.items():
            if any(word in text for text in texts):
                return answer
        return self.script.pop(0) if self.script else self.otherwise


@contextmanager
def embeddings_endpoint(**told: Any) -> Iterator[EmbeddingsEndpoint]:
    """A running one, on a port of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    endpoint = EmbeddingsEndpoint(f"http://127.0.0.1:{server.server_port}/v1", **told)
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


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        endpoint: EmbeddingsEndpoint = self.server.endpoint  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        endpoint.bodies.append(body)
        endpoint.requests.append(body["input"])
        endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
        answer = endpoint.answer_to(body["input"])
        if endpoint.key is not None and self.headers["authorization"] != f"Bearer {endpoint.key}":
            answer = Answer(401)
        elif self.path != "/v1/embeddings" or body["model"] != endpoint.model:
            answer = Answer(404)
        if answer.hangs:
            endpoint.closing.wait()
            return
        self._say(answer, body)

    def _say(self, answer: Answer, body: dict[str, Any]) -> None:
        if answer.status == 200:
            whole_vectors = HashingEncoder().encode(body["input"]) * 3
            length = body.get("dimensions", HashingEncoder.dimension)
            vectors = whole_vectors.reshape(len(whole_vectors), length, -1).sum(axis=2)
            rows = [{"index": index, "embedding": vector.tolist()} for index, vector in enumerate(vectors)]
            content: Any = {"object": "list", "model": body["model"], "data": answer.change(rows[::-1])}
        else:  # as real ones do: they quote what they were sent
            said = f"{self.headers['authorization']} may not: {body['input']}"
            content = {"error": {"message": said, "type": "error", "code": None}}
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
