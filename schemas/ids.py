"""Identities, all computed: the same thing has the same id on every replay and in every store."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from html.entities import html5
from typing import NamedTuple, Self

from schemas.errors import MalformedEvent, MalformedToken
from schemas.letters import MARKS, plain_letters

MAX_COLLECTION_CHARACTERS = 128
MAX_DOCUMENT_ID_BYTES = 2048
DEFAULT_COLLECTION = "default"  # of documents that are sent without one
CANARY_COLLECTION = "thalweg.canary"  # of deletes of documents that do not exist, by which freshness is measured

WIKI = "wiki:"  # begins a link to the document of a name in whatever folder, as notes have them

COMPUTED_ID = re.compile(r"[0-9a-f]{32}")

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IN_MARKS = re.compile(r"""b?'[^']*'|"(?:[^"\\]|\\.)*"|\{\s*".*\}""")
_REFERENCE = re.compile(r"&(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});")
_BRACKETED = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_POSSESSIVE = re.compile(r"'[sS]\b")
_NOT_WORD = re.compile(rf"[^\w{MARKS}\s+#.&/-]+")
_PAGE_EXTENSION = re.compile(r"\.(?:mdx?|markdown|mdown|html?|xhtml|rst|rest|txt|text)$")
_PAGE_OF_FOLDER = ("index", "readme")
_EDGE_PUNCTUATION = " .-/&_"


class DocumentKey(NamedTuple):
    """The name of a document: the collection before the first slash of the record key, the id after it."""

    collection: str
    document_id: str

    @classmethod
    def checked(cls, collection: str, document_id: str) -> Self:
        """The key, or MalformedEvent with a sentence that says what is wrong with it."""
        if not collection or len(collection) > MAX_COLLECTION_CHARACTERS:
            raise MalformedEvent("bad_key", f"A collection has 1 to {MAX_COLLECTION_CHARACTERS} characters.")
        if "/" in collection:
            raise MalformedEvent(
                "bad_key", f"The collection {collection!r} holds a slash; a slash ends the collection."
            )
        if not document_id or len(document_id.encode("utf-8", "surrogatepass")) > MAX_DOCUMENT_ID_BYTES:
            raise MalformedEvent("bad_key", f"A document id has 1 to {MAX_DOCUMENT_ID_BYTES} bytes.")
        if collection[0] in "\"'b{" and _IN_MARKS.fullmatch(f"{collection}/{document_id}"):
            raise MalformedEvent(
                "bad_key",
                f"The key {f'{collection}/{document_id}'[:80]!r} was written by a serializer, with its marks. Write it "
                "as plain text, '<collection>/<document id>': with a string serializer rather than one for JSON.",
            )
        for name, value in (("collection", collection), ("document id", document_id)):
            if _CONTROL.search(value):
                raise MalformedEvent("bad_key", f"The {name} {value[:80]!r} holds a control character.")
        return cls(collection, document_id)

    @classmethod
    def parse(cls, key: str) -> Self:
        """Split `<collection>/<document id>`; the id keeps every further slash."""
        collection, slash, document_id = key.partition("/")
        if not slash:
            raise MalformedEvent("bad_key", f"The key {key[:80]!r} has no slash; write '<collection>/<document id>'.")
        return cls.checked(collection, document_id)

    @classmethod
    def of_record(cls, key: bytes | None) -> Self | None:
        """None for what names no document: its record is a dead letter."""
        try:
            return cls.parse((key or b"").decode())
        except ValueError:  # MalformedEvent, UnicodeDecodeError
            return None

    def __str__(self) -> str:
        return f"{self.collection}/{self.document_id}"

    def encoded(self) -> bytes:
        """The key of its records: halves of surrogate pairs, which JSON may hold, included."""
        return str(self).encode("utf-8", "surrogatepass")


def is_canary(key: str) -> bool:
    """Whether a record with this key measures freshness and is nobody's document: it belongs into no count or list."""
    return key.startswith(f"{CANARY_COLLECTION}/")


class Position(NamedTuple):
    """The position of a record in `documents.v1`; written `<partition>:<offset>`."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


def parse_positions(text: str) -> dict[int, int]:
    """Read `3:1042` or `0:17,3:1042` as {partition: offset}, the highest offset of each partition.

    Raises MalformedToken with the part that could not be read.
    """
    reached: dict[int, int] = {}
    for part in text.split(","):
        partition, colon, offset = part.strip().partition(":")
        if not (colon and partition.isascii() and partition.isdigit() and offset.isascii() and offset.isdigit()):
            raise MalformedToken(f"{part[:40]!r} is not '<partition>:<offset>'; a token looks like '0:17,3:1042'.")
        if len(partition) > 9 or len(offset) > 18:
            raise MalformedToken(f"{part[:40]!r} is out of range.")
        reached[int(partition)] = max(reached.get(int(partition), -1), int(offset))
    return reached


def format_positions(reached: Mapping[int, int]) -> str:
    """{partition: offset} as `0:17,3:1042`, in partition order."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(reached.items()))


def sha256_hex(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def id_key(identifier: str) -> int:
    """The first 64 bits of an id of 32 hex digits."""
    return int(identifier[:16], 16)


def digest(*parts: str) -> str:
    """32 hex digits (BLAKE2b, 128 bits) of the parts; no two lists of parts run together."""
    return hashlib.blake2b(_framed(parts), digest_size=16).hexdigest()


def _framed(parts: Iterable[str]) -> bytes:
    """Each part in UTF-8 after its length in 8 bytes."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join([piece for part in encoded for piece in (len(part).to_bytes(8, "big"), part)])


def passage_id(key: DocumentKey, headings: Sequence[str], text: str, occurrence: int) -> str:
    """`occurrence` numbers passages of one document with the same headings and text, from 0."""
    return digest("passage", *key, *headings, text, str(occurrence))


def chunk_id(key: DocumentKey, headings: Sequence[str], text: str, occurrence: int) -> str:
    """`occurrence` numbers chunks of one document with the same headings and text, from 0."""
    return digest("chunk", *key, *headings, text, str(occurrence))


def section_id(key: DocumentKey, headings: Sequence[str], occurrence: int) -> str:
    return digest("section", *key, *headings, str(occurrence))


def document_node_id(key: DocumentKey) -> str:
    return digest("document", *key)


def link_key(document_id: str) -> str:
    """The form under which links find documents: composed (NFC), in lower case, without a page's extension, closing
    slash and the name of a folder's page.

    `Guide/Intro.md`, `guide/intro.html`, `guide/intro/`, `guide/intro/index.html` and `guide/intro/README.md` are one.
    What is not a page, such as `logo.png`, keeps its extension.
    """
    composed = document_id if document_id.isascii() else unicodedata.normalize("NFC", document_id)
    stem = _PAGE_EXTENSION.sub("", composed.strip().strip("/").lower())
    folder, _, name = stem.rpartition("/")
    return folder if folder and name in _PAGE_OF_FOLDER else stem


def link_keys(document_id: str) -> tuple[str, str]:
    """The `link_key` of links to a document, and that of wiki links by its name alone."""
    return link_key(document_id), link_key(WIKI + document_id.rstrip("/").rpartition("/")[2])


def entity_id(collection: str, name: str) -> str:
    """`name` is a normalised name; an entity is shared by all documents of its collection."""
    return digest("entity", collection, name)


def entity_ids(collection: str, names: Iterable[str]) -> list[str]:
    """`entity_id` of many names, in a third of the time."""
    begun = hashlib.blake2b(_framed(("entity", collection)), digest_size=16)
    ids = []
    for name in names:
        encoded = name.encode("utf-8", "surrogatepass")
        digesting = begun.copy()
        digesting.update(len(encoded).to_bytes(8, "big") + encoded)  # as `_framed` has it
        ids.append(digesting.hexdigest())
    return ids


def hand_made_node_id(collection: str, name: str) -> str:
    """`name` is the id that people gave the node."""
    return digest("hand_made_node", collection, name)


def relation_id(collection: str, name: str) -> str:
    """`name` is the id that people gave the edge."""
    return digest("hand_made_edge", collection, name)


def reference_id(collection: str, name: str) -> str:
    """`name` is the end of a hand-made edge as written."""
    return digest("reference", collection, name)


def referenced_ids(collection: str, name: str) -> tuple[str, str, str, str]:
    """The ids of what the end of an edge in this collection may name, the first that is there is meant: a node, a chunk
    or an entity, a document by its key, and one by its id; "" for none."""
    within = name.removeprefix(f"{collection}/")
    return (
        hand_made_node_id(collection, name),
        name if COMPUTED_ID.fullmatch(name) else "",
        document_node_id(DocumentKey(collection, within)) if within != name else "",
        document_node_id(DocumentKey(collection, name)),
    )


def statement_id(chunk: str, predicate: str, roles: Sequence[tuple[str, str]], extractor: str) -> str:
    """`chunk` is the id of the chunk that states it; `roles` are (role, normalised entity name)."""
    flat = [part for role in roles for part in role]
    return digest("statement", chunk, predicate, extractor, *flat)


def _character(reference: re.Match[str]) -> str:
    """The characters of a character reference; one of an unknown name stays as it is."""
    known = reference[1].startswith("#") or f"{reference[1]};" in html5
    return unescape(reference[0]) if known else reference[0]


def normalise_name(name: str) -> str:
    """The name under which an entity is shared: in `plain_letters`, without possessives, brackets or odd punctuation;
    case folded; blanks collapsed. Empty when nothing is left.

    What is in brackets distinguishes things (`Mercury (planet)`), and stays. Character references that a
    producer left in a title are what they stand for: `Will &amp; Grace` is `will & grace`.
    """
    if "&" in name:
        name = _REFERENCE.sub(_character, name)
    plain = plain_letters(name)
    if "'" in plain:
        plain = _POSSESSIVE.sub("", plain)
    plain = _NOT_WORD.sub(" ", plain)
    return " ".join(plain.casefold().split()).strip(_EDGE_PUNCTUATION)


def bare_name(name: str) -> str:
    """The same without what is in brackets, unless that is all: what a text calls the thing with this title."""
    return (normalise_name(_BRACKETED.sub(" ", name)) if "(" in name or "[" in name else "") or normalise_name(name)
