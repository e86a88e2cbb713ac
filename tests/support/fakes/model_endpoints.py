"""Model endpoints on this machine, which fail as they are told: OpenAI's `/embeddings` and `/chat/completions`, and a
re-ranker's `/rerank`."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from indexer.embedding.encoder import HashingEncoder
from query_api.settings import RerankerSettings
from schemas.settings import EmbeddingSettings, LanguageModelSettings
from tests.support.http_server import Request, Response, http_server

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
class Endpoint:
    """`script` answers the next requests, one each; then `otherwise` does. What was sent is in `bodies` and `headers`.

    `closing` releases the requests that hang.
    """

    url: str
    key: str | None = None
    model: str | None = None
    script: list[Answer] = field(default_factory=list)
    otherwise: Answer = GOOD
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def answer_to(self, path: str, body: dict[str, Any]) -> Answer:
        raise NotImplementedError

    def content(self, answer: Answer, body: dict[str, Any]) -> Any:
        """The right body of a request that is answered with 200."""
        raise NotImplementedError

    def refusal(self, said: str) -> Any:
        raise NotImplementedError

    def next_answer(self) -> Answer:
        return self.script.pop(0) if self.script else self.otherwise


@dataclass
class EmbeddingsEndpoint(Endpoint):
    """Gives the vectors of feature hashing, three times as long as they should be, in reverse order.

    A request with a text that holds a word of `choking` is answered by that. Every request's texts are in `requests`.
    """

    model: str | None = "words"
    choking: dict[str, Answer] = field(default_factory=dict)
    requests: list[list[str]] = field(default_factory=list)

    def settings(self, **changed: Any) -> EmbeddingSettings:
        given = {"provider": "openai", "base_url": self.url, "model": self.model, "dimension": None}
        return EmbeddingSettings.model_validate({**given, "api_key": self.key, **changed})

    def answer_to(self, path: str, body: dict[str, Any]) -> Answer:
        self.requests.append(body["input"])
        answer = self._answer_to_texts(body["input"])
        return answer if (path, body["model"]) == ("/v1/embeddings", self.model) else Answer(404)

    def _answer_to_texts(self, texts: Sequence[str]) -> Answer:
        for word, answer in self.choking.items():
            if any(word in text for text in texts):
                return answer
        return self.next_answer()

    def content(self, answer: Answer, body: dict[str, Any]) -> Any:
        whole_vectors = HashingEncoder().encode(body["input"]) * 3
        length = body.get("dimensions", HashingEncoder.dimension)
        vectors = whole_vectors.reshape(len(whole_vectors), length, -1).sum(axis=2)
        rows = [{"index": index, "embedding": vector.tolist()} for index, vector in enumerate(vectors)]
        return {"object": "list", "model": body["model"], "data": answer.change(rows[::-1])}

    def refusal(self, said: str) -> Any:
        return {"error": {"message": said, "type": "error", "code": None}}


@dataclass
class RerankingEndpoint(Endpoint):
    """Gives how many words of the question each text has, best first."""

    model: str | None = "reader"
    form: str = "documents"

    def settings(self, **changed: Any) -> RerankerSettings:
        given = {"provider": "endpoint", "base_url": self.url, "model": self.model, "form": self.form}
        return RerankerSettings.model_validate({**given, "api_key": self.key, **changed})

    def answer_to(self, path: str, body: dict[str, Any]) -> Answer:
        answer = self.next_answer()
        if path != "/v1/rerank" or body.get("model") != (None if self.form == "texts" else self.model):
            return Answer(404)
        return answer if self.form in body else Answer(422)

    def content(self, answer: Answer, body: dict[str, Any]) -> Any:
        name = "score" if self.form == "texts" else "relevance_score"
        rows = [{"index": at, name: common_words(body["query"], text)} for at, text in enumerate(body[self.form])]
        rows = answer.change(sorted(rows, key=lambda row: -row[name]))
        return rows if self.form == "texts" else {"id": "1", "results": rows, "meta": {"version": 2}}

    def refusal(self, said: str) -> Any:
        return {"detail": said}


@dataclass
class ChatEndpoint(Endpoint):
    """Answers a passage that holds a word of `says` with what stands there, another one with nothing found.

    `said` changes the text of the message, as `Answer.instead` does the whole body. Where a stream is asked for, it
    streams what `writes` makes of the last message, in pieces of a few characters, then how many words both have. With
    a comma, `model` is two.
    """

    model: str | None = "reader"
    says: dict[str, Any] = field(default_factory=dict)
    said: Callable[[str], str | None] = lambda text: text
    finish_reason: str = "stop"
    writes: Callable[[str], str] = lambda asked: ""

    def settings(self, **changed: Any) -> LanguageModelSettings:
        given = {"base_url": self.url, "model": self.model, "api_key": self.key, "timeout_seconds": 5.0}
        return LanguageModelSettings.model_validate({**given, **changed})

    def answer_to(self, path: str, body: dict[str, Any]) -> Answer:
        is_there = path == "/v1/chat/completions" and body["model"] in str(self.model).split(",")
        return self.next_answer() if is_there else Answer(404)

    def content(self, answer: Answer, body: dict[str, Any]) -> Any:
        if body.get("stream"):
            asked = " ".join(message["content"] for message in body["messages"])
            return b"".join(streamed(self.writes(body["messages"][-1]["content"]), self.finish_reason, asked))
        passage = body["messages"][-1]["content"].partition("Passage:")[2]
        found = next((said for word, said in self.says.items() if word in passage), {"entities": [], "statements": []})
        message = {"role": "assistant", "content": self.said(json.dumps(found))}
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return {"id": "1", "object": "chat.completion", "model": body["model"], "choices": [choice]}

    def refusal(self, said: str) -> Any:
        return {"error": {"message": said, "type": "error", "code": None}}


def streamed(text: str, finish_reason: str = "stop", asked: str = "") -> Iterator[bytes]:
    """The events of a stream that says this."""
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    choices: list[dict[str, Any]] = [{"delta": {"content": piece}, "finish_reason": None} for piece in pieces]
    for choice in [*choices, {"delta": {}, "finish_reason": finish_reason}]:
        chunk = {"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]}
        yield f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
    usage = {"prompt_tokens": len(asked.split()), "completion_tokens": len(text.split())}
    yield f"data: {json.dumps({'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n".encode()


def common_words(question: str, text: str) -> float:
    """How many words of the text the question has."""
    return float(len({word.strip(".?,") for word in text.lower().split()} & set(question.lower().strip("?").split())))


@contextmanager
def embeddings_endpoint(**given: Any) -> Iterator[EmbeddingsEndpoint]:
    with _running(lambda url: EmbeddingsEndpoint(url, **given)) as endpoint:
        yield endpoint


@contextmanager
def reranking_endpoint(**given: Any) -> Iterator[RerankingEndpoint]:
    with _running(lambda url: RerankingEndpoint(url, **given)) as endpoint:
        yield endpoint


@contextmanager
def chat_endpoint(**given: Any) -> Iterator[ChatEndpoint]:
    with _running(lambda url: ChatEndpoint(url, **given)) as endpoint:
        yield endpoint


AnEndpoint = TypeVar("AnEndpoint", bound=Endpoint)


@contextmanager
def _running(endpoint_at: Callable[[str], AnEndpoint]) -> Iterator[AnEndpoint]:
    """An endpoint on a port of its own, made with its address."""
    made: list[AnEndpoint] = []
    with http_server(lambda request: _answered(made[0], request)) as address:
        made.append(endpoint_at(f"{address}/v1"))
        try:
            yield made[0]
        finally:
            made[0].closing.set()


def _answered(endpoint: Endpoint, request: Request) -> Response | None:
    body = json.loads(request.body)
    endpoint.bodies.append(body)
    endpoint.headers.append(dict(request.headers))
    answer = endpoint.answer_to(request.path, body)
    authorization = request.headers.get("authorization")
    if endpoint.key is not None and authorization != f"Bearer {endpoint.key}":
        answer = Answer(401)
    if answer.hangs:
        endpoint.closing.wait()
        return None
    if answer.status == 200:
        content = endpoint.content(answer, body)
    else:  # as real ones do: they quote what they were sent
        content = endpoint.refusal(f"{authorization} may not: {body}")
    right = content if isinstance(content, bytes) else json.dumps(content).encode()
    whole = right if answer.instead is None else answer.instead
    sent = whole[: int(len(whole) * answer.share)]
    kind = "text/event-stream" if isinstance(content, bytes) else "application/json"
    headers = [("Content-Type", kind), *answer.headers]
    return Response(sent, answer.status, headers, len(whole) if answer.breaks_off else None)
