"""What a language model decides: read as JSON, checked, asked for once more. A rule decides where it does not."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import structlog
from cachetools import LRUCache

from indexer.errors import ChatModelFailure
from indexer.runtime.chat_model import LIKELIEST, VARIED, ChatModel, Message
from query_api.answers.model.prompt import repair
from schemas.answers import TokenUsage

log = structlog.get_logger(__name__)

MOST_TOKENS = 2_048  # of a reply, with what some models think aloud before it
MOST_SECONDS = 15.0  # of a decision, which a search waits for
AT_ONCE = 16
REMEMBERED = 256  # decisions: the same stream, when it is resumed, is of the same question
_REPAIR = "That cannot be used. Write nothing but the JSON object, in words that you were shown."

CountTokens = Callable[[str, TokenUsage], None]
T = TypeVar("T")


class Decider:
    """Has one model decide. `count` gets the caller and the usage of each decision. On the event loop only."""

    def __init__(self, model: ChatModel, count: CountTokens) -> None:
        self._model, self._count = model, count
        self._places = asyncio.Semaphore(AT_ONCE)
        self._decided: LRUCache[bytes, Any] = LRUCache(REMEMBERED)

    async def decide(self, messages: Sequence[Message], read: Callable[[str], T | None], caller: str) -> T | None:
        """What `read` takes of the reply; None where the model fails, is busy, or twice replies what `read` refuses."""
        key = msgspec.json.encode(messages)
        if self._places.locked() or key in self._decided:
            kept: T | None = self._decided.get(key)
            return kept
        usage = TokenUsage(model=self._model.name)
        deadline = asyncio.get_running_loop().time() + min(self._model.seconds, MOST_SECONDS)
        try:
            async with self._places:
                found = await read_reply(self._model, messages, read, usage, _REPAIR, deadline)
        except ChatModelFailure as failure:
            log.warning("a rule decides in place of the language model", why=str(failure))
            return None
        finally:
            self._count(caller, usage)
        self._decided[key] = found
        return found


async def read_reply(
    model: ChatModel,
    messages: Sequence[Message],
    read: Callable[[str], T | None],
    usage: TokenUsage,
    why: str,
    deadline: float,
) -> T:
    """What `read` takes of the model's reply; of a second one, with `why`, where it refuses the first. Raises
    ChatModelFailure, also where it refuses both."""
    for temperature in (LIKELIEST, VARIED):
        reply = model.reply(messages, usage, most_tokens=MOST_TOKENS, deadline=deadline, temperature=temperature)
        text = "".join([piece async for piece in reply])
        if (found := read(text)) is not None:
            return found
        messages = repair(messages, text, why)
    raise ChatModelFailure(f"The language model {model.name!r} twice replied what cannot be used.")


def json_in(reply: str, kind: type[T]) -> T | None:
    """The object of this kind in a reply, among whatever else; None where there is none."""
    said = reply.rpartition("</think>")[2]
    try:
        return msgspec.json.decode(said[said.find("{") : said.rfind("}") + 1], type=kind)
    except (msgspec.DecodeError, UnicodeError):
        return None
