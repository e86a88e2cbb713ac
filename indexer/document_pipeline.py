"""The pipeline of a document before embedding: parse, chunk, extract. Runs in the sandboxed child process.

Semantic chunking needs vectors, and the child process has no encoder. So such a document is parsed twice: for its
sentences, and, once these are embedded and compared, to be prepared with the topic boundaries that were found.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from indexer.chunking.sentences import language_of
from indexer.chunking.splitter import ChunkingParameters, chunk, sentences_by_section
from indexer.documents import Chunk, ParsedDocument, PreparedDocument, Section, repeats_title
from indexer.extraction.entities import extract_mentions
from indexer.extraction.links import resolve_links
from indexer.extraction.metadata import merged_metadata
from indexer.extraction.offsets import OffsetIndex
from indexer.extraction.relations import extract_statements
from indexer.extraction.titles import about_names, document_title
from indexer.parsing import parse, parse_title
from schemas.events import DocumentUpsert
from schemas.graph_delta import DENIAL, HandMadeNode, Relation, encode_attributes
from schemas.graph_documents import read_made
from schemas.graph_edits import NodeEdit
from schemas.ids import sha256_hex
from schemas.limits import PAGE_STARTS, is_visible

EXTRACTOR_VERSION = "rules-11"
NO_EXTRACTOR = "none"  # the version of a collection's choice to have nothing extracted


def extractor_of(tagger: str | None) -> str:
    """The version of the rules, and of the tagger where there is one for the encoder."""
    return EXTRACTOR_VERSION if tagger is None else f"{EXTRACTOR_VERSION}+{tagger}"


MAX_METADATA_BYTES = 64 * 1024  # by default


class PreparationTask(msgspec.Struct, frozen=True):
    """The argument of `prepare_bytes`, as MessagePack."""

    upsert: DocumentUpsert
    chunking: ChunkingParameters
    revision: str | None = None
    boundaries: tuple[int, ...] = ()
    max_metadata_bytes: int = MAX_METADATA_BYTES
    extracts: bool = True
    output: Literal["document", "sentences"] = "document"


def revision_of(upsert: DocumentUpsert, chosen: ChunkingParameters | None, extractor: str | None = None) -> str:
    """The document's revision, which depends on the chunking and the version of the `extractor` that its collection
    has chosen, if any."""
    revision = upsert.revision
    if chosen is not None:
        revision = sha256_hex(msgspec.json.encode([revision, chosen], order="deterministic"))[:32]
    if extractor is not None:
        revision = sha256_hex(msgspec.json.encode([revision, extractor]))[:32]
    return revision


def prepare(
    upsert: DocumentUpsert,
    chunking: ChunkingParameters,
    revision: str | None = None,
    boundaries: Sequence[int] = (),
    max_metadata_bytes: int = MAX_METADATA_BYTES,
    *,
    extracts: bool = True,
) -> PreparedDocument:
    """Everything about a document that can be computed before embedding.

    `revision` defaults to the upsert's own; `boundaries` are numbers of sentences as in `sentences_of`. The document's
    own fields become metadata as far as `max_metadata_bytes` allows. Without `extracts` there are no mentions and no
    statements. Pure: equal arguments give equal results, on every machine. Raises UnparsableDocument.

    1. Parse the content into canonical text; without content the title is the text. A node that people made may have
       no text, and an edge has none: they have no passages then.
    2. Chunk it.
    3. Extract names, mentions, statements and links.
    """
    # 1.
    upsert, nodes, relations = _made(upsert)
    if upsert.title and upsert.is_title_only:
        parsed = parse_title(upsert.title)
    else:
        parsed = parse(upsert.content, upsert.content_type)
    title = document_title(upsert, parsed)
    # 2.
    language = _language(parsed, chunking)
    chunked = chunk(upsert.key, parsed, chunking, language=language, boundaries=boundaries)
    # 3.
    offsets = OffsetIndex.from_document(parsed, chunked, language)
    metadata = merged_metadata(upsert.metadata, parsed.fields, max_metadata_bytes)
    if parsed.page_starts:
        metadata[PAGE_STARTS] = list(parsed.page_starts)  # by which readers find a chunk's page
    for node in nodes:
        metadata = {"node": node.name, "node_type": node.type, **metadata}  # by which searches filter
    stated = extract_statements(title, parsed, chunked, upsert.key, upsert.metadata, offsets) if extracts else ()
    return PreparedDocument(
        key=upsert.key,
        revision=revision or upsert.revision,
        title=title,
        uri=upsert.uri,
        content_type=upsert.content_type,
        metadata=metadata,
        chunked=chunked,
        embedding_texts=tuple(_embedding_text(title, chunked.sections[one.section], one) for one in chunked.chunks),
        about=()
        if relations
        else about_names(upsert.title or parsed.title or title, parsed, upsert.key, upsert.metadata),
        mentions=extract_mentions(parsed, chunked, offsets) if extracts else (),
        statements=tuple(each for each in stated if each.extractor != DENIAL),
        links=resolve_links(upsert, parsed, chunked, offsets),
        notes=parsed.notes,
        sentence_starts=tuple(offsets.sentence_starts),
        verbatim=parsed.verbatim,
        nodes=nodes,
        relations=relations,
        denials=tuple(each for each in stated if each.extractor == DENIAL),
    )


def has_no_text(upsert: DocumentUpsert) -> bool:
    """Whether it is a node or an edge that people made, in which there is nothing to read."""
    made = read_made(upsert.key, upsert.content_type, upsert.content)
    return made is not None and not (isinstance(made.edit, NodeEdit) and is_visible(made.edit.text))


def sentences_of(upsert: DocumentUpsert, chunking: ChunkingParameters) -> list[list[str]]:
    """The sentences of each section, for semantic chunking. Pure. Raises UnparsableDocument."""
    parsed = parse(upsert.content, upsert.content_type)
    return sentences_by_section(parsed, chunking, _language(parsed, chunking))


def prepare_bytes(payload: bytes) -> bytes:
    """`prepare` or `sentences_of` for another process, from an encoded PreparationTask. Raises UnparsableDocument."""
    task = _task_decoder.decode(payload)
    if task.output == "sentences":
        return _encoder.encode(sentences_of(task.upsert, task.chunking))
    given = {name: getattr(task, name) for name in task.__struct_fields__ if name != "output"}
    return _encoder.encode(prepare(**given))


def encode_task(task: PreparationTask) -> bytes:
    return _encoder.encode(task)


def decode_sentences(result: bytes) -> list[list[str]]:
    """Raises msgspec.DecodeError (a ValueError)."""
    return _sentences_decoder.decode(result)


def decode_prepared(result: bytes) -> PreparedDocument:
    """Raises msgspec.DecodeError (a ValueError)."""
    return _prepared_decoder.decode(result)


_encoder = msgspec.msgpack.Encoder()
_task_decoder = msgspec.msgpack.Decoder(PreparationTask)
_sentences_decoder = msgspec.msgpack.Decoder(list[list[str]])
_prepared_decoder = msgspec.msgpack.Decoder(PreparedDocument)


def _made(upsert: DocumentUpsert) -> tuple[DocumentUpsert, tuple[HandMadeNode, ...], tuple[Relation, ...]]:
    """A document whose label is its title, and the node or edge that it is, if people made it so."""
    made = read_made(upsert.key, upsert.content_type, upsert.content)
    if made is None:
        return upsert, (), ()
    name, edit = made
    further: dict[str, object] = {"properties": edit.properties, "by": edit.by}
    if isinstance(edit, NodeEdit):
        node = HandMadeNode(name, edit.label, edit.type, list(edit.aliases), encode_attributes(further))
        return msgspec.structs.replace(upsert, title=None), (node,), ()
    attributes = encode_attributes(further | {"note": edit.note})
    relation = Relation(name, edit.source, edit.target, edit.predicate, edit.weight, attributes)
    return msgspec.structs.replace(upsert, title=None), (), (relation,)


def _language(parsed: ParsedDocument, chunking: ChunkingParameters) -> str:
    return language_of(parsed.text) if chunking.language == "auto" else chunking.language


def _embedding_text(title: str, section: Section, one: Chunk) -> str:
    """`<title>. <heading>: <text>`, without repeating the title."""
    if repeats_title(one.text, title):
        return title
    heading = section.headings[-1] if section.headings else ""
    if not heading or heading.casefold() == title.casefold() or heading.casefold() in title.casefold():
        return f"{title}. {one.text}"
    return f"{title}. {heading}: {one.text}"
