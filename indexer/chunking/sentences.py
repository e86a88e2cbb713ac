"""Where sentences begin and end in a document's canonical text, by sentencex's rules for its language.

A line of canonical text is a paragraph, a list item, a table row or a line of code, and no sentence crosses it: an edit
in one paragraph never moves the sentences of another.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import sentencex

from indexer.chunking.languages import USUAL

WINDOW_CHARACTERS = 2_000  # sentencex takes quadratic time over thousands of unclosed quotation marks
REMEMBERED_WINDOWS = 2_048  # lines of a long document; some 10 MB at most

_LINE = re.compile(r"[^\n]+")
_STOP = re.compile(r"[.!?。！？।॥؟۔](?=\s)|[。！？]")
_ENUMERATOR = re.compile(r"\(?(?:\d{1,4}|[A-Za-z])[.)]|[-*•]")
_FIRST_STOP = re.compile(r"[.!?]")  # what ends a sentence of ASCII characters by the rules for English
_ODD_BLANK = re.compile(r"[^\S ]")  # sentencex 1.0 fails on some that take several bytes
_GOES_ON = re.compile(r"[^\W\d_]")
_INITIAL = re.compile(r"(?:^|[\s(\[«„“])[^\W\d_a-z]\.$")


def sentence_spans(text: str, start: int = 0, end: int | None = None, language: str = USUAL) -> list[tuple[int, int]]:
    """The sentences of `text[start:end]` as (start, end) in characters of `text`, in order, without blanks around.

    `language` is an ISO 639 code; what sentencex has no rules for falls back to those of a related language, or of
    English. A sentence's place in the list over the whole text is its document-wide number. Every character that is
    not whitespace is in exactly one sentence. Time is linear in the length, whatever the text.
    """
    spans: list[tuple[int, int]] = []
    is_english = language == USUAL
    for line in _LINE.finditer(text, start, len(text) if end is None else end):
        first = len(spans)
        if is_english and (whole := _one_sentence(text, line.start(), line[0])):
            spans += whole
            continue
        for window_start, window_end in _windows(text, line.start(), line.end()):
            for span in _split(text, window_start, window_end, language):
                if len(spans) > first and (
                    _ENUMERATOR.fullmatch(text, *spans[-1]) or (not is_english and _is_cut_short(text, spans[-1], span))
                ):
                    spans[-1] = (spans[-1][0], span[1])
                else:
                    spans.append(span)
    return spans


def _one_sentence(text: str, start: int, line: str) -> list[tuple[int, int]] | None:
    """The line as it is where no sentence can end inside it, which is seen at once for most short lines."""
    bare = line.strip()
    stop = _FIRST_STOP.search(bare)
    if not bare.isascii() or len(bare) > WINDOW_CHARACTERS or (stop and stop.end() < len(bare)):
        return None
    start = text.index(bare, start) if bare else start
    return [(start, start + len(bare))] if bare else []


def _is_cut_short(text: str, before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Whether a full stop there ends no sentence: behind an initial, or before a word in lower case.

    So it is in languages with two cases, whose abbreviations no list of rules has all. English, whose list is long,
    also begins sentences with names such as `pip`, and is left as sentencex has it.
    """
    if text[before[1] - 1] != ".":
        return False
    following = text[after[0]]
    is_word = _GOES_ON.match(following) is not None
    return (is_word and following.islower()) or _INITIAL.search(
        text[max(before[0], before[1] - 4) : before[1]]
    ) is not None


def _windows(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The line in pieces of bounded size: cut behind a full stop where there is one, else at a blank, else anywhere."""
    while end - start > WINDOW_CHARACTERS:
        limit = start + WINDOW_CHARACTERS
        stops = [match.end() for match in _STOP.finditer(text, start + WINDOW_CHARACTERS // 2, limit)]
        cut = stops[-1] if stops else text.rfind(" ", start + WINDOW_CHARACTERS // 2, limit) + 1
        yield start, cut or limit
        start = cut or limit
    yield start, end


def _split(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    return ((start + first, start + last) for first, last in _sentences(text[start:end], language))


@lru_cache(maxsize=REMEMBERED_WINDOWS)
def _sentences(window: str, language: str) -> tuple[tuple[int, int], ...]:
    """Asked for twice of each line: by who cuts its section, and by who numbers the sentences of the whole text."""
    window = _ODD_BLANK.sub(" ", window)
    found = []
    for boundary in sentencex.get_sentence_boundaries(language, window):
        piece = window[boundary["start_index"] : boundary["end_index"]]
        bare = piece.strip()
        if bare:
            at = boundary["start_index"] + len(piece) - len(piece.lstrip())
            found.append((at, at + len(bare)))
    return tuple(found)
