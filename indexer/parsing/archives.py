"""Whether a ZIP archive that holds a document can be unpacked safely, told from its directory beforehand."""

import re
from io import BytesIO
from zipfile import BadZipFile, ZipFile, ZipInfo

from indexer.errors import UnparsableDocument
from indexer.parsing.limits import (
    MAX_ARCHIVE_MEMBERS,
    MAX_UNPACKED_BYTES,
    MAX_UNPACKED_RATIO,
    MAX_UNPACKED_XML_BYTES,
    MIB,
)

_ENCRYPTED = 0x1  # general purpose bit 0 (APPNOTE.TXT 4.4.4)
_OUTSIDE = re.compile(r"\A[/\\]|\A[A-Za-z]:|(?:\A|[/\\])\.\.(?:[/\\]|\Z)|\0")
_XML = (".xml", ".rels")
_ENTRY = b"PK\x01\x02"


def open_archive(content: bytes, what: str) -> ZipFile:
    """The archive of a document of the kind `what`, with nothing unpacked yet.

    Its directory is believed: unpacking stops at the size it states. Raises UnparsableDocument: `malformed`,
    `too_large`, or `unsafe` for names that lead out of the archive or stand in it twice. Archives inside are no
    concern, as nothing opens them.
    """
    if content.count(_ENTRY) > MAX_ARCHIVE_MEMBERS:
        raise UnparsableDocument("too_large", f"The {what} holds more than {MAX_ARCHIVE_MEMBERS:,} members.")
    try:
        archive = ZipFile(BytesIO(content))
    except (BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise UnparsableDocument("malformed", f"The content is not {what}: its ZIP archive is damaged.") from error
    members = archive.infolist()
    _check_names(members, what)
    _check_sizes(members, what)
    return archive


def is_xml(member: ZipInfo) -> bool:
    return member.filename.lower().endswith(_XML)


def _check_names(members: list[ZipInfo], what: str) -> None:
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise UnparsableDocument("malformed", f"The {what} is locked by a password; send it unlocked.")
    # `orig_filename`: ZipFile cuts names at a NUL.
    if any(_OUTSIDE.search(member.orig_filename) for member in members):
        raise UnparsableDocument("unsafe", f"The {what} holds a member whose name leads out of the archive.")
    if len({member.filename for member in members}) < len(members):
        raise UnparsableDocument("unsafe", f"The {what} holds two members of the same name.")


def _check_sizes(members: list[ZipInfo], what: str) -> None:
    unpacked = sum(member.file_size for member in members)
    if unpacked > MAX_UNPACKED_BYTES:
        raise UnparsableDocument(
            "too_large", f"The {what} unpacks to {unpacked:,} bytes; the limit is {MAX_UNPACKED_BYTES:,}."
        )
    xml = sum(member.file_size for member in members if is_xml(member))
    if xml > MAX_UNPACKED_XML_BYTES:
        raise UnparsableDocument(
            "too_large", f"The XML in the {what} unpacks to {xml:,} bytes; the limit is {MAX_UNPACKED_XML_BYTES:,}."
        )
    for member in members:
        if member.file_size > MIB and member.file_size > MAX_UNPACKED_RATIO * max(member.compress_size, 1):
            raise UnparsableDocument(
                "too_large",
                f"A member of the {what} unpacks to more than {MAX_UNPACKED_RATIO} times its size: that is no text.",
            )
