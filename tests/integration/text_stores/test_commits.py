"""A reader that is told of commits before the tables have them shows, at each, what the tables will."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexer.changes import Commit, encode_mark
from indexer.generation_folders import Generation
from indexer.read.rows import ChunkSpan
from indexer.schema import StoredPosition
from indexer.write.change_encoding import encode_changes, encode_void
from indexer.write.lance_rows import IndexedRows
from indexer.write.lance_writer import LanceWriter
from query_api.index.text.text_snapshot import TextReader, TextSnapshot
from schemas.ids import DocumentKey
from tests.integration.text_stores.test_following import NAMES, batches, found, moved_to
from tests.support.contributions import Logged, commits_of
from tests.support.fixtures.text_rows import DIMENSION, document, generation_in, tombstone, vector_of

IN_MEMORY = [{}, {"max_vectors": 0}, {"max_text_bytes": 0}, {"max_vectors": 0, "max_text_bytes": 0}]


@dataclass
class Made:
    """A commit, as the log and the writer have it."""

    rows: list[IndexedRows]
    commit: Commit[Logged]
    positions: dict[int, StoredPosition]


@dataclass
class History:
    """Commits of one worker, one after the other on one topic."""

    commits: list[Made] = field(default_factory=list)
    records: list[tuple[bytes | None, bytes]] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)

    def add(self, rows: Sequence[IndexedRows], partition: int = 0) -> Made:
        placed = []
        for each in rows:
            self.offsets[partition] = self.offsets.get(partition, -1) + 1
            placed.append(moved_to(each, partition, self.offsets[partition]))
        contributions: dict[DocumentKey, bytes | None] = {each.row.key: None for each in placed if not each.row.live}
        reached = {at: (offset, 1_000 + offset) for at, offset in self.offsets.items()}
        self.records += [*encode_changes(placed, contributions), (None, encode_mark(reached))]
        commit = commits_of(self.records)[-1]
        positions = {at: StoredPosition(*reached[at][:1], commit.offset, reached[at][1]) for at in reached}
        self.commits.append(Made(placed, commit, positions))
        return self.commits[-1]


def store(writer: LanceWriter, made: Made) -> None:
    writer.replace(made.rows)
    writer.store_positions(made.positions)


def looked_up(snapshot: TextSnapshot, all_of: TextSnapshot) -> dict[str, object]:
    """What reads by id find of everything that the other snapshot has."""
    live, _ = all_of.list_documents(None, None, 1_000)
    keys = [DocumentKey(*name) for name in NAMES]
    spans = [ChunkSpan(row.key, 0, row.chunks) for row in live]
    chunks = [chunk.id for rows in all_of.chunks_in(spans).values() for chunk in rows]
    passages = [hit.passage_id for hit in all_of.keyword_search("river sea banks hill", 1_000)]
    vectors = snapshot.vectors(chunks)
    return {
        "documents": {key: replace(row, deleted_at_ms=None) for key, row in snapshot.documents(keys).items()},
        "chunks": snapshot.chunks(chunks),
        "spans": snapshot.chunks_in(spans),
        "passages": snapshot.passages(passages),
        "of passages": snapshot.chunks_of_passages(passages),
        "vectors": {name: np.round(vectors[name], 6).tolist() for name in chunks},
    }


def shown(snapshot: TextSnapshot) -> dict[str, Any]:
    """Tables and memory differ in the last bits of a cosine."""
    found_there = found(snapshot)
    vectors = [pytest.approx({hit[:-1]: hit[-1] for hit in hits}, abs=1e-4) for hits in found_there["vectors"]]
    positions = {at: stored.offset for at, stored in snapshot.positions.items()}
    return found_there | {"positions": positions, "vectors": vectors}


class Story:
    """A writer and a reader of one topic, each as far as a test has let it come; and tables that have what the reader
    has been told."""

    def __init__(self, folder: Path, commits: Sequence[Made], limits: dict[str, int]) -> None:
        self.commits, self.limits = commits, limits
        self.stored = self.rows_stored = self.applied = 0
        self.generation, self.expected = generation_in(folder / "tables"), generation_in(folder / "expected")
        self.writer, self.expecting = (LanceWriter.open(each, DIMENSION) for each in (self.generation, self.expected))
        self.reader = TextReader.open(self.generation, **limits)

    def apply(self) -> None:
        for made in self.commits[self.applied : self.applied + 1]:
            self.reader.apply([made.commit])
            store(self.expecting, made)
            self.applied += 1

    def apply_again(self) -> None:
        self.reader.apply([each.commit for each in self.commits[: self.applied]])

    def store(self) -> None:
        for made in self.commits[self.stored : self.stored + 1]:
            store(self.writer, made)
            self.stored += 1
            self.rows_stored = self.stored

    def store_rows_alone(self) -> None:
        for made in self.commits[self.stored : self.stored + 1]:
            self.writer.replace(made.rows)
            self.rows_stored = self.stored + 1

    def refresh(self) -> None:
        self.reader.refresh(follows=True)

    def open(self) -> None:
        if self.rows_stored <= self.applied:  # else it has yet to read the log as far as the tables are
            self.reader = TextReader.open(self.generation, **self.limits)
            self.apply_again()

    def check(self) -> None:
        will = TextReader.open(self.expected, **self.limits).snapshot()
        expected, now = shown(will), found(self.reader.snapshot())
        now["positions"] = {at: stored.offset for at, stored in now["positions"].items()}
        now["vectors"] = [{hit[:-1]: hit[-1] for hit in hits} for hits in now["vectors"]]
        assert now == expected
        assert looked_up(self.reader.snapshot(), will) == looked_up(will, will)


ACTIONS = [Story.apply, Story.store, Story.refresh, Story.store_rows_alone, Story.open, Story.apply_again]


def commits_by(history: Sequence[dict[tuple[str, str], tuple[str, ...]]], data: st.DataObject) -> list[Made]:
    """Documents that come, change, stay as they are, move to another partition, and go."""
    made, last = History(), dict[tuple[str, str], tuple[str, ...]]()
    for batch in history:
        rows = []
        for (collection, name), passages in batch.items():
            now = document(name, *passages, collection=collection) if passages else tombstone(name, collection)
            is_unchanged = passages and last.get((collection, name)) == passages
            rows.append(IndexedRows(now.row) if is_unchanged else now)
        last |= batch
        made.add(rows, data.draw(st.integers(0, 1)))
    return made.commits


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(batches(), st.sampled_from(IN_MEMORY), st.lists(st.sampled_from(ACTIONS), min_size=4, max_size=10), st.data())
def test_commits_show_what_the_tables_will(
    history: list[dict[tuple[str, str], tuple[str, ...]]],
    limits: dict[str, int],
    actions: list[Callable[[Story], None]],
    data: st.DataObject,
) -> None:
    """The tables have each commit sooner or later; the reader looks at any time, and may read the topic again."""
    with TemporaryDirectory() as folder:
        story = Story(Path(folder), commits_by(history, data), limits)
        for action in actions:
            action(story)
            story.check()


def test_tables_ahead_of_the_log_are_not_shown_while_following(generation: Generation, writer: LanceWriter) -> None:
    history = History()
    reader = TextReader.open(generation)
    store(writer, history.add([document("d0", "River")]))
    assert not reader.refresh(follows=True)
    assert reader.snapshot().keyword_search("river", 5) == []
    reader.apply([history.commits[0].commit])
    assert len(reader.snapshot().keyword_search("river", 5)) == 1
    assert reader.refresh(follows=True)
    store(writer, history.add([document("d1", "River")]))
    assert reader.refresh()
    assert len(reader.snapshot().keyword_search("river", 5)) == 2


def test_rows_that_the_tables_have_are_held_no_longer(generation: Generation, writer: LanceWriter) -> None:
    history = History()
    reader = TextReader.open(generation)
    first, second = history.add([document("d0", "River")]), history.add([document("d1", "Sea")])
    reader.apply([first.commit, second.commit])
    assert len(reader.snapshot().tables._documents) == 2
    store(writer, first)
    reader.refresh(follows=True)
    assert [key.document_id for key in reader.snapshot().tables._documents] == ["d1"]
    store(writer, second)
    reader.refresh(follows=True)
    assert (reader.snapshot().tables._documents, reader.snapshot().tables._passages.num_rows) == ({}, 0)


@pytest.mark.parametrize("limits", IN_MEMORY)
def test_document_that_the_store_refused_is_as_stored(
    generation: Generation, writer: LanceWriter, limits: dict[str, int]
) -> None:
    """One that was there before, and a new one; also by a reader that comes later, and reads all of it at once."""
    history, reader = History(), TextReader.open(generation, **limits)
    later = TextReader.open(generation, **limits)
    before = history.add([document("d0", "River")])
    reader.apply([before.commit])
    store(writer, before)
    refused = history.add([document("d0", "Sea"), document("d1", "Sea")])
    reader.apply([refused.commit])
    assert len(reader.snapshot().keyword_search("sea", 5)) == 2
    void = [(str(each.row.key).encode(), encode_void()) for each in refused.rows]
    history.records += [*void, (None, encode_mark({0: (2, 1_002)}))]
    commits = commits_of(history.records)
    reader.apply(commits[-1:])
    later.apply(commits)
    for snapshot in (reader.snapshot(), later.snapshot()):
        assert snapshot.keyword_search("sea", 5) == []
        [hit] = snapshot.keyword_search("river", 5)
        assert snapshot.passages([hit.passage_id])[hit.passage_id].text == "River"
        assert len(snapshot.chunks_of_passages([hit.passage_id])[hit.passage_id]) == 1
        assert [row.offset for row in snapshot.documents([hit.key]).values()] == [0]
        assert snapshot.list_documents(None, None, 10)[0] == list(snapshot.documents([hit.key]).values())
        assert snapshot.positions[0].offset == 2


@pytest.mark.parametrize("limits", IN_MEMORY)
def test_document_in_many_parts_is_shown_as_a_whole(
    generation: Generation, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], writer: LanceWriter
) -> None:
    monkeypatch.setattr("indexer.write.change_encoding.PART_BYTES", 100)
    history, reader = History(), TextReader.open(generation, **limits)
    made = history.add([document("d0", *(f"River {number}. Sea {number}" for number in range(50)))])
    assert len(history.records) > 20
    reader.apply([made.commit])
    assert len(reader.snapshot().vector_search(vector_of("x"), 1_000)) == 100
