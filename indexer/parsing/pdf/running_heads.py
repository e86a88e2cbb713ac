"""Heads and feet that repeat on a PDF's pages: the first of each is kept, as the others say nothing more."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from indexer.parsing.pdf.characters import Line

Key = tuple[int, str]  # height on the page, text

_LEAST_PAGES = 3
_MARGIN = 0.5  # of a line's height, between a head and the text
_NUMBER = re.compile(r"\d{1,5}")
_MOST_NUMBERS = 4


def without_running_heads(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages without lines at their edges in the same place with the same words, or a page's number."""
    if len(pages) < _LEAST_PAGES:
        return list(pages)
    edges = [dict(_edges(lines, number)) for number, lines in enumerate(pages)]
    counted = Counter(key for page in edges for keys in page.values() for key in keys)
    seen: set[Key] = set()
    kept: list[list[Line]] = []
    for lines, page in zip(pages, edges, strict=True):
        repeated = {at: [key for key in keys if counted[key] >= _LEAST_PAGES] for at, keys in page.items()}
        again = {at for at, keys in repeated.items() if not seen.isdisjoint(keys)}
        seen.update(key for keys in repeated.values() for key in keys)
        kept.append([line for at, line in enumerate(lines) if at not in again] if again else lines)
    return kept


def _edges(lines: list[Line], page: int) -> Iterator[tuple[int, list[Key]]]:
    """(its place, what it may repeat as) of each line in the topmost and the lowest row, if apart from the others."""
    printed = [(at, line) for at, line in enumerate(lines) if line.text and not line.is_comment]
    if not printed:
        return
    for outermost, is_head in (
        (max((line for _, line in printed), key=lambda line: line.top), True),
        (min((line for _, line in printed), key=lambda line: line.bottom), False),
    ):
        middle = (outermost.bottom + outermost.top) / 2
        rest = [line.top if is_head else line.bottom for _, line in printed if not line.bottom <= middle <= line.top]
        if not rest:
            return
        gap = outermost.bottom - max(rest) if is_head else min(rest) - outermost.top
        if gap > _MARGIN * outermost.height:
            row = ((at, line) for at, line in printed if line.bottom <= middle <= line.top)
            yield from ((at, [(round(line.bottom), key) for key in _keys(line.text, page)]) for at, line in row)


def _keys(text: str, page: int) -> Iterator[str]:
    """The text itself, and with each number as its distance from the page's number."""
    yield text
    for number in islice(_NUMBER.finditer(text), _MOST_NUMBERS):
        yield f"{text[: number.start()]}{{{int(number[0]) - page}}}{text[number.end() :]}"
