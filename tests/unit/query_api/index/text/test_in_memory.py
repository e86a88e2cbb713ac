"""Passages over segments: whatever history the segments have, a passage reads as it was stored."""

from typing import Any

import pyarrow as pa
from hypothesis import given, settings

from indexer.read.rows import PassageRow
from indexer.schema import PASSAGES_SCHEMA
from query_api.index.text.in_memory import PassageIndex, PassageTexts, chunks_of
from query_api.index.text.text_segments import EVERYTHING, Scope, Segment, Segments
from query_api.index.text.vectors import ChunkBounds
from schemas.ids import DocumentKey
from tests.unit.query_api.index.text.histories import KEYS, State, Step, after, steps

COLUMNS = ("ordinal", "section", "start", "end", "title", "text")
SCHEMA = pa.schema([PASSAGES_SCHEMA.field(name) for name in COLUMNS])
REVISIONS = {key: f"revision of {key}" for key in KEYS}


def stored(key: DocumentKey, identifier: str, terms: list[int]) -> dict[str, Any]:
    """A row as the table has it; its text and its headings tell it from all others."""
    text = f"{identifier} é {terms}"
    section = [f"heading {term}" for term in terms]
    return {
        "ordinal": len(terms),
        "section": section,
        "start": 5,
        "end": 5 + len(text),
        "title": str(key),
        "text": text,
    }


def segment(documents: State) -> Segment[PassageTexts]:
    rows = [(key, identifier, terms) for key, held in documents.items() for identifier, terms in held]
    table = pa.Table.from_pylist([stored(*row) for row in rows], schema=SCHEMA)
    keys = [row[0] for row in rows]
    return Segment.create([row[1] for row in rows], keys, PassageTexts.from_table(table, keys))


def followed(segments: Segments[PassageTexts], step: Step) -> Segments[PassageTexts]:
    return segments.without(step.moved).with_segment(segment({key: rows for key, rows in step.moved.items() if rows}))


@settings(max_examples=60)
@given(steps())
def test_after_any_history_each_passage_reads_as_it_was_stored(history: list[Step]) -> None:
    segments = Segments[PassageTexts]()
    state: State = {}
    ever = {identifier for step in history for rows in step.moved.values() for identifier, _ in rows}
    for step in history:
        segments, state = followed(segments, step), after(state, step)
        wanted = {
            identifier: PassageRow(id=identifier, key=key, revision=REVISIONS[key], **stored(key, identifier, terms))
            for key, rows in state.items()
            for identifier, terms in rows
        }
        assert PassageIndex(segments).passages([*ever, "unknown"], REVISIONS) == wanted


@settings(max_examples=60)
@given(steps())
def test_after_any_history_copies_are_those_of_the_same_text(history: list[Step]) -> None:
    segments = Segments[PassageTexts]()
    state: State = {}
    for step in history:
        alike = Step({key: [("row", terms[:1]) for _, terms in rows[:2]] for key, rows in step.moved.items()})
        segments, state = followed(segments, alike), after(state, alike)
        index = PassageIndex(segments)
        for key in KEYS:
            same = {other for other, rows in state.items() if rows == state.get(key)}
            assert index.copies(key, EVERYTHING) == same - {key}
            assert index.copies(key, Scope("a")) == {other for other in same - {key} if other.collection == "a"}


def test_texts_that_are_gone_take_no_memory() -> None:
    rows: State = {key: [(f"{key}", [1] * 50)] for key in KEYS}
    segments = Segments[PassageTexts]().with_segment(segment(rows))
    before = PassageIndex(segments).nbytes
    assert 0 < PassageIndex(segments.without(KEYS[:8])).nbytes < before / 2
    assert PassageIndex(segments.without(KEYS)).nbytes == 0


def test_chunks_are_the_parts_of_a_passage_that_their_bounds_tell() -> None:
    passage = PassageRow("p", KEYS[0], "r", 3, ["Rivers"], 100, 118, "The title", "One è. Two. Three.")
    found = chunks_of(
        passage, [ChunkBounds("c", 9, 112, 118), ChunkBounds("a", 7, 100, 106), ChunkBounds("b", 8, 104, 111)]
    )
    assert [(row.id, row.ordinal, row.text) for row in found] == [
        ("a", 7, "One è."),
        ("b", 8, "è. Two."),
        ("c", 9, "Three."),
    ]
    assert {(row.key, row.revision, row.passage_id, tuple(row.section)) for row in found} == {
        (KEYS[0], "r", "p", ("Rivers",))
    }
