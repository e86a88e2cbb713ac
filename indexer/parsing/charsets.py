"""Which character set content is most likely in that is not UTF-8 and declares none, by charset-normalizer."""

from charset_normalizer import from_bytes

_LEAST_EVIDENCE_BYTES = 80  # in lines that are not ASCII; below, it is guessing
_EVIDENCE_BYTES = 64 * 1024
_MOST_MESS = 0.15
_TIE_MESS = 0.02
_TIE_COHERENCE = 0.05
# Those of the WHATWG's encoding standard, the more frequent first (https://w3techs.com/technologies/overview/
# character_encoding). The order settles ties: a text of few accents reads nearly as well in cp1250 as in cp1252.
_KNOWN = (
    "cp1252", "cp1251", "gb18030", "shift_jis", "euc_jp", "euc_kr", "big5", "koi8_r", "cp1250", "iso8859_2",
    "iso8859_5", "cp1253", "iso8859_7", "cp1254", "cp1255", "cp1256", "cp1257", "cp874", "koi8_u",
)  # fmt: skip


def detect_charset(content: bytes) -> str | None:
    """Python's name of the character set; None when there is too little to go by or nothing makes words.

    Never a guess: text whose letters fit but whose words are of no language known is refused, such as Korean in euc_kr.
    """
    evidence = _evidence(content)
    if len(evidence) < _LEAST_EVIDENCE_BYTES or b"\0" in evidence:
        return None
    matches = list(from_bytes(evidence, threshold=_MOST_MESS, cp_isolation=list(_KNOWN)))
    if not matches or matches[0].coherence <= 0:
        return None
    mess, coherence = matches[0].chaos + _TIE_MESS, matches[0].coherence - _TIE_COHERENCE
    likely = {
        name
        for match in matches
        if match.chaos <= mess and match.coherence >= coherence
        for name in match.could_be_from_charset
    }
    return next((name for name in _KNOWN if name in likely), None)


def _evidence(content: bytes) -> bytes:
    """The first lines that are not ASCII, whole."""
    lines: list[bytes] = []
    length = 0
    for line in content.split(b"\n"):
        if not line.isascii():
            lines.append(line)
            length += len(line)
        if length > _EVIDENCE_BYTES:
            break
    return b"\n".join(lines) if length <= 4 * _EVIDENCE_BYTES else b"\n".join(lines[:-1])
