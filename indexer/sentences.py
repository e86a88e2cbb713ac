"""Where sentences begin and end in a document's canonical text, by sentencex's rules for English.

A line of canonical text is a paragraph, a list item, a table row or a line of code, and no sentence crosses it: an edit
in one paragraph never moves the sentences of another.
"""

import re
from collections.abc import Iterator

import sentencex

WINDOW_CHARACTERS = 2_000  # sentencex takes quadratic time over thousands of unclosed quotation marks

_LINE = re.compile(r"[^\n]+")
_STOP = re.compile(r"[.!?。！？](?=\s)|[。！？]")
_ENUMERATOR = re.compile(r"\(?(?:\d{1,4}|[A-Za-z])[.)]|[-*•]")


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """The sentences of `text[start:end]` as (start, end) in characters of `text`, in order, without blanks around.

    A sentence's place in the list over the whole text is its document-wide number. Every character that is not
    whitespace is in exactly one sentence. Time is linear in the length, whatever the text.
    """
    spans: list[tuple[int, int]] = []
    for line in _LINE.finditer(text, start, len(text) if end is None else end):
        first = len(spans)
        for window_start, window_end in _windows(text, line.start(), line.end()):
            for span in _split(text, window_start, window_end):
                if len(spans) > first and _ENUMERATOR.fullmatch(text, *spans[-1]):
                    spans[-1] = (spans[-1][0], span[1])
                else:
                    spans.append(span)
    return spans


def _windows(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The line in pieces of bounded size: cut behind a full stop where there is one, else at a blank, else anywhere."""
    while end - start > WINDOW_CHARACTERS:
        limit = start + WINDOW_CHARACTERS
        stops = [match.end() for match in _STOP.finditer(text, start + WINDOW_CHARACTERS // 2, limit)]
        cut = stops[-1] if stops else text.rfind(" ", start + WINDOW_CHARACTERS // 2, limit) + 1
        yield start, cut or limit
        start = cut or limit
    yield start, end


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    window = text[start:end]
    for boundary in sentencex.get_sentence_boundaries("en", window):
        piece = window[boundary["start_index"] : boundary["end_index"]]
        bare = piece.strip()
        if bare:
            at = start + boundary["start_index"] + len(piece) - len(piece.lstrip())
            yield at, at + len(bare)
