"""The ZIP archive of an office file, checked before anything is unpacked, and its XML parts, parsed strictly."""

import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile, ZipInfo

from indexer.errors import UnparsableDocument
from indexer.parsing.registry import MAX_ARCHIVE_MEMBERS, MAX_UNPACKED_BYTES, MAX_UNPACKED_XML_BYTES, MIB
from indexer.parsing.xml import read_tree, unsafe_entities

MAX_UNPACKED_RATIO = 250  # of a member of a MiB or more; XML of long tables reaches about 100

_ENCRYPTED = 0x1  # general purpose bit 0 (APPNOTE.TXT 4.4.4)
_OUTSIDE = re.compile(r"\A[/\\]|\A[A-Za-z]:|(?:\A|[/\\])\.\.(?:[/\\]|\Z)|\0")
_XML = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx")
_DIRECTORY_ENTRY = b"PK\x01\x02"
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")  # ISO 29500 Strict; the same words as Transitional


class Archive:
    """The members of an archive by their names. Archives inside are never opened.

    The sizes it states can be relied on, as unpacking stops there. Raises UnparsableDocument: `malformed`, `too_large`,
    or `unsafe` for names that lead out of the archive or repeat. `what` is the format's name in messages.
    """

    def __init__(self, content: bytes, what: str) -> None:
        self._what = what
        if content.count(_DIRECTORY_ENTRY) > MAX_ARCHIVE_MEMBERS:
            raise UnparsableDocument("too_large", f"The {what} holds more than {MAX_ARCHIVE_MEMBERS:,} members.")
        try:
            self._zip = ZipFile(BytesIO(content))
        except (BadZipFile, NotImplementedError, ValueError, OSError) as error:
            raise self._damaged() from error
        members = self._zip.infolist()
        if any(member.flag_bits & _ENCRYPTED for member in members):
            raise UnparsableDocument("protected", f"The {what} is locked by a password; send it unlocked.")
        if any(_OUTSIDE.search(member.orig_filename) for member in members):  # `filename` is cut at a NUL
            raise UnparsableDocument("unsafe", f"The {what} holds a member whose name leads out of the archive.")
        self.names = [member.filename for member in members]
        if len(set(self.names)) < len(members):
            raise UnparsableDocument("unsafe", f"The {what} holds two members of the same name.")
        self._check_sizes(members)

    def require(self, folder: str, kind: str) -> None:
        """Raises UnparsableDocument (`media_type_mismatch`) where no member's name begins with `folder`."""
        if not any(name.startswith(folder) for name in self.names):
            raise UnparsableDocument(
                "media_type_mismatch",
                f"The content is a ZIP archive, but no {kind} is in it. Correct its media type.",
            )

    def read(self, name: str) -> bytes:
        """The content of a member; empty if there is none of this name."""
        if name not in self.names:
            return b""
        try:
            return self._zip.read(name)
        except (BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as error:
            raise self._damaged() from error

    def part(self, name: str) -> Any | None:
        """The root element of an XML part."""
        content = self.read(name)
        if not content:
            return None
        root = read_tree(_STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", content), what=self._what)
        if root.getroottree().docinfo.doctype:
            raise unsafe_entities(self._what)
        return root

    def parts(self) -> Iterator[tuple[str, Any]]:
        """(name, root element) of each XML part."""
        for name in self.names:
            if name.lower().endswith(_XML[:2]) and (root := self.part(name)) is not None:
                yield name, root

    def relations(self, name: str) -> dict[str, str]:
        """The parts to which a part refers, by the ids of the relations."""
        root = self.part(join(dirname(name), "_rels", f"{name.rpartition('/')[2]}.rels"))
        inside = (one for one in (root if root is not None else ()) if one.get("TargetMode") != "External")
        return {one.get("Id", ""): beside(name, one.get("Target", "")) for one in inside}

    def _check_sizes(self, members: list[ZipInfo]) -> None:
        unpacked = sum(member.file_size for member in members)
        if unpacked > MAX_UNPACKED_BYTES:
            raise UnparsableDocument(
                "too_large", f"The {self._what} unpacks to {unpacked:,} bytes; the limit is {MAX_UNPACKED_BYTES:,}."
            )
        xml = sum(member.file_size for member in members if member.filename.lower().endswith(_XML))
        if xml > MAX_UNPACKED_XML_BYTES:
            raise UnparsableDocument(
                "too_large",
                f"The XML in the {self._what} unpacks to {xml:,} bytes; the limit is {MAX_UNPACKED_XML_BYTES:,}.",
            )
        if any(one.file_size > max(MIB, MAX_UNPACKED_RATIO * max(one.compress_size, 1)) for one in members):
            raise UnparsableDocument(
                "too_large",
                f"A member of the {self._what} unpacks to more than {MAX_UNPACKED_RATIO} times its size: "
                "that is not text.",
            )

    def _damaged(self) -> UnparsableDocument:
        return UnparsableDocument("malformed", f"The content is not {self._what}: its ZIP archive is damaged.")


def beside(name: str, target: str) -> str:
    """The member that a target in the member `name` leads to."""
    path = unquote(target.partition("#")[0])
    return path[1:] if path.startswith("/") else normpath(join(dirname(name), path))
