"""What a language model replies: sentences as they come, each with the numbers of passages that it names, or JSON."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from indexer.chunking.sentences import sentence_spans
from indexer.errors import ChatModelFailure
from indexer.runtime.chat_model import LIKELIEST, VARIED, ChatModel, Message
from query_api.answers.model.prompt import NOTHING, repair, unquoted
from schemas.answers import TokenUsage

T = TypeVar("T")
MOST_TOKENS = 2_048  # of a reply that is JSON, with what some models think aloud before it

_NUMBERS = re.compile(r"\s*[\[【]\s*(?:passages?\s*)?(\d{1,4}(?:\s*[,;&]\s*\d{1,4})*)\s*[\]】]", re.IGNORECASE)
_END = re.compile(r"\n|(?<=[\]】])[.!?]?\s+(?=[^\s\[【a-z(,;])")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_BEFORE_STOP = re.compile(r"\s+(?=[.,;!?])")
_THOUGHT = re.compile(r"\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_NOTHING = re.compile(rf"\W*{NOTHING}\W*", re.IGNORECASE)

_LONGEST_END = 8  # characters of an end that may come before the piece that it is complete with


class Claim(NamedTuple):
    """A sentence, and the numbers that it names; none where it names none."""

    text: str
    numbers: list[int]

    @property
    def is_nothing(self) -> bool:
        """Whether it says that no passage answers."""
        return _NOTHING.fullmatch(self.text) is not None


class ReplyReader:
    """Reads a reply in pieces. What a model thinks aloud before it (`<think>…</think>`) is passed over, as is what it
    writes before the first sentence that names a passage. `is_usable` once there is one, or it says that none answers.
    """

    def __init__(self) -> None:
        self.text = ""
        self.is_usable = False
        self._read = 0  # characters

    def add(self, piece: str) -> Iterator[Claim]:
        """The sentences that end with this piece."""
        looked_at = len(self.text) - _LONGEST_END
        self.text += piece
        thought = _THOUGHT.match(self.text)
        self._read = max(self._read, thought.end() if thought else 0)
        while end := _END.search(self.text, max(self._read, looked_at)):
            unit, self._read = self.text[self._read : end.end()], end.end()
            yield from self._claims(unit)

    def end(self) -> Iterator[Claim]:
        """The last ones."""
        yield from self._claims(self.text[self._read :])

    def _claims(self, unit: str) -> Iterator[Claim]:
        numbers = [int(number) for some in _NUMBERS.findall(unit) for number in re.findall(r"\d+", some)]
        text = _BULLET.sub("", _NUMBERS.sub("", unit)).replace("**", "")
        text = _BEFORE_STOP.sub("", unquoted("".join(sign if sign.isprintable() else " " for sign in text)))
        for start, end in sentence_spans(text):
            claim = Claim(" ".join(text[start:end].split()), numbers)
            self.is_usable |= bool(numbers) or claim.is_nothing
            if self.is_usable:
                yield claim


async def read_reply(
    model: ChatModel, messages: Sequence[Message], read: Callable[[str], T | None], usage: TokenUsage, why: str
) -> T:
    """What `read` takes of the model's reply; of a second one, with `why`, where it refuses the first. Raises
    ChatModelFailure, also where it refuses both."""
    deadline = asyncio.get_running_loop().time() + model.seconds
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
