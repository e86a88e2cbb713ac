"""Hits assembled: what stands at each place becomes what the caller sees, with one look at each store table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from query_api.query.question import Question
from query_api.retrieval.fusion import Place
from query_api.retrieval.results.paths import Trail
from query_api.retrieval.results.snippets import snippet_of
from schemas.hits import Hit, HitSource
from schemas.ids import DocumentKey

if TYPE_CHECKING:
    from indexer.read.rows import ChunkRow, PassageRow
    from indexer.schema import DocumentRow

UNLIKELY_BELOW = 0.01  # as are, among the first ten of 1,320 questions of nine sets, 103 of 1,922 answers, 23 % of hits


class Texts(NamedTuple):
    """What the hits of a page need from the stores."""

    passages: Mapping[str, "PassageRow"]
    chunks: Mapping[str, Sequence["ChunkRow"]]
    documents: Mapping[DocumentKey, "DocumentRow"]

    def of_chunks(self) -> dict[str, str]:
        """The text of every chunk read, by chunk id."""
        return {chunk.id: chunk.text for of_passage in self.chunks.values() for chunk in of_passage}


def best_child(question: Question, chunks: Sequence["ChunkRow"], wanted: str | None) -> "ChunkRow":
    """The wanted chunk where it is there, else the one that holds most of the question's words, the first of equals."""
    for chunk in chunks:
        if chunk.id == wanted:
            return chunk
    return max(chunks, key=lambda chunk: (len(question.stems_in(chunk.text)), -chunk.ordinal))


def hits_of(
    places: Sequence[Place],
    ranks: Sequence[int],
    texts: Texts,
    question: Question,
    idf: Mapping[int, float],
    trail: Trail | None,
    topic: str,
) -> Iterator[Hit]:
    """The hits at these places, each with its rank; `idf` are the weights of the question's terms, `topic` is where the
    documents came from.

    A place is left empty when the text stores do not hold its passage, which the graph may know a moment longer.
    """
    chunk_texts = texts.of_chunks() if trail else {}
    for rank, place in zip(ranks, places, strict=True):
        hit = _hit(place, rank, texts, question, idf, trail, chunk_texts, topic)
        if hit is not None:
            yield hit


def _hit(
    place: Place,
    rank: int,
    texts: Texts,
    question: Question,
    idf: Mapping[int, float],
    trail: Trail | None,
    chunk_texts: Mapping[str, str],
    topic: str,
) -> Hit | None:
    passage = texts.passages.get(place.passage_id)
    chunks = texts.chunks.get(place.passage_id)
    document = None if passage is None else texts.documents.get(passage.key)
    if passage is None or not chunks or document is None:
        return None
    child = best_child(question, chunks, place.chunk_id)
    shown = snippet_of(passage.text, child.start - passage.start, child.end - passage.start, idf)
    return Hit(
        rank=rank,
        chunk_id=child.id,
        passage_id=passage.id,
        document_id=document.key.document_id,
        collection=document.key.collection,
        title=document.title,
        text=passage.text[shown.start : shown.end],
        parent_text=passage.text,
        highlights=shown.highlights,
        answer=shown.answer,
        start=passage.start + shown.start,
        end=passage.start + shown.end,
        parent_start=passage.start,
        section=list(passage.section),
        uri=document.uri,
        score=place.score,
        scores=place.scores,
        ranks=place.ranks,
        confidence=place.confidence,
        unlikely=place.confidence is not None and place.confidence < UNLIKELY_BELOW,
        channels=list(place.ranks),
        duplicates=list(place.duplicates),
        source=HitSource(topic=topic, partition=document.partition, offset=document.offset, version=document.version),
        page=document.page_at(passage.start + shown.matched_at),
        metadata=document.own_metadata,
        path=[] if trail is None else trail.path(place.passage_id, chunk_texts.get, child.id),
    )
