"""What can be done with a document before the encoder: parse, chunk, extract. Runs in the limited child process.

Semantic chunking needs vectors, and the child process has no encoder. So there a document is read twice: first for its
sentences, then, once they are embedded and compared, to be prepared with the turns that were found.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from indexer.chunking.languages import language_of
from indexer.chunking.splitter import ChunkingParameters, chunk, sentences_by_section
from indexer.documents import Chunk, ParsedDocument, PreparedDocument, Section, said_in_title
from indexer.extraction import (
    Places,
    about_names,
    document_title,
    extract_facts,
    extract_mentions,
    merged_metadata,
    resolve_links,
)
from indexer.parsing import parse, parse_title
from schemas.events import DocumentUpsert
from schemas.ids import sha256_hex
from schemas.limits import PAGE_STARTS

EXTRACTOR_VERSION = "rules-5"
MAX_METADATA_BYTES = 64 * 1024  # unless given


class PreparationTask(msgspec.Struct, frozen=True):
    """What `prepare_bytes` takes, as MessagePack."""

    upsert: DocumentUpsert
    chunking: ChunkingParameters
    revision: str | None = None
    turns: tuple[int, ...] = ()
    max_metadata_bytes: int = MAX_METADATA_BYTES
    wanted: Literal["document", "sentences"] = "document"


def revision_of(upsert: DocumentUpsert, chosen: ChunkingParameters | None) -> str:
    """The document's revision; where its collection has `chosen` how it is cut, that counts too."""
    if chosen is None:
        return upsert.revision
    return sha256_hex(msgspec.json.encode([upsert.revision, chosen], order="deterministic"))[:32]


def prepare(
    upsert: DocumentUpsert,
    chunking: ChunkingParameters,
    revision: str | None = None,
    turns: Sequence[int] = (),
    max_metadata_bytes: int = MAX_METADATA_BYTES,
) -> PreparedDocument:
    """Everything a document says, ready to be embedded and stored.

    `revision` is the upsert's own unless given; `turns` are those of the sentences that `sentences_of` gives. What the
    document states of itself is metadata as far as there is room within `max_metadata_bytes`.
    Pure: equal arguments give equal results, on every machine. Raises UnparsableDocument.

    1. Parse the content into canonical text; of a document without content the title is the text.
    2. Chunk it.
    3. Extract names, mentions, facts and links.
    """
    # 1.
    if upsert.title and upsert.is_title_only:
        parsed = parse_title(upsert.title)
    else:
        parsed = parse(upsert.content, upsert.content_type)
    title = document_title(upsert, parsed)
    # 2.
    language = _language(parsed, chunking)
    chunked = chunk(upsert.key, parsed, chunking, language=language, turns=turns)
    # 3.
    places = Places.of(parsed, chunked, language)
    return PreparedDocument(
        key=upsert.key,
        revision=revision or upsert.revision,
        title=title,
        uri=upsert.uri,
        content_type=upsert.content_type,
        metadata=_with_pages(merged_metadata(upsert.metadata, parsed.fields, max_metadata_bytes), parsed),
        chunked=chunked,
        embedding_texts=tuple(_embedding_text(title, chunked.sections[one.section], one) for one in chunked.chunks),
        about=about_names(upsert.title or parsed.title or title, parsed, upsert.key, upsert.metadata),
        mentions=extract_mentions(parsed, chunked, places),
        facts=extract_facts(title, parsed, chunked, upsert.key, upsert.metadata, places=places),
        links=resolve_links(upsert, parsed, chunked, places),
        notes=parsed.notes,
    )


def sentences_of(upsert: DocumentUpsert, chunking: ChunkingParameters) -> list[list[str]]:
    """The sentences of each section, as semantic chunking compares them. Pure. Raises UnparsableDocument."""
    parsed = parse(upsert.content, upsert.content_type)
    return sentences_by_section(parsed, chunking, _language(parsed, chunking))


def prepare_bytes(payload: bytes) -> bytes:
    """`prepare` or `sentences_of` for another process: a PreparationTask in, what it wants out.

    Raises UnparsableDocument.
    """
    task = _task_decoder.decode(payload)
    if task.wanted == "sentences":
        return _encoder.encode(sentences_of(task.upsert, task.chunking))
    return _encoder.encode(prepare(task.upsert, task.chunking, task.revision, task.turns, task.max_metadata_bytes))


def encode_task(
    upsert: DocumentUpsert,
    chunking: ChunkingParameters,
    revision: str | None = None,
    turns: Sequence[int] = (),
    max_metadata_bytes: int = MAX_METADATA_BYTES,
) -> bytes:
    return _encoder.encode(PreparationTask(upsert, chunking, revision, tuple(turns), max_metadata_bytes))


def encode_sentences_task(upsert: DocumentUpsert, chunking: ChunkingParameters) -> bytes:
    return _encoder.encode(PreparationTask(upsert, chunking, wanted="sentences"))


def decode_sentences(result: bytes) -> list[list[str]]:
    """Raises msgspec.DecodeError (ValueError) for bytes that are no lists of sentences."""
    return _sentences_decoder.decode(result)


def decode_prepared(result: bytes) -> PreparedDocument:
    """Raises msgspec.DecodeError (ValueError) for bytes that are no prepared document."""
    return _prepared_decoder.decode(result)


_encoder = msgspec.msgpack.Encoder()
_task_decoder = msgspec.msgpack.Decoder(PreparationTask)
_sentences_decoder = msgspec.msgpack.Decoder(list[list[str]])
_prepared_decoder = msgspec.msgpack.Decoder(PreparedDocument)


def _language(parsed: ParsedDocument, chunking: ChunkingParameters) -> str:
    return language_of(parsed.text) if chunking.language == "auto" else chunking.language


def _with_pages(metadata: dict[str, Any], parsed: ParsedDocument) -> dict[str, Any]:
    """The metadata, and `page_starts` where the format has pages: `start` tells a chunk's page."""
    return {**metadata, PAGE_STARTS: list(parsed.page_starts)} if parsed.page_starts else metadata


def _embedding_text(title: str, section: Section, one: Chunk) -> str:
    """Title and own heading are carried to every chunk: `<title>. <heading>: <text>`. A title is not said twice."""
    if said_in_title(one.text, title):
        return title
    heading = section.headings[-1] if section.headings else ""
    if not heading or heading.casefold() == title.casefold() or heading.casefold() in title.casefold():
        return f"{title}. {one.text}"
    return f"{title}. {heading}: {one.text}"
