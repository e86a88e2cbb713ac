"""Raised and lowered characters in plain text: a number keeps its value, and a mark of a note stays one.

`10<sup>6</sup>` is `10^6`, `lake.<sup>2</sup>` is `lake.[2]`, `101<sub>2</sub>` is `101_2`; `1<sup>st</sup>` and
`H<sub>2</sub>O` are `1st` and `H2O`, as they are typed.
"""

import re

_POWER = re.compile(r"[-+−–]?(?:\d[\d.,]*|[ijkmnpqxyzNT])[-+−–]?|(?=.*\w)(?=.*[-+−–*/·×])[\w.,()*/·×+−–-]{2,20}")
_SIMPLE = re.compile(r"[-+−–]?\w[\w.,]*[-+−–]?")
_NOTE = re.compile(r"\w{1,4}(?:\s*[,;–-]\s*\w{1,4})*")
_FRACTION = ("/", "⁄")


def script_marks(before: str, text: str, after: str, *, is_raised: bool, is_note: bool = False) -> tuple[str, str]:
    """What is to be written before and behind a superscript or subscript.

    `before` is the character directly before it, empty where there is none, and `after` what follows;
    `is_note` where it is known to lead to a note.
    """
    text = "".join(text.split())
    apart = " " if text[-1:].isdigit() and after[:1].isdigit() else ""
    if not is_raised:
        return "_" if before.isdigit() and text[:1].isdigit() else "", apart
    if is_note:
        return ("[", "]") if _NOTE.fullmatch(text) else ("", "")
    if not before or not _POWER.fullmatch(text):
        return "", apart
    if text.isdigit() and after.startswith(_FRACTION):
        return " " if before.isdigit() else "", ""
    if before.isalnum() or before in ")]}|%°′'’":
        return ("^", apart) if _SIMPLE.fullmatch(text) else ("^(", ")")
    return "[", "]"
