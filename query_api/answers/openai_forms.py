"""How OpenAI's protocol writes an answer: whole, or as events. One object for each answer. `about` is what the protocol
has no field for, and has the `usage` where a language model read and wrote tokens."""

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from query_api.answers.cited_text import CitedText, Piece
from schemas.openai_protocol import MODEL, UrlCitation

Json = Mapping[str, Any]
_TOKENS = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "total_tokens": "total_tokens"}


class ChatCompletion:
    """Of `/v1/chat/completions`."""

    def __init__(self) -> None:
        self._of_all = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": MODEL}

    def whole(self, cited: CitedText, about: Json) -> dict[str, Any]:
        message = {"role": "assistant", "content": cited.text, "refusal": None, **_annotated(cited.citations)}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        of_answer = {"choices": [choice], "usage": about.get("usage"), MODEL: about}
        return self._of_all | {"object": "chat.completion"} | of_answer

    def begin(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def piece(self, piece: Piece) -> Iterator[bytes]:
        yield self._chunk({"content": piece.text, **_annotated(piece.citations)})

    def end(self, cited: CitedText, about: Json) -> Iterator[bytes]:
        del cited
        yield self._chunk({}, finish_reason="stop", **{MODEL: about})
        yield b"data: [DONE]\n\n"

    def error(self, detail: str) -> Iterator[bytes]:
        yield _event({"error": {"message": detail, "type": "server_error", "param": None, "code": None}})

    def _chunk(self, delta: Json, finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _event({**self._of_all, "object": "chat.completion.chunk", "choices": [choice], **more})


class ResponseObject:
    """Of `/v1/responses`: one message of one part."""

    def __init__(self) -> None:
        name = uuid.uuid4().hex
        self._response = {
            "id": f"resp_{name}", "object": "response", "created_at": int(time.time()), "model": MODEL, "error": None,
            "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": False,
            "store": False, "temperature": None, "tool_choice": "none", "tools": [], "top_p": None, "usage": None,
        }  # fmt: skip
        self._message = {"id": f"msg_{name}", "type": "message", "role": "assistant"}
        self._at = {"item_id": f"msg_{name}", "output_index": 0, "content_index": 0}
        self._sent = self._annotations = 0

    def whole(self, cited: CitedText, about: Json) -> dict[str, Any]:
        message = self._message | {"status": "completed", "content": [_part(cited.text, cited.citations)]}
        usage = about.get("usage") and {name: about["usage"][own] for name, own in _TOKENS.items()}
        return self._response | {"status": "completed", "output": [message], "usage": usage, MODEL: about}

    def begin(self) -> Iterator[bytes]:
        begun = self._response | {"status": "in_progress", "output": []}
        yield self._next("response.created", response=begun)
        yield self._next("response.in_progress", response=begun)
        item = self._message | {"status": "in_progress", "content": []}
        yield self._next("response.output_item.added", output_index=0, item=item)
        yield self._next("response.content_part.added", **self._at, part=_part("", []))

    def piece(self, piece: Piece) -> Iterator[bytes]:
        yield self._next("response.output_text.delta", **self._at, delta=piece.text, logprobs=[])
        for index, citation in enumerate(piece.citations, start=self._annotations):
            added = {"annotation_index": index, "annotation": citation.model_dump()}
            yield self._next("response.output_text.annotation.added", **self._at, **added)
        self._annotations += len(piece.citations)

    def end(self, cited: CitedText, about: Json) -> Iterator[bytes]:
        whole = self.whole(cited, about)
        [item] = whole["output"]
        yield self._next("response.output_text.done", **self._at, text=cited.text, logprobs=[])
        yield self._next("response.content_part.done", **self._at, part=item["content"][0])
        yield self._next("response.output_item.done", output_index=0, item=item)
        yield self._next("response.completed", response=whole)

    def error(self, detail: str) -> Iterator[bytes]:
        yield self._next("error", code="server_error", message=detail, param=None)

    def _next(self, name: str, **fields: Any) -> bytes:
        self._sent += 1
        return f"event: {name}\n".encode() + _event({"type": name, "sequence_number": self._sent - 1, **fields})


def _event(body: Json) -> bytes:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


def _annotated(citations: Sequence[UrlCitation]) -> Json:
    found = [{"type": each.type, each.type: each.model_dump(exclude={"type"})} for each in citations]
    return {"annotations": found} if found else {}


def _part(text: str, citations: Sequence[UrlCitation]) -> Json:
    return {"type": "output_text", "text": text, "annotations": [each.model_dump() for each in citations]}
