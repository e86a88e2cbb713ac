"""How OpenAI's protocol writes an answer: whole, or as events. One object for each answer.

Tokens are not counted, so `usage` is null: no language model reads or writes any.
"""

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from query_api.answers.cited_text import CitedText, Piece
from schemas.openai_protocol import MODEL, UrlCitation

About = Mapping[str, Any]
"""What the protocol has no field for: the question that was searched, the retrieval, the confidence."""


class ChatCompletion:
    """Of `/v1/chat/completions`."""

    def __init__(self) -> None:
        self._of_all = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": MODEL}

    def whole(self, cited: CitedText, about: About) -> dict[str, Any]:
        message = {"role": "assistant", "content": cited.text, "refusal": None} | _annotated(cited.citations)
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return self._of_all | {"object": "chat.completion", "choices": [choice], "usage": None, MODEL: about}

    def begin(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def piece(self, piece: Piece) -> Iterator[bytes]:
        yield self._chunk({"content": piece.text} | _annotated(piece.citations))

    def end(self, cited: CitedText, about: About) -> Iterator[bytes]:
        del cited
        yield self._chunk({}, finish_reason="stop", **{MODEL: about})
        yield b"data: [DONE]\n\n"

    def error(self, detail: str) -> Iterator[bytes]:
        yield _event({"error": {"message": detail, "type": "server_error", "param": None, "code": None}})

    def _chunk(self, delta: About, finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return _event(self._of_all | {"object": "chat.completion.chunk", "choices": [choice]} | more)


class ResponseObject:
    """Of `/v1/responses`: one message of one part."""

    def __init__(self) -> None:
        name = uuid.uuid4().hex
        self._item = f"msg_{name}"
        self._response = {
            "id": f"resp_{name}", "object": "response", "created_at": int(time.time()), "model": MODEL, "error": None,
            "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": False,
            "previous_response_id": None, "store": False, "temperature": None, "tool_choice": "none", "tools": [],
            "top_p": None, "usage": None,
        }  # fmt: skip
        self._at = {"item_id": self._item, "output_index": 0, "content_index": 0}
        self._sent = self._annotations = 0

    def whole(self, cited: CitedText, about: About) -> dict[str, Any]:
        output = [self._message("completed", [_part(cited)])]
        return self._response | {"status": "completed", "output": output, MODEL: about}

    def begin(self) -> Iterator[bytes]:
        begun = {"response": self._response | {"status": "in_progress", "output": []}}
        yield self._next("response.created", begun)
        yield self._next("response.in_progress", begun)
        message = self._message("in_progress", [])
        yield self._next("response.output_item.added", {"output_index": 0, "item": message})
        yield self._next("response.content_part.added", self._at | {"part": _part()})

    def piece(self, piece: Piece) -> Iterator[bytes]:
        yield self._next("response.output_text.delta", self._at | {"delta": piece.text, "logprobs": []})
        for citation in piece.citations:
            added = {"annotation_index": self._annotations, "annotation": citation.model_dump()}
            yield self._next("response.output_text.annotation.added", self._at | added)
            self._annotations += 1

    def end(self, cited: CitedText, about: About) -> Iterator[bytes]:
        part = _part(cited)
        yield self._next("response.output_text.done", self._at | {"text": cited.text, "logprobs": []})
        yield self._next("response.content_part.done", self._at | {"part": part})
        message = self._message("completed", [part])
        yield self._next("response.output_item.done", {"output_index": 0, "item": message})
        yield self._next("response.completed", {"response": self.whole(cited, about)})

    def error(self, detail: str) -> Iterator[bytes]:
        yield self._next("error", {"code": "server_error", "message": detail, "param": None})

    def _message(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self._item, "type": "message", "role": "assistant", "status": status, "content": content}

    def _next(self, name: str, body: About) -> bytes:
        event = {"type": name, "sequence_number": self._sent, **body}
        self._sent += 1
        return f"event: {name}\n".encode() + _event(event)


def _event(body: About) -> bytes:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


def _annotated(citations: list[UrlCitation]) -> dict[str, Any]:
    """As a message of a chat has them."""
    found = [{"type": each.type, each.type: each.model_dump(exclude={"type"})} for each in citations]
    return {"annotations": found} if found else {}


def _part(cited: CitedText | None = None) -> dict[str, Any]:
    annotations = [each.model_dump() for each in cited.citations] if cited else []
    return {"type": "output_text", "text": cited.text if cited else "", "annotations": annotations, "logprobs": []}
