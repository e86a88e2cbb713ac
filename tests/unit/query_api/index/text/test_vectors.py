"""Vector search over segments: cosines, whatever history the segments have."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from query_api.index.text.text_segments import MAX_CACHED_SCOPES, Candidate, Scope, Segment, Segments
from query_api.index.text.vectors import BATCH_ROWS, MAX_RUNS, ChunkVectors, CosineSpread, Int8Vectors, VectorIndex
from schemas.ids import DocumentKey
from tests.unit.query_api.index.text.histories import COLLECTIONS, KEYS, State, Step, after, hash_of, steps

DIMENSION = 24


@cache
def vector(seed: int) -> NDArray[np.float32]:
    """(DIMENSION,) float32 of length 1; the same for the same seed."""
    made = np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)
    unit: NDArray[np.float32] = made / np.linalg.norm(made)
    return unit


def vector_of(terms: list[int]) -> NDArray[np.float32]:
    return vector(hash(tuple(terms)) % 1_000)


def segment(documents: State) -> Segment[ChunkVectors]:
    rows = [(key, identifier, terms) for key, held in documents.items() for identifier, terms in held]
    matrix = np.array([vector_of(terms) for _, _, terms in rows], dtype=np.float32).reshape(-1, DIMENSION)
    passages = np.array([f"passage of {identifier}" for _, identifier, _ in rows], dtype=np.object_)
    bounds = np.zeros((len(rows), 3), dtype=np.int32)
    return Segment.create(
        [row[1] for row in rows], [row[0] for row in rows], ChunkVectors.from_matrix(matrix, passages, bounds)
    )


def index(documents: State) -> VectorIndex:
    return VectorIndex(Segments[ChunkVectors]().with_segment(segment(documents)))


def followed(segments: Segments[ChunkVectors], step: Step) -> Segments[ChunkVectors]:
    return segments.without(step.moved).with_segment(segment({key: rows for key, rows in step.moved.items() if rows}))


def plain_search(state: State, query: NDArray[np.float32], limit: int, collection: str | None) -> list[Candidate]:
    """Every cosine in double precision, one at a time."""
    found = [
        Candidate(
            f"passage of {identifier}",
            float(np.dot(vector_of(terms).astype(np.float64), query.astype(np.float64) / np.linalg.norm(query))),
            key,
            identifier,
        )
        for key, rows in state.items()
        if collection in {None, key.collection}
        for identifier, terms in rows
    ]
    return sorted(found, key=lambda chunk: (-chunk.score, chunk.chunk_id))[:limit]


def test_cosines_by_hand() -> None:
    axes = np.eye(3, dtype=np.float32)
    keys = [DocumentKey("a", str(number)) for number in range(3)]
    passages = np.array(["p0", "p1", "p2"], dtype=np.object_)
    content = ChunkVectors.from_matrix(axes, passages, np.zeros((3, 3), dtype=np.int32))
    rows = VectorIndex(Segments[ChunkVectors]().with_segment(Segment.create(["0", "1", "2"], keys, content)))
    assert rows.search(np.array([3, 4, 0], dtype=np.float32), 2) == [
        Candidate("p1", 0.8, keys[1], "1"),
        Candidate("p0", 0.6, keys[0], "0"),
    ]
    assert [chunk.score for chunk in rows.search(np.array([0, 0, -2], dtype=np.float32), 9)] == [0.0, 0.0, -1.0]


def test_spread_is_that_of_the_collections_live_chunks() -> None:
    here = {DocumentKey("a", str(number)): [(f"a{number}", [number])] for number in range(600)}
    gone, elsewhere = DocumentKey("a", "gone"), DocumentKey("b", "other")
    segments = Segments[ChunkVectors]().with_segment(segment(here | {gone: [("g", [7])], elsewhere: [("b", [8])]}))
    rows, query = VectorIndex(segments.without([gone])), vector(1)
    cosines = [each.score for each in plain_search(here, query, 1_000, "a")]
    found = rows.cosine_spread(query, "a")
    assert found is not None
    assert found.mean == pytest.approx(np.mean(cosines), abs=0.02)
    assert found.deviation == pytest.approx(np.std(cosines), rel=0.1)
    assert found.texts == 300
    assert rows.cosine_spread(query, "b") == CosineSpread(
        pytest.approx(float(vector_of([8]) @ query), abs=1e-5), 0.0, 1
    )
    assert rows.cosine_spread(query, "none") is None


def test_spread_of_few_chunks_is_mostly_that_of_unrelated_texts() -> None:
    unrelated = CosineSpread(0.0, 0.1, 30)
    assert CosineSpread(0.5, 0.3, 10).beside(unrelated) == CosineSpread(pytest.approx(0.125), pytest.approx(0.15), 40)
    assert CosineSpread(0.5, 0.3, 30).beside(unrelated) == CosineSpread(pytest.approx(0.25), pytest.approx(0.2), 60)


def test_limits_and_queries_without_a_direction() -> None:
    rows = index({DocumentKey("a", "x"): [("1", [1]), ("2", [2]), ("3", [1])]})
    query = vector_of([1])
    assert [len(rows.search(query, limit)) for limit in (-1, 0, 1, 2, 1_000)] == [0, 0, 1, 2, 3]
    assert [chunk.chunk_id for chunk in rows.search(query, 1)] == ["1"]
    assert rows.search(np.zeros(DIMENSION, dtype=np.float32), 5) == []
    assert rows.search(np.full(DIMENSION, np.nan, dtype=np.float32), 5) == []
    assert rows.search(query, 5, Scope("b")) == VectorIndex(Segments()).search(query, 5) == []


def test_many_collections_are_searched_without_being_remembered_all() -> None:
    rows = index({DocumentKey(f"c{number}", "x"): [(f"{number}", [number])] for number in range(MAX_CACHED_SCOPES * 3)})
    for _ in range(2):
        for number in range(MAX_CACHED_SCOPES * 3):
            assert [chunk.chunk_id for chunk in rows.search(vector(1), 5, Scope(f"c{number}"))] == [str(number)]
    assert len(rows._scopes._cache) <= MAX_CACHED_SCOPES


@settings(deadline=None)
@given(steps(), st.integers(0, 20), st.integers(0, 6))
def test_any_history_finds_what_an_index_made_from_what_is_left_finds(
    history: list[Step], seed: int, limit: int
) -> None:
    segments, state = Segments[ChunkVectors](), State()
    states = [(segments, state)]
    for step in history:
        segments = segments.without(step.moved).with_segment(
            segment({key: rows for key, rows in step.moved.items() if rows})
        )
        state = after(state, step)
        states.append((segments, state))
    query = vector(seed)
    for segments, state in states:  # the old ones too, now that all newer ones are made
        for collection in (None, *COLLECTIONS, "none"):
            found = VectorIndex(segments).search(query, limit, Scope(collection))
            assert found == index(state).search(query, limit, Scope(collection))
            expected = plain_search(state, query, limit, collection)
            assert [chunk.score for chunk in found] == pytest.approx([chunk.score for chunk in expected], abs=6e-7)
            known = {chunk.chunk_id: chunk for chunk in plain_search(state, query, 1_000, collection)}
            assert all(chunk._replace(score=0) == known[chunk.chunk_id]._replace(score=0) for chunk in found)


def test_a_cosine_does_not_depend_on_where_its_row_lies() -> None:
    """Rows alone, a few, or thousands in a matrix: the same scores to the last digit, so the same order."""
    rows = {DocumentKey("a", str(number)): [(f"{number:04d}", [number])] for number in range(3_001)}
    together = index(rows)
    apart = Segments[ChunkVectors](
        tuple(
            segment(dict(list(rows.items())[start:end])) for start, end in ((0, 1), (1, 4), (4, 1_000), (1_000, 3_001))
        )
    )
    for seed in range(10):
        query = vector(seed)
        assert VectorIndex(apart).search(query, 3_001) == together.search(query, 3_001)


def passages_of(documents: dict[str, dict[str, list[int]]]) -> State:
    """{document: {chunk: what its vector is made of}}."""
    return {DocumentKey("a", name): list(chunks.items()) for name, chunks in documents.items()}


def test_a_passage_is_as_near_as_its_nearest_chunk() -> None:
    """Query (3, 4, 0) / 5: rows (1, 0, 0) and (0, 1, 0) of one passage, (0, 0, 1) of another."""
    passages = np.array(["p", "p", "q"], dtype=np.object_)
    keys = [DocumentKey("a", "d")] * 3
    made = ChunkVectors.from_matrix(np.eye(3, dtype=np.float32), passages, np.zeros((3, 3), dtype=np.int32))
    rows = VectorIndex(Segments[ChunkVectors]().with_segment(Segment.create(["0", "1", "2"], keys, made)))
    asked = np.array([3, 4, 0], dtype=np.float32)
    assert rows.cosines(asked, ["q", "p"]).tolist() == [0.0, 0.8]
    assert np.isnan(rows.cosines(asked, ["p", "unknown"])).tolist() == [False, True]
    assert rows.cosines(asked, []).shape == (0,)
    assert np.isnan(VectorIndex(Segments()).cosines(asked, ["p"])).all()


def test_a_passage_of_a_document_that_went_is_unknown_and_one_that_came_back_is_as_it_is_now() -> None:
    state = passages_of({f"d{number}": {f"{number}": [number]} for number in range(6)})
    segments = index(state).segments.without([DocumentKey("a", "d0")])
    assert len(segments[0].live) == 6, "its row is a tombstone"
    query = vector_of([0])
    gone, there = VectorIndex(segments).cosines(query, ["passage of 0", "passage of 1"])
    assert np.isnan(gone)
    assert not np.isnan(there)
    back = VectorIndex(segments.with_segment(segment({DocumentKey("a", "d0"): [("0", [5])]})))
    expected = round(float(vector_of([5]).astype(np.float64) @ query.astype(np.float64)), 6)
    assert back.cosines(query, ["passage of 0"]).tolist() == pytest.approx([expected], abs=2e-6)


@settings(deadline=None)
@given(steps(), st.integers(0, 20))
def test_any_history_compares_as_it_searches(history: list[Step], seed: int) -> None:
    segments = Segments[ChunkVectors]()
    for step in history:
        segments = segments.without(step.moved).with_segment(
            segment({key: rows for key, rows in step.moved.items() if rows})
        )
    rows, query = VectorIndex(segments), vector(seed)
    names = [f"passage of {hash_of(key, row)}" for key in KEYS for row in range(4)]  # all that ever were
    searched = {chunk.passage_id: chunk.score for chunk in rows.search(query, 1_000)}
    cosines = dict(zip(names, rows.cosines(query, names).tolist(), strict=True))
    assert {name: cosine for name, cosine in cosines.items() if not np.isnan(cosine)} == searched


@pytest.mark.parametrize("runs", [1, 7, MAX_RUNS // 2, MAX_RUNS // 2 + 1, 400])
def test_one_collection_among_several_is_searched_by_its_runs_of_rows_as_one_by_one(runs: int) -> None:
    """Its documents lie between those of another: in a few runs, or in more than are multiplied each by itself."""
    state = {
        DocumentKey(collection, str(run)): [(f"{run:03d}{collection}", [run, at])]
        for run in range(runs)
        for at, collection in enumerate(("a", "b"))
    }
    rows, query = index(state), vector(3)
    for collection in ("a", "b", None):
        found = rows.search(query, 25, Scope(collection))
        expected = plain_search(state, query, 25, collection)
        assert [chunk.chunk_id for chunk in found] == [chunk.chunk_id for chunk in expected]
        assert [chunk.score for chunk in found] == pytest.approx([chunk.score for chunk in expected], abs=6e-7)
    some = Scope("a").within([DocumentKey("a", str(run)) for run in range(0, runs, 3)])
    within = {key: held for key, held in state.items() if some.allows(key)}
    assert [chunk.chunk_id for chunk in rows.search(query, 25, some)] == [
        chunk.chunk_id for chunk in plain_search(within, query, 25, None)
    ]


def unit_rows(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 1e-6)


@given(arrays(np.float64, (9, 16), elements=st.floats(-1, 1)))
def test_a_product_is_max_error_no_more_than_is_told(matrix: NDArray[np.float64]) -> None:
    rows = unit_rows(matrix)
    asked = Int8Vectors.quantise(rows[:1])
    quantised = Int8Vectors.quantise(rows[1:].astype(np.float32))
    products = quantised.products(asked, 0, 8)
    assert np.abs(products - rows[1:] @ rows[0]).max() <= quantised.max_error(asked) + 1e-6


def test_parts_of_a_table_are_what_they_are_in_the_whole() -> None:
    rows = unit_rows(np.random.default_rng(0).standard_normal((BATCH_ROWS + 3, 8)))
    whole, asked = Int8Vectors.quantise(rows), Int8Vectors.quantise(rows[:1])
    joined = Int8Vectors.quantise(rows[:5]).concat(Int8Vectors.quantise(rows[5:]))
    assert np.array_equal(joined.rows, whole.rows)
    assert joined.error == whole.error
    assert np.array_equal(whole.products(asked, 2, 9), whole.products(asked, 0, len(rows))[2:9])
    wanted = np.arange(len(rows)) % 2 == 0
    assert np.array_equal(whole.filter(wanted).products(asked, 1, 3), whole.products(asked, 0, 5)[[2, 4]])


@pytest.mark.parametrize("rows", [np.zeros((0, 4)), np.zeros((2, 4))])
def test_nothing_and_zeros_lose_nothing(rows: NDArray[np.float64]) -> None:
    quantised = Int8Vectors.quantise(rows)
    assert quantised.error == 0.0
    assert quantised.products(Int8Vectors.quantise(np.eye(4)[:1]), 0, len(rows)).tolist() == [0.0] * len(rows)
