"""Places that say what one before them says, by hand."""

import numpy as np
from numpy.typing import NDArray

from query_api.retrieval.fusion import RankedPassage
from query_api.retrieval.ranking import ShownText, deduplicate
from schemas.hits import DuplicateHit
from schemas.ids import DocumentKey


def places(*names: str) -> list[RankedPassage]:
    return [RankedPassage(name, None, 1.0, {}, {}, DocumentKey("c", name)) for name in names]


def said(*texts: str) -> dict[int, ShownText]:
    return {at: ShownText(DocumentKey("wiki", f"d{at}"), text, f"c{at}") for at, text in enumerate(texts)}


def vectors(*rows: tuple[float, float]) -> dict[str, NDArray[np.float32]]:
    return {f"c{at}": np.array(row, dtype=np.float32) for at, row in enumerate(rows)}


def test_texts_that_differ_by_blanks_and_case_are_the_same_and_the_first_tells_the_others() -> None:
    kept = deduplicate(places("a", "b", "c"), said("Some  words.", "other", "some words."), {}, None)
    assert [place.passage_id for place in kept] == ["a", "b"]
    assert kept[0].duplicates == (DuplicateHit(document_id="d2", collection="wiki", passage_id="c", similarity=1.0),)
    assert kept[1].duplicates == ()


def test_copies_are_duplicates_by_whichever_passage_they_were_found() -> None:
    copies = {"d0": ["d1", "d3"], "d2": []}
    kept = deduplicate(
        places("a", "b", "c", "d"),
        said("one", "two", "three", "two"),
        {},
        None,
        lambda key: [DocumentKey("wiki", each) for each in copies[key.document_id]],
    )
    assert [(place.passage_id, place.copies) for place in kept] == [("a", 2), ("c", 0)]
    assert [each.document_id for each in kept[0].duplicates] == ["d1", "d3"]


def test_chunks_are_alike_from_the_threshold_on_and_not_below_it() -> None:
    near = vectors((1.0, 0.0), (0.8, 0.6), (0.6, 0.8))  # cosines .8 and .6 with the first, .96 between the others
    texts = said("one", "two", "three")
    assert [place.passage_id for place in deduplicate(places("a", "b", "c"), texts, near, 0.95)] == ["a", "b"]
    assert len(deduplicate(places("a", "b", "c"), texts, near, 0.97)) == 3
    (only,) = deduplicate(places("a", "b", "c"), texts, near, 0.6)
    assert [(each.passage_id, each.similarity) for each in only.duplicates] == [("b", 0.8), ("c", 0.6)]


def test_vectors_count_only_where_a_threshold_is_given() -> None:
    assert len(deduplicate(places("a", "b"), said("one", "two"), vectors((1, 0), (1, 0)), None)) == 2


def test_a_place_of_which_nothing_is_known_stays() -> None:
    texts = said("same", "same", "same")
    del texts[1]
    assert [place.passage_id for place in deduplicate(places("a", "b", "c"), texts, {}, None)] == ["a", "b"]


def test_the_first_places_are_the_same_whatever_follows() -> None:
    generator = np.random.default_rng(7)
    rows = generator.normal(size=(200, 2))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    near = {f"c{at}": row.astype(np.float32) for at, row in enumerate(rows)}
    names = [f"p{at}" for at in range(200)]
    texts = said(*names)
    whole = [place.passage_id for place in deduplicate(places(*names), texts, near, 0.9999)]
    part = [place.passage_id for place in deduplicate(places(*names[:120]), texts, near, 0.9999)]
    assert 64 < len(part) < 120
    assert whole[: len(part)] == part
