"""An endpoint that speaks OpenAI's `/embeddings` on this machine, and misbehaves as it is told."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from indexer.embedding.hashing import HashingEncoder
from schemas.settings import EmbeddingSettings
from tests.local_endpoint import GOOD, Answer, Handler, running


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
    with running(_Handler, lambda url: EmbeddingsEndpoint(url, **told)) as endpoint:
        yield endpoint


class _Handler(Handler):
    def answer(self, body: dict[str, Any]) -> None:
        endpoint: EmbeddingsEndpoint = self.server.endpoint  # type: ignore[attr-defined]
        endpoint.bodies.append(body)
        endpoint.requests.append(body["input"])
        endpoint.headers.append(self.sent_headers())
        answer = endpoint.answer_to(body["input"])
        if endpoint.key is not None and self.headers["authorization"] != f"Bearer {endpoint.key}":
            answer = Answer(401)
        elif self.path != "/v1/embeddings" or body["model"] != endpoint.model:
            answer = Answer(404)
        if answer.hangs:
            endpoint.closing.wait()
            return
        self._tell(answer, body)

    def _tell(self, answer: Answer, body: dict[str, Any]) -> None:
        if answer.status == 200:
            whole_vectors = HashingEncoder().encode(body["input"]) * 3
            length = body.get("dimensions", HashingEncoder.dimension)
            vectors = whole_vectors.reshape(len(whole_vectors), length, -1).sum(axis=2)
            rows = [{"index": index, "embedding": vector.tolist()} for index, vector in enumerate(vectors)]
            content: Any = {"object": "list", "model": body["model"], "data": answer.change(rows[::-1])}
        else:  # as real ones do: they quote what they were sent
            said = f"{self.headers['authorization']} may not: {body['input']}"
            content = {"error": {"message": said, "type": "error", "code": None}}
        self.say(answer, content)
