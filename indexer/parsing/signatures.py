"""Whether content is what its media type says, by its first bytes.

One outcome: content whose bytes are of another kind than its media type is refused (`media_type_mismatch`), with the
media type to send it as where it can be read. It is never read as something else than was said. Text formats are not
told apart from each other, since HTML, JSON or XML may well be meant as plain text or source code.

A table of our own: libraries for this (puremagic, filetype) also know signatures of two or three letters, such as `BM`
or `MZ`, with which ordinary text may begin. Of these here, none is the beginning of a sentence.
"""

import re

from indexer.errors import UnparsableDocument
from indexer.parsing.registry import Format

# First bytes → what that is. https://www.iana.org/assignments/media-types, the formats' own specifications.
_SIGNATURES = (
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "a ZIP archive (such as DOCX, XLSX or EPUB)"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b\x08", "gzip-compressed data"),
    (b"BZh91AY&SY", "bzip2-compressed data"),
    (b"\xfd7zXZ\x00", "xz-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a file of old Microsoft Office (such as DOC or XLS)"),
    (b"{\\rtf1", "RTF"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\x00", "a SQLite database"),
)
_SENT_AS = {
    "PDF": "application/pdf",
    "a ZIP archive (such as DOCX, XLSX or EPUB)": "its own media type",
    "HTML": "text/html",
    "XML": "application/xml",
}
_OF_FORMAT = {"PDF": (b"%PDF-",), "DOCX": (b"PK\x03\x04",)}
_PDF_HEADER_BYTES = 1024  # readers accept the header anywhere in these (PDF 1.7, appendix H, note 13)
_HTML = re.compile(rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_XML = re.compile(rb"\s*<\?xml\b")
_HEAD_BYTES = 2048


def check_signature(content: bytes, said: Format) -> None:
    """Raises UnparsableDocument (`media_type_mismatch`) when the bytes are not of the format that was said."""
    head = content[:_HEAD_BYTES]
    binary = next((kind for signature, kind in _SIGNATURES if head.startswith(signature)), None)
    wanted = _OF_FORMAT.get(said.name)
    if wanted is None:
        if binary is not None:
            raise _mismatch(binary, said)
    elif not head.startswith(wanted) and not (said.name == "PDF" and b"%PDF-" in head[:_PDF_HEADER_BYTES]):
        raise _mismatch(binary or _kind_of_text(head), said)


def _kind_of_text(head: bytes) -> str | None:
    if _HTML.match(head):
        return "HTML"
    return "XML" if _XML.match(head) else None


def _mismatch(kind: str | None, said: Format) -> UnparsableDocument:
    if kind is None:
        return UnparsableDocument(
            "media_type_mismatch", f"The content is not {said.name}, as its media type says. Correct its media type."
        )
    sent_as = _SENT_AS.get(kind)
    advice = f"Send it as {sent_as}." if sent_as else "That cannot be read."
    return UnparsableDocument(
        "media_type_mismatch", f"The content is {kind}, not {said.name} as its media type says. {advice}"
    )
