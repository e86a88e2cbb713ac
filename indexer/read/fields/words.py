"""Words as ids, titles, values and questions share them: `PEP-0008.rst`, `pep 8` and `Pep8` hold the same ones."""

import re
import unicodedata
from typing import NamedTuple

_WORD = re.compile(r"\d+|[^\W\d_]+")


class Word(NamedTuple):
    """A run of letters, casefolded without accents, or of digits without leading zeros; and where it stands."""

    text: str
    start: int
    end: int


def words_of(text: str) -> list[Word]:
    return [Word(_plain(match.group()), *match.span()) for match in _WORD.finditer(text)]


def phrase_of(text: str) -> str:
    """The words of a text with blanks between them."""
    return " ".join(word.text for word in words_of(text))


def _plain(word: str) -> str:
    if word.isascii():
        return (word.lstrip("0") or "0") if word.isdigit() else word.lower()
    letters = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()
