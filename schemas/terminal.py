"""What goes to a terminal: text of documents and names may hold what a terminal obeys, so it is shown, not sent."""

import re
import sys

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1: one of these begins every escape sequence
    "\u202a-\u202e\u2066-\u2069"  # what turns the direction of all that follows (Unicode TR 9, 2.1 to 2.4)
    "\ud800-\udfff]"  # bytes of a file's name that are not UTF-8: printed, they fail, or are sent as they are
)


def plain(text: str) -> str:
    """The text with every character that a terminal would obey as an escape: `\\x1b`, `\\u202e`. Lines stay lines."""
    return _CONTROL_CHARACTERS.sub(_escaped, text.replace("\r\n", "\n"))


def plain_json(text: str) -> str:
    """JSON with the same values, in which no string holds a character that a terminal would obey."""
    return _CONTROL_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def say(text: str, *, error: bool = False) -> None:
    """A line on standard output, or on standard error, at once."""
    print(plain(text), file=sys.stderr if error else sys.stdout, flush=True)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
