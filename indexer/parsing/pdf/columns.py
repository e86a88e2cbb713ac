"""Columns whose lines were drawn across the page, as some programs print them: read one after the other.

A gutter is a strip between columns that no line of consecutive rows crosses. Only running text is read by columns: a
table has gutters too, and is read by its rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from indexer.parsing.pdf.characters import Line, PageText

_GAP = 0.7  # of a line's height, between two words: wider than most blanks, also in justified lines
_GUTTER = 0.5  # of a line's height: the least width that must be left
_BULLET = 3.0  # of a line's height
_SAMPLED_LINES = 6
_LINES_BY_WORDS = 2
_ROWS = 3  # the fewest
_FULL = 0.6  # of a column's width, the mean of its lines; cells of tables differ more
_CHARACTERS = 12  # of a line in a column, the mean
_CONTINUED = 0.25  # of the lines begin in lower case, as a sentence continues; cells of tables begin in upper case
_TIGHT = 0.5  # of a line's height, between two rows of a paragraph


@dataclass(frozen=True, slots=True)
class _Row:
    """Lines side by side as PDFium has them, and their pieces between wide gaps."""

    lines: list[Line]
    pieces: list[Line]


def in_columns(text: PageText, lines: list[Line]) -> list[Line]:
    """The lines, with those that run across columns cut and put in order."""
    sampled = lines[:: max(1, len(lines) // _SAMPLED_LINES)]
    gaps = sum(1 for line in sampled if _has_gap(line, text.gaps(line, _GAP * line.height)))
    gaps += sum(1 for line, following in pairwise(lines) if following.left > line.right and line.is_beside(following))
    if gaps > 1:
        return list(_read(_rows(text, lines)))
    middle = lines[len(lines) // 2 :][:_LINES_BY_WORDS]  # columns may be drawn in one go
    if sum(1 for line in middle if _has_gap(line, text.gaps(line, _GAP * line.height, by_words=True))) > 1:
        return list(_read(_rows(text, lines, by_words=True)))
    return lines


def _has_gap(line: Line, gaps: list[float]) -> bool:
    """Whether one is further from the line's start than that behind a bullet or a number."""
    return any(gap - line.left > _BULLET * line.height for gap in gaps)


def _rows(text: PageText, lines: list[Line], *, by_words: bool = False) -> list[_Row]:
    rows: list[_Row] = []
    for line in lines:
        pieces = text.pieces(line, text.gaps(line, _GAP * line.height, by_words=by_words))
        if rows and line.left > rows[-1].pieces[-1].right and line.is_beside(rows[-1].pieces[-1]):
            rows[-1].lines.append(line)
            rows[-1].pieces.extend(pieces)
        elif pieces:
            rows.append(_Row([line], pieces))
    return rows


def _read(rows: list[_Row]) -> Iterator[Line]:
    band: list[_Row] = []
    gutter = (0.0, 0.0)
    for row in rows:
        shared = _shared(gutter, row) if band else None
        if shared is None:
            yield from _by_columns(band, gutter)
            band, shared = [], _widest_gap(row)
        band.append(row)
        gutter = shared
    yield from _by_columns(band, gutter)


def _widest_gap(row: _Row) -> tuple[float, float]:
    gaps = [(before.right, piece.left) for before, piece in pairwise(row.pieces)]
    return max(gaps, key=lambda gap: gap[1] - gap[0], default=(0.0, 0.0))


def _shared(gutter: tuple[float, float], row: _Row) -> tuple[float, float] | None:
    """What a row leaves of a gutter; None if it crosses it."""
    left, right = gutter
    for piece in row.pieces:
        if piece.left < left:
            left = max(left, piece.right)
        else:
            right = min(right, piece.left)
    return (left, right) if right - left >= _GUTTER * row.pieces[0].height else None


def _by_columns(band: list[_Row], gutter: tuple[float, float]) -> Iterator[Line]:
    left = ([piece for piece in row.pieces if piece.left < gutter[0]] for row in band)
    right = ([piece for piece in row.pieces if piece.left >= gutter[0]] for row in band)
    first, second = ([_Row(pieces, pieces) for pieces in column if pieces] for column in (left, right))
    if min(len(first), len(second)) >= _ROWS and _is_prose(first) and _is_prose(second):
        yield from _read(first)
        yield from _read(second)
    else:
        for row in band:
            yield from row.lines


def _is_prose(column: list[_Row]) -> bool:
    """Whether the rows fill the column, are close together, and continue each other."""
    widths = [row.pieces[-1].right - row.pieces[0].left for row in column]
    texts = [" ".join(piece.text for piece in row.pieces) for row in column]
    gaps = [before.pieces[0].bottom - row.pieces[0].top for before, row in pairwise(column)]
    height = column[0].pieces[0].height
    cased = [text[0] for text in texts if not text[0].isalpha() or text[0].lower() != text[0].upper()]
    return (
        sum(widths) >= _FULL * len(widths) * max(widths)
        and sum(map(len, texts)) >= _CHARACTERS * len(texts)
        and 2 * sum(1 for gap in gaps if gap < _TIGHT * height) >= len(gaps)
        and sum(1 for initial in cased if initial.islower()) >= _CONTINUED * len(cased)
    )
