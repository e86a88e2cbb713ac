"""Facts of a document: what its header states of it, and what its sentences state in plain patterns."""

from collections.abc import Mapping
from typing import Any

from indexer.documents import ChunkedDocument, ParsedDocument, StatedFact
from indexer.extraction.metadata_statements import stated_fields
from indexer.extraction.positions import Places
from indexer.extraction.relations import stated_in_sentences
from indexer.extraction.series import series_of_document
from schemas.ids import DocumentKey


def extract_facts(
    title: str,
    parsed: ParsedDocument,
    chunked: ChunkedDocument,
    key: DocumentKey,
    metadata: Mapping[str, Any],
    *,
    places: Places | None = None,
) -> tuple[StatedFact, ...]:
    """Header facts first, anchored at chunk 0, then those of sentences, by chunk.

    The subject of header facts is the document's identifier (`PEP 8`) where it has one, else its title. A document
    without chunks states nothing.
    """
    if not chunked.chunks:
        return ()
    series = series_of_document(key, parsed.fields)
    subject = series.identifier if series else title
    header = stated_fields(subject, parsed.fields, metadata, series)
    return header + stated_in_sentences(parsed, places or Places.of(parsed, chunked))
