"""From bytes to characters: byte order mark, UTF-8, the character set that was declared, then the likeliest one."""

import codecs
import re
from collections.abc import Iterator

from indexer.errors import UnparsableDocument

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NAME = r"[A-Za-z0-9._:-]{1,40}"
_CHARSET = re.compile(rf"""(?:charset|encoding)\s*=\s*["']?({_NAME})""", re.IGNORECASE)
_META_BYTES = 4096
_WIDE = ("utf-16", "utf-32")
_KNOWN = re.compile(
    r"ascii|utf-(8|16|32)(-[bl]e)?|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|shift_jis\w*|euc_\w+|gb\w+|big5\w*|iso2022_\w+"
)
_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]")


def decode_text(content: bytes, content_type: str, *, declared_inside: bool = False, as_sent: bool = False) -> str:
    """The characters of a text document, lines ended by a line feed, control characters as blanks.

    `declared_inside` also looks for a `charset=` or `encoding=` in the first bytes of the content, as HTML and XML have
    it; `as_sent` leaves line ends and control characters alone, for formats in which they mean something. A declared
    character set that is unknown counts as none. Raises UnparsableDocument (`undecodable`) when no candidate fits, or
    when there is a NUL: that is not text.
    """
    text = _characters(content, content_type, declared_inside=declared_inside)
    if "\0" in text:
        raise UnparsableDocument(
            "undecodable", "The content holds NUL characters: it is not text. Check its media type."
        )
    return text if as_sent else clean(text)


def is_known_charset(name: str) -> bool:
    """Whether a content type may declare it: any other counts as none."""
    return re.fullmatch(_NAME, name) is not None and _canonical(name) is not None


def is_read_without(charset: str, content: bytes) -> bool:
    """Whether declaring this character set changes nothing: content with a mark, or UTF-8, which is tried before all
    but the wide ones."""
    if content.startswith(tuple(mark for mark, _ in _MARKS)):
        return True
    return not (_canonical(charset) or "").startswith(_WIDE) and _decoded(content, "utf-8") is not None


def declared_in(content: bytes) -> str | None:
    """The character set that the first bytes of HTML or XML declare."""
    match = _CHARSET.search(content[:_META_BYTES].decode("ascii", "replace"))
    return None if match is None else match[1]


def clean(text: str) -> str:
    """Line ends of one kind, control characters as blanks."""
    return _CONTROLS.sub(" ", _LINE_ENDS.sub("\n", text))


def _characters(content: bytes, content_type: str, *, declared_inside: bool) -> str:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            text = _decoded(content[len(mark) :], encoding)
            if text is None:
                raise UnparsableDocument(
                    "undecodable", f"The content begins with the mark of {encoding} but is not {encoding}."
                )
            return text
    declared = [match[1] for match in [_CHARSET.search(content_type)] if match]
    if declared_inside:
        declared += [name for name in [declared_in(content)] if name]
    for encoding in _candidates(content, declared):
        text = _decoded(content, encoding)
        if text is not None:
            return text
    said = f"nor {' or '.join(declared)}" if declared else "and no character set is declared"
    raise UnparsableDocument(
        "undecodable", f"The content is not UTF-8 {said}. Send UTF-8, or name the charset in the content type."
    )


def _candidates(content: bytes, declared: list[str]) -> Iterator[str]:
    """Character sets to try, the surest first."""
    names = [name for name in map(_canonical, declared) if name]
    yield from (name for name in names if name.startswith(_WIDE))
    yield "utf-8"
    yield from names
    if not names:
        from indexer.parsing.charsets import detect_charset  # its tables take a while; most documents are UTF-8

        detected = detect_charset(content)
        if detected:
            yield detected


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
