"""What the display of answers has in common: a console that cannot be steered, tables, short texts."""

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from schemas.terminal import plain

SNIPPET_CHARACTERS = 240
MIB = 1024 * 1024
WIDEST = 1_000_000  # characters of a line

JSONObject = dict[str, Any]


class PlainConsole(Console):
    """A Console that shows control characters of any string as escapes, also in tables: text of documents and people
    cannot steer the terminal. rich adds its colours afterwards."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(plain(text), **options)


def plain_text(text: str, style: str = "") -> Text:
    """Text without markup, its control characters as escapes."""
    return Text(plain(text), style=style)


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = (), with_ids: bool = False
) -> None:
    """A table that fits the terminal; elsewhere, for programs, a line each. Columns of `numbers` stand on the right.
    The first one `with_ids` is not folded where there is room, so that they can be copied."""
    console = PlainConsole()
    if not console.is_terminal:
        console.width = WIDEST
    table = Table(box=None, pad_edge=False)
    widest = max((cell_len(plain(row[0])) for row in rows), default=0)
    for place, heading in enumerate(headings):
        is_whole = with_ids and place == 0 and widest <= console.width // 2
        side = "right" if heading in numbers else "left"
        table.add_column(plain_text(heading), justify=side, header_style="dim", overflow="fold", no_wrap=is_whole)  # type: ignore[arg-type]
    for row in rows:
        cells = row if console.is_terminal else [cell.replace("\n", "  ") for cell in row]
        table.add_row(*map(plain_text, cells))
    console.print(table, highlight=False)


def snippet(text: str) -> str:
    """One line of at most SNIPPET_CHARACTERS."""
    flat = " ".join(text.split())
    return flat if len(flat) <= SNIPPET_CHARACTERS else flat[: SNIPPET_CHARACTERS - 1].rstrip() + "…"
