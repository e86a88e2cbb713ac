"""Checks the first bytes of content against its media type.

Content of another kind is refused (`media_type_mismatch`), never parsed as something it was not sent as. Text formats
are not told apart: HTML, JSON or XML may well be meant as plain text or source code. Libraries for this (puremagic,
filetype) also know signatures of two letters, such as `BM` or `MZ`, with which ordinary text may begin.
"""

import re

from indexer.errors import UnparsableDocument
from indexer.parsing.registry import Format

# First bytes → kind; from the specifications listed at https://www.iana.org/assignments/media-types.
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
_SEND_AS = {
    "PDF": "application/pdf",
    "a ZIP archive (such as DOCX, XLSX or EPUB)": "its own media type",
    "HTML": "text/html",
    "XML": "application/xml",
}
_PDF_HEADER_BYTES = 1024  # readers accept the header anywhere in these (PDF 1.7, appendix H, note 13)
_HTML = re.compile(rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_XML = re.compile(rb"\s*<\?xml\b")
_HEAD_BYTES = 2048


def check_signature(content: bytes, declared: Format) -> None:
    """Raises UnparsableDocument (`media_type_mismatch`) when the bytes are not of the declared format."""
    head = content[:_HEAD_BYTES]
    binary = next((kind for signature, kind in _SIGNATURES if head.startswith(signature)), None)
    if declared.signature is None:
        if binary is not None:
            raise _mismatch(binary, declared)
    elif not head.startswith(declared.signature) and not (
        declared.name == "PDF" and declared.signature in head[:_PDF_HEADER_BYTES]
    ):
        markup = "HTML" if _HTML.match(head) else "XML" if _XML.match(head) else None
        raise _mismatch(binary or markup, declared)


def _mismatch(kind: str | None, declared: Format) -> UnparsableDocument:
    if kind is None:
        message = f"The content is not {declared.name}, as its media type says. Correct its media type."
    else:
        advice = f"Send it as {_SEND_AS[kind]}." if kind in _SEND_AS else "That cannot be read."
        message = f"The content is {kind}, not {declared.name} as its media type says. {advice}"
    return UnparsableDocument("media_type_mismatch", message)
