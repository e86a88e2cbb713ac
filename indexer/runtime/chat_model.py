"""A language model behind any endpoint that speaks OpenAI's `/chat/completions`, asked with its official client.

That is imported when the first question is asked: it takes about a second. It sends nothing but the request: no
variable of another program (`OPENAI_…`) and nothing about this machine.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import httpx2

from indexer.errors import ChatModelFailure
from indexer.runtime.model_endpoint import EndpointErrors, ModelAddress
from schemas.answers import TokenUsage
from schemas.clock import retry_after_seconds
from schemas.settings import LanguageModelSettings

RETRIES = 2  # of a request that was not answered: no connection, 408, 409, 429, 5xx
MAX_ANSWER_BYTES = 4 * 1024 * 1024  # a token takes some 200 bytes on the way
LIKELIEST = 0.0  # the temperature at which the same question gets the same answer
VARIED = 0.3  # that of what is asked once more, which is not to be answered as before
_SENT_HEADERS = frozenset({"host", "content-type", "content-length", "accept", "connection", "user-agent"})

Message = Mapping[str, str]


class ChatModel:
    """Asks one model. On the event loop only."""

    def __init__(self, settings: LanguageModelSettings, retries: int = RETRIES, *, name: str = "") -> None:
        """Asks nothing yet. `settings` are configured; `name` is one of its models, else that which writes."""

        def failure(sentence: str, _retry_after: float | None = None) -> ChatModelFailure:
            return ChatModelFailure(sentence)

        self._address = ModelAddress(
            "The language model",
            str(settings.base_url),
            model=name or settings.writer,
            api_key=settings.api_key,
            seconds=settings.timeout_seconds,
            settings="THALWEG_LANGUAGE_MODEL",
            not_taken="the question with its passages ({}), which may be longer than it can read",
            errors=EndpointErrors(failure, failure, failure, failure),
        )
        self.name, self.seconds = self._address.model, settings.timeout_seconds
        self._retries = retries
        self._key = settings.api_key.get_secret_value() if settings.api_key else None
        hooks: Any = {"request": [self._with_own_headers], "response": [_bounded]}
        self._http = httpx2.AsyncClient(timeout=self.seconds, event_hooks=hooks)
        self.close = self._http.aclose

    async def reply(
        self,
        messages: Sequence[Message],
        usage: TokenUsage,
        *,
        most_tokens: int,
        deadline: float,
        temperature: float = LIKELIEST,
    ) -> AsyncGenerator[str]:
        """The pieces of the answer as they come, at most `most_tokens`, until `deadline` on the loop's clock. What it
        took is added to `usage`. Closing the iterator ends the request. Raises ChatModelFailure, also after some
        pieces."""
        openai = await asyncio.to_thread(import_module, "openai")
        stream: Any = None
        is_empty, finished = True, False
        try:
            async with asyncio.timeout_at(deadline):
                stream = await self._client(openai).chat.completions.create(
                    model=self.name,
                    messages=messages,
                    temperature=temperature,
                    max_tokens=most_tokens,
                    stream=True,
                    stream_options={"include_usage": True},
                )
            while chunk := await _next(stream, deadline):
                if chunk.usage:
                    usage.prompt_tokens += int(chunk.usage.prompt_tokens)
                    usage.completion_tokens += int(chunk.usage.completion_tokens)
                    usage.total_tokens = usage.prompt_tokens + usage.completion_tokens
                for choice in chunk.choices[:1]:
                    finished |= choice.finish_reason is not None
                    if piece := choice.delta.content:
                        is_empty = False
                        yield str(piece)
        except (openai.OpenAIError, TimeoutError, _TooLong, AttributeError, TypeError, ValueError) as error:
            raise self._failure(openai, error) from None
        finally:
            if stream is not None:
                await stream.close()
        if is_empty:
            raise ChatModelFailure(f"{self._address.where} gave an empty answer, or something other than one.")
        if not finished:
            raise self._address.broken_off()

    def _failure(self, openai: Any, error: Exception) -> Exception:
        if isinstance(error, TimeoutError | openai.APITimeoutError):
            return self._address.late()
        if isinstance(error, openai.APIStatusError):
            return self._address.failure(error.status_code, retry_after_seconds(error.response.headers))
        if isinstance(error, _TooLong):
            return self._address.too_long(MAX_ANSWER_BYTES)
        if isinstance(error, openai.APIConnectionError):
            return self._address.broken_off()
        return ChatModelFailure(f"{self._address.where} gave something other than an answer.")

    def _client(self, openai: Any) -> Any:
        where = {"base_url": self._address.base_url, "http_client": self._http}
        return openai.AsyncOpenAI(api_key="sent below", max_retries=self._retries, timeout=self.seconds, **where)

    async def _with_own_headers(self, request: httpx2.Request) -> None:
        for name in set(request.headers) - _SENT_HEADERS:
            del request.headers[name]
        if self._key is not None:
            request.headers["authorization"] = f"Bearer {self._key}"


async def _next(stream: Any, deadline: float) -> Any:
    async with asyncio.timeout_at(deadline):
        return await anext(stream, None)


class _TooLong(Exception):
    """More bytes came than an answer has."""


async def _bounded(response: httpx2.Response) -> None:
    response.headers.pop("content-encoding", None)  # not asked for: what unfolds has no bound
    response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of a response, up to the limit."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_ANSWER_BYTES
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise _TooLong
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
