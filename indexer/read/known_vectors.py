"""Stored vectors and entities by the hash of their text, so that no text is encoded twice: in this generation, or an
earlier one."""

from collections.abc import Callable, Sequence

import structlog
from lancedb.expr import col
from lancedb.table import Table

from indexer.embedding.encoder import EncodedText
from indexer.errors import DamagedStore, TransientStoreError
from indexer.generation_folders import Generation, Manifest
from indexer.integrity.row_checksums import CHECKED_COLUMNS, checkable, require_intact
from indexer.lance_connection import checkout_latest, connect, open_table, read_errors, store_errors
from indexer.read.rows import IN_LIST, vector_matrix
from indexer.schema import CHUNKS

VECTOR_COLUMNS = list(CHECKED_COLUMNS[CHUNKS]["vector_checksum"])
_ENTITIES = "entities"

EncodedTexts = dict[str, EncodedText]


def encoded_by_hash(chunks: Table, hashes: Sequence[str]) -> EncodedTexts:
    """What is stored of texts, of any revision, by the hash of the embedded text.

    Raises TransientStoreError, and DamagedStore for what is not as it was written.
    """
    found: EncodedTexts = {}
    columns = checkable(CHUNKS, [*VECTOR_COLUMNS, _ENTITIES])
    with read_errors(CHUNKS):
        unique = list(dict.fromkeys(hashes))
        for start in range(0, len(unique), IN_LIST):
            condition = col("content_hash").isin(unique[start : start + IN_LIST])
            rows = chunks.search().where(condition).select(["content_hash"]).with_row_id(True).to_arrow()
            row_of = dict(zip(rows["content_hash"].to_pylist(), rows["_rowid"].to_pylist(), strict=True))
            if row_of:
                taken = chunks.take_row_ids(list(row_of.values())).select(columns).to_arrow()
                require_intact(CHUNKS, taken)
                encoded = map(EncodedText, vector_matrix(taken), taken[_ENTITIES].to_pylist())
                found |= zip(taken["content_hash"].to_pylist(), encoded, strict=True)
    return found


class EarlierVectors:
    """The vectors of an earlier generation by the same model. What cannot be read there is encoded again."""

    def __init__(
        self, generation: Generation, own: Callable[[Sequence[str]], EncodedTexts], *, with_entities: bool
    ) -> None:
        """`own` looks up what is in the generation that is being built; `with_entities` where both have one tagger."""
        self._generation = generation
        self._own = own
        self._with_entities = with_entities
        self._chunks: Table | None = None
        self._log = structlog.get_logger("thalweg.worker")

    def known_vectors(self, hashes: Sequence[str]) -> EncodedTexts:
        found = self._own(hashes)
        missing = [digest for digest in hashes if digest not in found]
        return found | self._earlier(missing) if missing else found

    def _earlier(self, hashes: Sequence[str]) -> EncodedTexts:
        try:
            if self._chunks is None:
                with store_errors(f"open the tables in {self._generation.lance_dir}"):
                    self._chunks = open_table(connect(self._generation.lance_dir), CHUNKS)
            checkout_latest(self._chunks)
            found = encoded_by_hash(self._chunks, hashes)
        except (TransientStoreError, DamagedStore, ValueError, OSError) as error:
            self._log.warning(
                "vectors of the earlier generation cannot be read; the texts are encoded again",
                generation=self._generation.name,
                texts=len(hashes),
                error=str(error)[:200],
            )
            self._chunks = None
            return {}
        return found if self._with_entities else {digest: EncodedText(each.vector) for digest, each in found.items()}


def same_vectors(earlier: Manifest, new: Manifest) -> bool:
    """Whether a text has the same vector in both generations."""
    return (earlier.embedding_digest, earlier.dimension) == (new.embedding_digest, new.dimension)


def same_tagger(earlier: Manifest, new: Manifest) -> bool:
    """Whether the same entities are tagged in a text in both generations."""
    return earlier.extractor.partition("+")[2] == new.extractor.partition("+")[2]
