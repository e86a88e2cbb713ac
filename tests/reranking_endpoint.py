"""An endpoint that re-ranks on this machine, by common words, and misbehaves as it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from query_api.settings import RerankerSettings
from tests.local_endpoint import GOOD, Answer, Handler, running


def common_words(question: str, text: str) -> float:
    """How many words of the text the question has."""
    return float(len({word.strip(".?,") for word in text.lower().split()} & set(question.lower().strip("?").split())))


@dataclass
class RerankingEndpoint:
    """Gives how many words of the question each text has, best first, as real ones do.

    `script` answers the next requests, one each; then `otherwise` does. What was sent is in `bodies` and `headers`.
    """

    url: str
    key: str | None = None
    model: str | None = "reader"
    form: str = "documents"
    script: list[Answer] = field(default_factory=list)
    otherwise: Answer = GOOD
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def settings(self, **changed: Any) -> RerankerSettings:
        given = {"provider": "endpoint", "base_url": self.url, "model": self.model, "form": self.form}
        return RerankerSettings.model_validate({**given, "api_key": self.key, **changed})


@contextmanager
def reranking_endpoint(**told: Any) -> Iterator[RerankingEndpoint]:
    """A running one, on a port of its own."""
    with running(_Handler, lambda url: RerankingEndpoint(url, **told)) as endpoint:
        yield endpoint


class _Handler(Handler):
    def answer(self, body: dict[str, Any]) -> None:
        endpoint: RerankingEndpoint = self.server.endpoint  # type: ignore[attr-defined]
        endpoint.bodies.append(body)
        endpoint.headers.append(self.sent_headers())
        answer = endpoint.script.pop(0) if endpoint.script else endpoint.otherwise
        if endpoint.key is not None and self.headers["authorization"] != f"Bearer {endpoint.key}":
            answer = Answer(401)
        elif self.path != "/v1/rerank" or body.get("model") != (endpoint.model if endpoint.form != "texts" else None):
            answer = Answer(404)
        elif endpoint.form not in body:
            answer = Answer(422)
        if answer.hangs:
            endpoint.closing.wait()
            return
        self._tell(answer, body, endpoint.form)

    def _tell(self, answer: Answer, body: dict[str, Any], form: str) -> None:
        if answer.status == 200:
            name = "score" if form == "texts" else "relevance_score"
            rows = [{"index": at, name: common_words(body["query"], text)} for at, text in enumerate(body[form])]
            rows = answer.change(sorted(rows, key=lambda row: -row[name]))
            content: Any = rows if form == "texts" else {"id": "1", "results": rows, "meta": {"version": 2}}
        else:  # as real ones do: they quote what they were sent
            content = {"detail": f"{self.headers['authorization']} may not: {body}"}
        self.say(answer, content)
