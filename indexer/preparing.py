"""What can be done with a document before the encoder: parse, chunk, extract. Runs in the limited child process."""

from typing import Any

import msgspec

from indexer.chunking import ChunkingParameters, chunk
from indexer.documents import Chunk, ParsedDocument, PreparedDocument, Section, said_in_title
from indexer.extracting import Places, about_names, document_title, extract_facts, extract_mentions, resolve_links
from indexer.parsing import parse, parse_title
from schemas.events import DocumentUpsert
from schemas.metadata import PAGE_STARTS

EXTRACTOR_VERSION = "rules-2"


class PreparationTask(msgspec.Struct, frozen=True):
    """What `prepare_bytes` takes, as MessagePack."""

    upsert: DocumentUpsert
    chunking: ChunkingParameters


def prepare(upsert: DocumentUpsert, chunking: ChunkingParameters) -> PreparedDocument:
    """Everything a document says, ready to be embedded and stored.

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
    chunked = chunk(upsert.key, parsed, chunking)
    # 3.
    places = Places.of(parsed, chunked)
    return PreparedDocument(
        key=upsert.key,
        revision=upsert.revision,
        title=title,
        uri=upsert.uri,
        content_type=upsert.content_type,
        metadata=_with_pages(upsert.metadata, parsed),
        chunked=chunked,
        embedding_texts=tuple(_embedding_text(title, chunked.sections[one.section], one) for one in chunked.chunks),
        about=about_names(upsert.title or parsed.title or title, parsed, upsert.key, upsert.metadata),
        mentions=extract_mentions(parsed, chunked, places),
        facts=extract_facts(title, parsed, chunked, upsert.key, upsert.metadata, places=places),
        links=resolve_links(upsert, parsed, chunked, places),
    )


def prepare_bytes(payload: bytes) -> bytes:
    """`prepare` for another process: a PreparationTask in, a PreparedDocument out. Raises UnparsableDocument."""
    task = _task_decoder.decode(payload)
    return _encoder.encode(prepare(task.upsert, task.chunking))


def encode_task(upsert: DocumentUpsert, chunking: ChunkingParameters) -> bytes:
    return _encoder.encode(PreparationTask(upsert, chunking))


def decode_prepared(result: bytes) -> PreparedDocument:
    """Raises msgspec.DecodeError (ValueError) for bytes that are no prepared document."""
    return _prepared_decoder.decode(result)


_encoder = msgspec.msgpack.Encoder()
_task_decoder = msgspec.msgpack.Decoder(PreparationTask)
_prepared_decoder = msgspec.msgpack.Decoder(PreparedDocument)


def _with_pages(metadata: dict[str, Any], parsed: ParsedDocument) -> dict[str, Any]:
    """The producer's metadata, and `page_starts` where the format has pages: `start` tells a chunk's page."""
    return {**metadata, PAGE_STARTS: list(parsed.page_starts)} if parsed.page_starts else metadata


def _embedding_text(title: str, section: Section, one: Chunk) -> str:
    """Title and own heading are carried to every chunk: `<title>. <heading>: <text>`. A title is not said twice."""
    if said_in_title(one.text, title):
        return title
    heading = section.headings[-1] if section.headings else ""
    if not heading or heading.casefold() == title.casefold() or heading.casefold() in title.casefold():
        return f"{title}. {one.text}"
    return f"{title}. {heading}: {one.text}"
