"""The console of the commands: what documents and people wrote is shown on it, and cannot steer it."""

from typing import Any

from rich.console import Console
from rich.text import Text

from schemas.terminal import plain


class PlainConsole(Console):
    """A Console that shows control characters of whatever string it is given as escapes, in tables too.

    Colours are its own: rich adds them after the strings were read.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(plain(text), **options)
