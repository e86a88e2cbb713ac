"""What a language model writes, as it comes: sentences, each with the numbers of the passages that it names."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from indexer.chunking.sentences import sentence_spans
from query_api.answers.model.prompt import NOTHING, unquoted

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
