"""Which of the places stay: those that are likely enough relevant, and say something new."""

from collections.abc import Sequence

from query_api.index.snapshot import PassageReader
from query_api.index.text.snapshot import TextSnapshot
from query_api.query.question import Question
from query_api.retrieval.fusion import Place
from query_api.retrieval.results.dedup import Said, without_duplicates
from query_api.retrieval.results.hits import best_child
from schemas.search import DUPLICATE_THRESHOLD, SearchRequest

FLOOR_PLACES = 64  # what a floor of confidence looks at: one channel's first candidates


def likely_enough(places: Sequence[Place], floor: float | None) -> list[Place]:
    """The places at or above the floor, and those that nothing can be told of."""
    if floor is None:
        return list(places)
    return [place for place in places if place.confidence is None or place.confidence >= floor]


def distinct(
    places: Sequence[Place], request: SearchRequest, question: Question, text: TextSnapshot, passages: PassageReader
) -> list[Place]:
    """The places without duplicates, by what their hits will show: a passage's text, or a chunk's. Blocks: for a
    thread. Raises TransientStoreError."""
    semantic = request.duplicates == "semantic"
    wanted = list(dict.fromkeys(place.passage_id for place in places))
    rows = passages.read(wanted)
    chunks = text.chunks_of_passages(wanted) if semantic or request.group == "chunk" else {}
    said: dict[int, Said] = {}
    for at, place in enumerate(places):
        row, of_passage = rows.get(place.passage_id), chunks.get(place.passage_id)
        if row is None:
            continue
        child = best_child(question, of_passage, place.chunk_id) if of_passage else None
        shown = child.text if child is not None and request.group == "chunk" else row.text
        said[at] = Said(row.key, shown, "" if child is None else child.id)
    vectors = text.vectors(list(dict.fromkeys(each.chunk_id for each in said.values()))) if semantic else {}
    threshold = (request.duplicate_threshold or DUPLICATE_THRESHOLD) if semantic else None
    return without_duplicates(places, said, vectors, threshold)
