"""A language model behind any endpoint that speaks OpenAI's `/chat/completions`, asked with its official client.

That is imported when the first question is asked: it takes about a second. It sends nothing but the request: no
variable of another program (`OPENAI_…`) and nothing about this machine.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import msgspec

from indexer.errors import ChatModelFailure
from indexer.runtime.model_endpoint import EndpointErrors, ModelAddress
from schemas.clock import retry_after_seconds
from schemas.settings import LanguageModelSettings

if TYPE_CHECKING:
    import openai

RETRIES = 2  # of a request that was not answered: no connection, 408, 409, 429, 5xx
MAX_ANSWER_BYTES = 4 * 1024 * 1024  # a token takes some 200 bytes on the way
_SENT_HEADERS = frozenset({"host", "content-type", "content-length", "accept", "connection", "user-agent"})

Message = Mapping[str, str]


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Chunk(msgspec.Struct):
    """What is read of one; the last has the usage, and no choices."""

    choices: list[_Choice] = []
    usage: _Usage | None = None


@dataclass
class TokenCount:
    """Tokens as the endpoint counted them; 0 where it counts none."""

    prompt: int = 0
    completion: int = 0


class ChatModel:
    """Asks one model. On the event loop only."""

    def __init__(self, settings: LanguageModelSettings, retries: int = RETRIES) -> None:
        """Asks and opens nothing yet. `settings` are configured."""
        self.name = str(settings.model)
        self.seconds = settings.timeout_seconds
        self._retries = retries

        def failure(sentence: str, _retry_after: float | None = None) -> ChatModelFailure:
            return ChatModelFailure(sentence)

        self._address = ModelAddress(
            "The language model",
            str(settings.base_url),
            model=self.name,
            api_key=settings.api_key,
            seconds=self.seconds,
            settings="THALWEG_LANGUAGE_MODEL",
            not_taken="the question with its passages ({}), which may be longer than it can read",
            errors=EndpointErrors(failure, failure, failure, failure),
        )
        self._opening = asyncio.Lock()
        self._client: openai.AsyncOpenAI | None = None

    async def reply(
        self, messages: Sequence[Message], tokens: TokenCount, *, most_tokens: int, deadline: float
    ) -> AsyncGenerator[str]:
        """The pieces of the answer as they come, at most `most_tokens`, until `deadline` on the loop's clock; the same
        question gets the likeliest answer each time (temperature 0). What it took is added to `tokens`. Closing the
        iterator ends the request. Raises ChatModelFailure, also after some pieces."""
        try:
            async with asyncio.timeout_at(deadline):
                client = await self._opened()
        except TimeoutError:
            raise self._address.late() from None
        is_empty, finished = True, False
        async with aclosing(self._chunks(client, messages, most_tokens, deadline)) as chunks:
            async for chunk in chunks:
                if chunk.usage is not None:
                    tokens.prompt += chunk.usage.prompt_tokens
                    tokens.completion += chunk.usage.completion_tokens
                for choice in chunk.choices[:1]:
                    finished |= choice.finish_reason is not None
                    if choice.delta.content:
                        is_empty = False
                        yield choice.delta.content
        if is_empty:
            raise ChatModelFailure(f"{self._address.where} gave an empty answer, or something other than one.")
        if not finished:
            raise self._address.broken_off()

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    async def _chunks(
        self, client: "openai.AsyncOpenAI", messages: Sequence[Message], most_tokens: int, deadline: float
    ) -> AsyncGenerator[_Chunk]:
        import openai  # loaded by now

        said: Any = list(messages)
        stream: openai.AsyncStream[Any] | None = None
        try:
            async with asyncio.timeout_at(deadline):
                stream = await client.chat.completions.create(
                    model=self.name,
                    messages=said,
                    temperature=0,
                    max_tokens=most_tokens,
                    stream=True,
                    stream_options={"include_usage": True},
                )
            pieces = aiter(stream)
            while True:
                async with asyncio.timeout_at(deadline):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield msgspec.convert(piece.to_dict(warnings=False), _Chunk)
        except (TimeoutError, openai.APITimeoutError):
            raise self._address.late() from None
        except openai.APIStatusError as error:
            raise self._address.failure(error.status_code, retry_after_seconds(error.response.headers)) from None
        except _TooLong:
            raise self._address.too_long(MAX_ANSWER_BYTES) from None
        except openai.APIConnectionError:
            raise self._address.broken_off() from None
        except (openai.OpenAIError, AttributeError, ValueError):  # an error in the stream; no JSON, no UTF-8
            raise ChatModelFailure(f"{self._address.where} gave something other than an answer.") from None
        finally:
            if stream is not None:
                await stream.close()

    async def _opened(self) -> "openai.AsyncOpenAI":
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._open)
            return self._client

    def _open(self) -> "openai.AsyncOpenAI":
        import openai

        key = self._address.api_key.get_secret_value() if self._address.api_key else None

        async def with_own_headers(request: httpx2.Request) -> None:
            for name in set(request.headers) - _SENT_HEADERS:
                del request.headers[name]
            if key is not None:
                request.headers["authorization"] = f"Bearer {key}"

        async def bounded(response: httpx2.Response) -> None:
            response.headers.pop("content-encoding", None)  # not asked for: what unfolds has no bound
            if isinstance(response.stream, httpx2.AsyncByteStream):
                response.stream = _Bounded(response.stream)

        return openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=self._address.base_url,
            max_retries=self._retries,
            timeout=self.seconds,
            http_client=httpx2.AsyncClient(
                timeout=self.seconds, event_hooks={"request": [with_own_headers], "response": [bounded]}
            ),
        )


class _TooLong(Exception):
    """More bytes came than an answer has."""


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of a response, up to the limit."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
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
