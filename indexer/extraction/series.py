"""Numbered series of documents, such as PEPs and RFCs: `pep-0008.rst` and the field `pep: 8` both mean `PEP 8`.

A number in a document's header becomes part of its title; one in its id alone is a name that it can be found by.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from indexer.extraction.lexicon import word_set
from schemas.ids import DocumentKey

# Series whose number may follow without a separator, and may be in a field whatever the document's id.
KNOWN_SERIES = word_set("bep bip cve eip erc iso jep jsr nep pep rfc slep srfi xep")
# Words before a number in a file name that are not series.
_NOT_SERIES = word_set(
    """app art book chap copy data day demo doc docs draft feat file fig figs fix form img item lab lec list log
    main new news note notes num old page pages para part pic poem post ref rev sec seq step tab table task temp
    test text tmp topic unit ver vol week year"""
)
_FILE_NAME = re.compile(r"([a-z]{2,5})(?:([-_ ])|(?=\d))0*(\d{1,6})(?!\d)")
_NUMBER = re.compile(r"#?0*(\d{1,6})")
_LETTERS = re.compile(r"[^\W\d_]+")


class SeriesNumber(NamedTuple):
    """A document's number in a series; `series` is lower case."""

    series: str
    number: int

    @property
    def identifier(self) -> str:
        """As people write it: `PEP 8`."""
        return f"{self.series.upper()} {self.number}"


def series_of_path(path: str) -> SeriesNumber | None:
    """The number in the file name of a path or URL: `peps/pep-0008.rst` → PEP 8."""
    name = path.rstrip("/").rpartition("/")[2].lower()
    match = _FILE_NAME.match(name)
    if match is None or match[1] in _NOT_SERIES or (match[2] is None and match[1] not in KNOWN_SERIES):
        return None
    rest = name[match.end() :]
    return SeriesNumber(match[1], int(match[3])) if not rest or rest[0] in "._- " else None


def series_of_document(key: DocumentKey, fields: Sequence[tuple[str, str]]) -> SeriesNumber | None:
    """The document's own number: the one it states, else the one in its id.

    An id that only numbers the documents of its collection or folder (`cacm/CACM-0205`) is not a series, unless it is a
    known one: `peps/pep-0008.rst`.
    """
    stated = stated_series(key, fields)
    if stated:
        return stated
    number_in_id = series_of_path(key.document_id)
    if number_in_id is None or number_in_id.series in KNOWN_SERIES:
        return number_in_id
    around = _LETTERS.findall(f"{key.collection}/{key.document_id.rpartition('/')[0]}".lower())
    return (
        None
        if number_in_id.series in {name for word in around for name in (word, word.removesuffix("s"))}
        else number_in_id
    )


def stated_series(key: DocumentKey, fields: Sequence[tuple[str, str]]) -> SeriesNumber | None:
    """The number in a field of the document whose name is a known series or begins its id."""
    file_name = key.document_id.rpartition("/")[2].lower()
    for name, value in fields:
        number = _NUMBER.fullmatch(value.strip())
        if number and 2 <= len(name) <= 5 and name.isalpha() and name not in _NOT_SERIES:
            behind = file_name[len(name) : len(name) + 1]
            if name in KNOWN_SERIES or (file_name.startswith(name) and not behind.isalpha()):
                return SeriesNumber(name, int(number[1]))
    return None
