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
_THOUGHT, _THOUGHT_END = "<think>", "</think>"
_NOTHING = re.compile(rf"\W*{NOTHING}\W*", re.IGNORECASE)
_LONGEST_END = 8  # characters that an end may have begun before the newest piece


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
        self._begun = False
        self._rest = ""

    def add(self, piece: str) -> Iterator[Claim]:
        """The sentences that end with this piece."""
        looked_at = max(0, len(self._rest) - _LONGEST_END)
        self._rest += piece
        if not self._begun and not self._has_begun():
            return
        if not self._begun:
            self._begun, looked_at, piece = True, 0, self._rest
        self.text += piece
        while end := _END.search(self._rest, looked_at):
            unit, self._rest, looked_at = self._rest[: end.end()], self._rest[end.end() :], 0
            yield from self._claims(unit)

    def end(self) -> Iterator[Claim]:
        """The last ones."""
        if self._begun:
            yield from self._claims(self._rest)
        self._rest = ""

    def _has_begun(self) -> bool:
        """Whether thinking is over. `_rest` is then what follows it."""
        text = self._rest.lstrip()
        if _THOUGHT.startswith(text[: len(_THOUGHT)]):
            _, end, after = text.partition(_THOUGHT_END)
            self._rest = after if end else self._rest
            return bool(end)
        return True

    def _claims(self, unit: str) -> Iterator[Claim]:
        numbers = [int(number) for some in _NUMBERS.findall(unit) for number in re.findall(r"\d+", some)]
        text = _BULLET.sub("", _NUMBERS.sub("", unit)).replace("**", "")
        text = _BEFORE_STOP.sub("", unquoted("".join(sign if sign.isprintable() else " " for sign in text)))
        for start, end in sentence_spans(text):
            claim = Claim(" ".join(text[start:end].split()), numbers)
            self.is_usable |= bool(numbers) or claim.is_nothing
            if self.is_usable:
                yield claim
