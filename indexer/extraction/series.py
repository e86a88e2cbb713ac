"""Numbered series of documents, such as PEPs and RFCs: `pep-0008.rst` and the field `pep: 8` both mean `PEP 8`.

What a document states in its header is said in its title; what its id alone tells is a name it can be found by.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from indexer.extraction.lexicon import word_set
from schemas.ids import DocumentKey

# Series whose number may follow without a sign between, and may stand in a field whatever the document's id.
KNOWN_SERIES = word_set("bep bip cve eip erc iso jep jsr nep pep rfc slep srfi xep")
# Words before a number in a file's name that name no series.
_NOT_SERIES = word_set(
    """app art book chap copy data day demo doc docs draft feat file fig figs fix form img item lab lec list log
    main new news note notes num old page pages para part pic poem post ref rev sec seq step tab table task temp
    test text tmp topic unit ver vol week year"""
)
_FILE_NAME = re.compile(r"([a-z]{2,5})(?:([-_ ])|(?=\d))0*(\d{1,6})(?!\d)")
_NUMBER = re.compile(r"#?0*(\d{1,6})")
_LETTERS = re.compile(r"[^\W\d_]+")


class SeriesNumber(NamedTuple):
    """A place in a series. `series` is lower case."""

    series: str
    number: int

    @property
    def identifier(self) -> str:
        """As people write it: `PEP 8`."""
        return f"{self.series.upper()} {self.number}"


def series_of_path(path: str) -> SeriesNumber | None:
    """What the last part of a path or URL says, extension aside: `peps/pep-0008.rst` → PEP 8."""
    name = path.rstrip("/").rpartition("/")[2].lower()
    match = _FILE_NAME.match(name)
    if match is None or match[1] in _NOT_SERIES or (match[2] is None and match[1] not in KNOWN_SERIES):
        return None
    rest = name[match.end() :]
    return SeriesNumber(match[1], int(match[3])) if not rest or rest[0] in "._- " else None


def series_of_document(key: DocumentKey, fields: Sequence[tuple[str, str]]) -> SeriesNumber | None:
    """The document's own number: what it states, else what its id tells.

    An id whose letters only repeat the name of its collection or folder counts through that (`cacm/CACM-0205`) and is
    no place in a series, unless the series is a known one: `peps/pep-0008.rst`.
    """
    stated = stated_series(key, fields)
    if stated:
        return stated
    told = series_of_path(key.document_id)
    if told is None or told.series in KNOWN_SERIES:
        return told
    around = _LETTERS.findall(f"{key.collection}/{key.document_id.rpartition('/')[0]}".lower())
    return None if told.series in {name for word in around for name in (word, word.removesuffix("s"))} else told


def stated_series(key: DocumentKey, fields: Sequence[tuple[str, str]]) -> SeriesNumber | None:
    """The number the document states of itself: in a field whose name is a known series or begins its id."""
    file_name = key.document_id.rpartition("/")[2].lower()
    for name, value in fields:
        number = _NUMBER.fullmatch(value.strip())
        if number and 2 <= len(name) <= 5 and name.isalpha() and name not in _NOT_SERIES:
            behind = file_name[len(name) : len(name) + 1]
            if name in KNOWN_SERIES or (file_name.startswith(name) and not behind.isalpha()):
                return SeriesNumber(name, int(number[1]))
    return None
