"""The graph as flat columns: one row a node or an edge, nodes named by 64-bit keys. The form segments are built from.

A key is the first 64 bits of the node's computed id, so the same document, chunk or entity has the same key in every
segment, whichever arrived first. Two of n nodes share a key with probability n²/2⁶⁵: 3 in 10⁸ for a million.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from schemas.contributions import Contribution
from schemas.ids import DocumentKey, digest, document_node_id, entity_id, entity_ids, link_key

Keys = NDArray[np.uint64]

CHUNK_EDGE_KINDS = ("next_chunk", "similar_to", "related_to")


@dataclass(frozen=True)
class GraphColumns:
    """Nodes and edges as columns of equal length by prefix; strings are Arrow arrays.

    `chunk_ids` and `passage_ids` are (n, 2) uint64: the two halves of the 128-bit id; the first half is the key.
    `document_names` and `link_names` are keys too, of the names under which links find documents. `mention_sentences`
    are the first sentence numbers of the mentions, -1 for none. Chunk edges' kinds index CHUNK_EDGE_KINDS.
    """

    document_keys: Keys
    document_collections: pa.Array
    document_ids: pa.Array
    document_titles: pa.Array
    document_names: Keys

    chunk_ids: Keys
    chunk_documents: Keys
    chunk_passage_ids: Keys
    chunk_passages: NDArray[np.int32]
    chunk_ordinals: NDArray[np.int32]

    entity_keys: Keys
    entity_collections: pa.Array
    entity_names: pa.Array

    mention_chunks: Keys
    mention_entities: Keys
    mention_counts: NDArray[np.int32]
    mention_sentences: NDArray[np.int32]

    about_documents: Keys
    about_entities: Keys
    about_weights: NDArray[np.float32]
    about_surfaces: pa.Array

    statement_keys: Keys
    statement_chunks: Keys
    statement_predicates: pa.Array
    statement_confidences: NDArray[np.float32]
    statement_sentences: NDArray[np.int32]

    role_statements: Keys
    role_entities: Keys
    role_names: pa.Array

    edge_sources: Keys
    edge_targets: Keys
    edge_kinds: NDArray[np.uint8]
    edge_weights: NDArray[np.float32]

    link_chunks: Keys
    link_documents: Keys
    link_names: Keys
    link_weights: NDArray[np.float32]


def concatenated(parts: Sequence[GraphColumns]) -> GraphColumns:
    """The rows of all parts. An entity that several parts hold comes several times; building drops the copies."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Any] = {}
    for field in fields(GraphColumns):
        columns = [getattr(part, field.name) for part in parts]
        is_text = isinstance(columns[0], pa.Array)
        joined[field.name] = pa.concat_arrays(columns) if is_text else np.concatenate(columns)
    return GraphColumns(**joined)


def key_of(identifier: str) -> int:
    """The key of a node: the first 64 bits of its id of 32 hex digits. Raises ValueError for another id."""
    if len(identifier) != 32:
        raise ValueError(f"{identifier[:40]!r} is no node id: an id has 32 hex digits.")
    return int(identifier[:16], 16)


def document_key_of(key: DocumentKey) -> int:
    return key_of(document_node_id(key))


def link_name_of(key: DocumentKey) -> int:
    """The key of the name under which links find this document; pages that are named alike have the same one."""
    return key_of(digest("link name", key.collection, link_key(key.document_id)))


def entity_key_of(collection: str, name: str) -> int:
    """`name` is a normalised name."""
    return key_of(entity_id(collection, name))


def entity_keys_of(collection: str, names: Iterable[str]) -> list[int]:
    """`entity_key_of` of many names."""
    keys: list[int] = halves(list(entity_ids(collection, names)))[:, 0].tolist()
    return keys


def halves(identifiers: pa.Array | Sequence[str]) -> Keys:
    """(n, 2) uint64: both halves of ids of 32 hex digits. Raises ValueError for another id."""
    digits = _joined_text(identifiers) if isinstance(identifiers, pa.Array) else "".join(identifiers)
    if len(digits) != 32 * len(identifiers):
        raise ValueError("Every node id has 32 hex digits.")
    return np.frombuffer(bytes.fromhex(digits), dtype=">u8").astype(np.uint64).reshape(-1, 2)


def _joined_text(texts: pa.Array) -> str:
    """All strings of an array as one, straight from its memory."""
    if not len(texts):
        return ""
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    content: bytes = texts.buffers()[2].to_pybytes()
    return content[int(offsets[0]) : int(offsets[-1])].decode("ascii")


def columns_of(contributions: Iterable[Contribution]) -> GraphColumns:
    """The columns of documents' contributions, one contribution a document."""
    return _Rows().filled(contributions)


class _Rows:
    """Python lists that contributions are appended to, then turned into columns at once."""

    def __init__(self) -> None:
        self.rows: dict[str, list[object]] = {field.name: [] for field in fields(GraphColumns)}

    def filled(self, contributions: Iterable[Contribution]) -> GraphColumns:
        for contribution in contributions:
            self._add(contribution)
        columns: dict[str, Any] = {name: _column(name, values) for name, values in self.rows.items()}
        return GraphColumns(**columns)

    def _put(self, prefix: str, **values: object) -> None:
        for name, value in values.items():
            self.rows[f"{prefix}_{name}"].append(value)

    def _add(self, contribution: Contribution) -> None:
        document = DocumentKey(contribution.collection, contribution.document_id)
        document_key = document_key_of(document)
        self._put(
            "document",
            keys=document_key,
            collections=document.collection,
            ids=document.document_id,
            titles=contribution.title,
            names=link_name_of(document),
        )
        chunk_keys = [key_of(chunk.id) for chunk in contribution.chunks]
        for ordinal, chunk in enumerate(contribution.chunks):
            self._put(
                "chunk",
                ids=chunk.id,
                documents=document_key,
                passage_ids=chunk.passage_id,
                passages=chunk.passage,
                ordinals=ordinal,
            )
        entities: dict[str, int] = {}

        def entity(name: str) -> int:
            key = entities.get(name)
            if key is None:
                key = entities[name] = entity_key_of(document.collection, name)
                self._put("entity", keys=key, collections=document.collection, names=name)
            return key

        for about in contribution.about:
            self._put(
                "about",
                documents=document_key,
                entities=entity(about.name),
                weights=about.weight,
                surfaces=about.surface,
            )
        for mention in contribution.mentions:
            self._put(
                "mention",
                chunks=chunk_keys[mention.chunk],
                entities=entity(mention.name),
                counts=mention.count,
                sentences=mention.sentences[0] if mention.sentences else -1,
            )
        for statement in contribution.statements:
            statement_key = key_of(statement.id)
            self._put(
                "statement",
                keys=statement_key,
                chunks=chunk_keys[statement.chunk],
                predicates=statement.predicate,
                confidences=statement.confidence,
                sentences=statement.sentence,
            )
            for role in statement.roles:
                self._put("role", statements=statement_key, entities=entity(role.name), names=role.role)
        for edge in contribution.edges:
            self._put(
                "edge",
                sources=chunk_keys[edge.source],
                targets=chunk_keys[edge.target],
                kinds=CHUNK_EDGE_KINDS.index(edge.kind),
                weights=edge.weight,
            )
        for link in contribution.links:
            target = DocumentKey(link.target_collection, link.target_id)
            self._put(
                "link",
                chunks=chunk_keys[link.chunk],
                documents=document_key_of(target),
                names=link_name_of(target),
                weights=link.weight,
            )


_DTYPES: dict[str, type] = {
    "chunk_passages": np.int32,
    "chunk_ordinals": np.int32,
    "mention_counts": np.int32,
    "mention_sentences": np.int32,
    "statement_sentences": np.int32,
    "edge_kinds": np.uint8,
    "about_weights": np.float32,
    "statement_confidences": np.float32,
    "edge_weights": np.float32,
    "link_weights": np.float32,
}
_TEXTS = frozenset(field.name for field in fields(GraphColumns) if field.type is pa.Array)


def _column(name: str, values: list[object]) -> object:
    if name in _TEXTS:
        return pa.array(values, pa.string())
    if name in ("chunk_ids", "chunk_passage_ids"):
        return halves([str(value) for value in values])
    return np.array(values, dtype=_DTYPES.get(name, np.uint64))
