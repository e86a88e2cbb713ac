"""What a build takes over from the live generation, and how the two compare."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from indexer.generation_comparison import EarlierOutcomes, compare_generations
from indexer.generation_folders import Generation
from indexer.read.known_vectors import EarlierVectors
from indexer.schema import StoredPosition
from indexer.write.lance_rows import IndexedRows
from indexer.write.lance_writer import LanceWriter
from tests.support.fixtures.text_rows import DIMENSION, document, tombstone


class Filled:
    """A generation with documents up to an offset of partition 0."""

    def __init__(self, data_dir: Path, name: str) -> None:
        self.generation = Generation(data_dir, name)
        self.writer = LanceWriter.open(self.generation, DIMENSION)

    def fill(self, documents: Sequence[IndexedRows], reached: int) -> None:
        self.writer.replace(documents)
        self.writer.store_positions({0: StoredPosition(reached, reached, 0)})


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Filled]:
    made = Filled(tmp_path, "g0001-aaaaaa")
    yield made
    made.writer.close()


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Filled]:
    made = Filled(tmp_path, "g0002-bbbbbb")
    yield made
    made.writer.close()


def test_vectors_of_both_generations_are_found_by_their_text(live: Filled, build: Filled) -> None:
    old = replace(document("a", "A text of before"), spans=[b"\x90"])
    new = replace(document("b", "A text of now"), spans=[b"\x91\x92"])
    live.fill([old], 0)
    build.fill([new], 1)
    vectors = EarlierVectors(live.generation, build.writer.known_vectors, with_entities=True)
    found = vectors.known_vectors([*old.hashes, *new.hashes, "0" * 32])
    assert found.keys() == {*old.hashes, *new.hashes}
    np.testing.assert_array_equal(found[old.hashes[0]].vector, old.vectors[0])
    assert [found[each.hashes[0]].spans for each in (old, new)] == [b"\x90", b"\x91\x92"]
    of_another_tagger = EarlierVectors(live.generation, build.writer.known_vectors, with_entities=False)
    found = of_another_tagger.known_vectors([*old.hashes, *new.hashes])
    assert [found[each.hashes[0]].spans for each in (old, new)] == [None, b"\x91\x92"]
    later = document("c", "A text that came meanwhile", offset=2)
    live.fill([later], 2)
    assert vectors.known_vectors(later.hashes).keys() == set(later.hashes)


def test_missing_earlier_generation_gives_no_vectors(tmp_path: Path, build: Filled) -> None:
    new = document("b", "A text of now")
    build.fill([new], 1)
    gone = EarlierVectors(Generation(tmp_path, "g0000-cccccc"), build.writer.known_vectors, with_entities=True)
    assert gone.known_vectors([*new.hashes, "0" * 32]).keys() == set(new.hashes)


@pytest.mark.parametrize(
    ("before", "after", "missing", "unexpected"),
    [
        ([document("a", "x", offset=3)], [document("a", "x", offset=3)], (), ()),
        ([document("a", "x", offset=3)], [], ("default/a",), ()),
        ([], [document("a", "x", offset=3)], (), ("default/a",)),
        ([document("a", "x", offset=3)], [tombstone("a", offset=4)], ("default/a",), ()),
        ([document("a", "x", offset=3)], [tombstone("a", offset=8)], (), ()),
        ([document("a", "x", offset=9)], [], (), ()),
    ],
    ids=["same", "missing", "unexpected", "deleted wrongly", "deleted later", "not yet read"],
)
def test_documents_are_compared_as_far_as_both_have_read(
    live: Filled,
    build: Filled,
    before: list[IndexedRows],
    after: list[IndexedRows],
    missing: tuple[str, ...],
    unexpected: tuple[str, ...],
) -> None:
    live.fill(before, 5 if not before or before[0].row.offset < 9 else 9)
    build.fill(after, 5 if not after or after[0].row.offset < 8 else 8)
    compared = compare_generations(live.generation, build.generation)
    assert (compared.missing, compared.unexpected) == (missing, unexpected)
    assert compared.same_documents == (not missing and not unexpected)
    assert compared.earlier.documents == len(before)


def test_questions_of_shared_documents_are_compared(live: Filled, build: Filled) -> None:
    documents = [document(f"d{number}", f"Text number {number}", offset=number) for number in range(30)]
    live.fill(documents, 30)
    build.fill(documents, 30)
    asked = compare_generations(live.generation, build.generation).questions
    assert asked is not None
    assert (asked.questions, asked.overlap, asked.least) == (30, 1.0, ())


def test_vectors_of_another_model_find_other_documents(live: Filled, build: Filled) -> None:
    live.fill([document(f"d{number}", f"Text number {number}", offset=number) for number in range(30)], 30)
    build.fill([document(f"d{number}", f"Words to number {number}", offset=number) for number in range(30)], 30)
    asked = compare_generations(live.generation, build.generation).questions
    assert asked is not None
    assert 0.1 < asked.overlap < 0.6  # ten of thirty at random
    assert 1 <= len(asked.least) <= 5


def test_generations_without_shared_documents_ask_no_questions(live: Filled, build: Filled) -> None:
    live.fill([document("a", "Text", offset=1)], 1)
    build.fill([document("b", "Text", offset=1)], 1)
    assert compare_generations(live.generation, build.generation).questions is None


def test_record_that_the_live_generation_refused_is_not_reported(live: Filled) -> None:
    live.fill([document("a", "x", offset=3)], 5)
    outcomes = EarlierOutcomes(live.generation)
    assert outcomes.refused(0, 4, b"default/b")
    assert outcomes.refused(0, 2, b"\xff")
    assert not outcomes.refused(0, 3, b"default/a")  # it could index it
    assert not outcomes.refused(0, 1, b"default/a")  # perhaps the later one came in the same batch
    assert outcomes.refused(0, 4, b"default/a")
    assert not outcomes.refused(0, 6, b"default/b")  # it has not read it
    live.fill([], 6)
    assert outcomes.refused(0, 6, b"default/b")
