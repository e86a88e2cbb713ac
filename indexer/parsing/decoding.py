"""From bytes to characters: byte order mark, UTF-8, then the character set that was declared."""

import codecs
import re

from indexer.errors import UnparsableDocument

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)
_META_BYTES = 4096
_KNOWN = re.compile(
    r"ascii|utf-(8|16|32)(-[bl]e)?|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|shift_jis\w*|euc_\w+|gb\w+|big5\w*|iso2022_\w+"
)
_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]")


def decode_text(content: bytes, content_type: str, *, declared_inside: bool = False) -> str:
    """The characters of a text document, lines ended by a line feed, control characters as blanks.

    `declared_inside` also looks for a `charset=` in the first bytes of the content, as HTML has it.
    Raises UnparsableDocument (`undecodable`) when no candidate fits, or when there is a NUL: that is not text.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            text = _decoded(content[len(mark) :], encoding)
            return _clean(text, encoding)
    declared = [match[1] for match in [_CHARSET.search(content_type)] if match]
    if declared_inside:
        beginning = content[:_META_BYTES].decode("ascii", "replace")
        declared += [match[1] for match in [_CHARSET.search(beginning)] if match]
    names = [_canonical(name) for name in declared]
    wide = [name for name in names if name and name.startswith(("utf-16", "utf-32"))]
    for encoding in [*wide, "utf-8", *(name for name in names if name)]:
        text = _decoded(content, encoding)
        if text is not None:
            return _clean(text, encoding)
    said = f"nor {' or '.join(declared)}" if declared else "and no character set is declared"
    raise UnparsableDocument(
        "undecodable", f"The content is not UTF-8 {said}. Send UTF-8, or name the charset in the content type."
    )


def _canonical(name: str) -> str | None:
    """Python's name of a character set for text; None for one that is unknown."""
    try:
        canonical = codecs.lookup(name).name
    except LookupError:
        return None
    return canonical if _KNOWN.fullmatch(canonical) else None


def _decoded(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return None


def _clean(text: str | None, encoding: str) -> str:
    if text is None:
        raise UnparsableDocument(
            "undecodable", f"The content begins with the mark of {encoding} but is not {encoding}."
        )
    if "\0" in text:
        raise UnparsableDocument(
            "undecodable", "The content holds NUL characters: it is not text. Check its media type."
        )
    return _CONTROLS.sub(" ", _LINE_ENDS.sub("\n", text))
