"""Bytes to characters: byte order mark, then UTF-8, then the declared character set, then a detected one.

Labels of character sets mean what they mean to browsers (https://encoding.spec.whatwg.org/#names-and-labels): most of
what says iso-8859-1 is windows-1252.
"""

import codecs
import re
from collections.abc import Iterator

import webencodings

from indexer.errors import UnparsableDocument

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NAME = r"[A-Za-z0-9._:-]{1,40}"
_CHARSET = re.compile(rf"""\bcharset\s*=\s*["']?\s*({_NAME})""", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DECLARATION = re.compile(
    rf"""<(?:meta|\?xml)\s[^<>]*?(?<![\w-])(?:charset|encoding)\s*=\s*["']?\s*({_NAME})""", re.IGNORECASE
)
_META_BYTES = 4096
_WIDE = ("utf-16", "utf-32")
_ASCII_BYTES = (*_WIDE, "iso2022_", "hz")  # sets whose bytes may be valid UTF-8 of another meaning
_TEXT_CODECS = re.compile(
    r"ascii|utf-(8|16|32)(-[bl]e)?|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|shift_jis\w*|euc_\w+|gb\w+|big5\w*|iso2022_\w+|hz"
)
_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")

_MIN_EVIDENCE_BYTES = 80  # in lines that are not ASCII; with less, detection is a guess
_MAX_EVIDENCE_BYTES = 64 * 1024
_MAX_MESS = 0.15
_TIE_MESS = 0.02
_TIE_COHERENCE = 0.05
# Those of the WHATWG's encoding standard, the more frequent first (https://w3techs.com/technologies/overview/
# character_encoding). The order settles ties: a text of few accents reads nearly as well in cp1250 as in cp1252.
_DETECTABLE = (
    "cp1252", "cp1251", "gb18030", "shift_jis", "euc_jp", "euc_kr", "big5", "koi8_r", "cp1250", "iso8859_2",
    "iso8859_5", "cp1253", "iso8859_7", "cp1254", "cp1255", "cp1256", "cp1257", "cp874", "koi8_u",
)  # fmt: skip


def decode_text(content: bytes, content_type: str, *, declared_inside: bool = False) -> str:
    """The characters of a text document.

    `declared_inside` also looks for a `charset=` or `encoding=` in the first bytes, as HTML and XML have it. An unknown
    declared character set is ignored. Raises UnparsableDocument (`undecodable`) when no candidate fits, or when there
    is a NUL.
    """
    text = _characters(content, content_type, declared_inside=declared_inside)
    if "\0" in text:
        raise UnparsableDocument(
            "undecodable", "The content holds NUL characters: it is not text. Check its media type."
        )
    return text


def normalise(text: str) -> str:
    """Line ends as line feeds, control characters as blanks, no byte order marks."""
    return _CONTROLS.sub(" ", _LINE_ENDS.sub("\n", text)).replace("\ufeff", "")


def is_known_charset(name: str) -> bool:
    """Whether a `charset` parameter of this name is used rather than ignored."""
    return re.fullmatch(_NAME, name) is not None and _canonical(name) is not None


def is_charset_redundant(charset: str, content: bytes) -> bool:
    """Whether content decodes the same without this declaration: it has a byte order mark or is UTF-8."""
    if content.startswith(tuple(mark for mark, _ in _BYTE_ORDER_MARKS)):
        return True
    return not (_canonical(charset) or "").startswith(_ASCII_BYTES) and _decoded(content, "utf-8") is not None


def declared_charset(content: bytes) -> str | None:
    """The character set that the first bytes of HTML or XML declare."""
    match = _DECLARATION.search(_COMMENT.sub("", content[:_META_BYTES].decode("ascii", "replace")))
    if match is None:
        return None
    return "utf-8" if (_canonical(match[1]) or "").startswith(_WIDE) else match[1]  # as it could be read byte by byte


def detect_charset(content: bytes) -> str | None:
    """Python's name of the most likely character set, by charset-normalizer.

    None with too little evidence, and where the decoded words are of no known language.
    """
    from charset_normalizer import from_bytes  # its tables take a while to load; most documents are UTF-8

    evidence = _non_ascii_lines(content)
    if len(evidence) < _MIN_EVIDENCE_BYTES or b"\0" in evidence:
        return None
    matches = list(from_bytes(evidence, threshold=_MAX_MESS, cp_isolation=list(_DETECTABLE)))
    if not matches or matches[0].coherence <= 0:
        return None
    mess, coherence = matches[0].chaos + _TIE_MESS, matches[0].coherence - _TIE_COHERENCE
    likely = {
        name
        for match in matches
        if match.chaos <= mess and match.coherence >= coherence
        for name in match.could_be_from_charset
    }
    return next((name for name in _DETECTABLE if name in likely), None)


def _non_ascii_lines(content: bytes) -> bytes:
    lines: list[bytes] = []
    length = 0
    for line in content.split(b"\n"):
        if not line.isascii():
            lines.append(line)
            length += len(line)
        if length > _MAX_EVIDENCE_BYTES:
            break
    return b"\n".join(lines) if length <= 4 * _MAX_EVIDENCE_BYTES else b"\n".join(lines[:-1])


def _characters(content: bytes, content_type: str, *, declared_inside: bool) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            text = _decoded(content[len(mark) :], encoding)
            if text is None:
                raise UnparsableDocument(
                    "undecodable", f"The content begins with the mark of {encoding} but is not {encoding}."
                )
            return text.lstrip("\ufeff")
    declared = [match[1] for match in [_CHARSET.search(content_type)] if match]
    if declared_inside:
        declared += [name for name in [declared_charset(content)] if name]
    for encoding in _candidates(content, declared):
        text = _decoded(content, encoding)
        if text is not None:
            return text
    tried = f"nor {' or '.join(declared)}" if declared else "and no character set is declared"
    raise UnparsableDocument(
        "undecodable", f"The content is not UTF-8 {tried}. Send UTF-8, or name the charset in the content type."
    )


def _candidates(content: bytes, declared: list[str]) -> Iterator[str]:
    """Character sets to try, the most certain first."""
    names = [name for name in map(_canonical, declared) if name]
    yield from (name for name in names if name.startswith(_ASCII_BYTES))
    for first, encoding in ((0, "utf-16-le"), (1, "utf-16-be")):  # as text begins without a mark: in ASCII
        if content[1 - first : 4 : 2] == b"\0\0" and 0 not in content[first:4:2]:
            yield encoding
    yield "utf-8"
    yield from names
    if not names:
        detected = detect_charset(content)
        if detected:
            yield detected


def _canonical(name: str) -> str | None:
    """Python's name of a text codec; None for an unknown one. Labels that browsers do not know are Python's."""
    label = webencodings.lookup(name)
    try:
        known = label is not None and label.name != "replacement"
        canonical = label.codec_info.name if known else codecs.lookup(name).name
    except LookupError:
        return None
    canonical = "gb18030" if canonical == "gbk" else canonical  # which it decodes as on the web
    return canonical if _TEXT_CODECS.fullmatch(canonical) else None


def _decoded(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding, "c1" if encoding == "cp1252" else "strict")
    except UnicodeDecodeError:
        return None


def _as_control(error: UnicodeError) -> tuple[str, int]:
    """The five bytes that windows-1252 leaves open are control characters to browsers, and no reason to refuse."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("c1", _as_control)
