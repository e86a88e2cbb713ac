"""Changes of documents on the contributions topic: whole, in any order of their parts, and nothing before its mark."""

import random
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from indexer.changes import CODEC, CommitReader, DocumentChange, Part, encode_mark
from indexer.schema import documents_table
from indexer.write.change_encoding import Records, encode_change, encode_changes, encode_void
from indexer.write.lance_rows import IndexedRows, chunks_table, passages_table
from schemas.errors import MalformedEvent
from schemas.graph_delta import encode_contribution
from schemas.ids import DocumentKey
from tests.support.contributions import Logged, commits_of, in_graph
from tests.support.fakes.worker import contribution_of
from tests.support.fixtures.text_rows import DIMENSION, document, tombstone

A = DocumentKey("default", "a")
MARK = (None, encode_mark({0: (7, 1_000), 2: (9, 1_001)}))


def read(records: list[tuple[bytes | None, bytes | None]]) -> tuple[list[Any], list[tuple[int, str]]]:
    """The commits, and the offset and reason of each broken record."""
    broken: list[tuple[int, str]] = []

    def note(record: Logged, error: MalformedEvent) -> None:
        broken.append((record.offset, error.reason))

    reader = CommitReader[Logged](note)
    commits = [reader.add(Logged(offset, *record)) for offset, record in enumerate(records)]
    return [commit for commit in commits if commit is not None], broken


def change_of(records: Records, key: DocumentKey = A) -> DocumentChange:
    [commit] = commits_of([*records, MARK])
    return commit.changes[key]


def test_rows_come_back_as_the_tables_have_them() -> None:
    made = document("a", "One. Two", "Three é", title="Numbers", offset=5)
    change = change_of(encode_change(A, made, None, in_graph=False))
    assert change.row is not None
    assert change.row.equals(documents_table([made.row]))
    assert change.passages is not None
    assert change.passages.equals(passages_table([made]))
    assert change.chunks is not None
    assert change.chunks.equals(chunks_table([made], DIMENSION))
    assert not change.in_graph


def test_deleted_document_leaves_tables_and_graph() -> None:
    gone = change_of(encode_changes([tombstone("a")], {A: None}))
    assert (gone.passages, gone.chunks, gone.in_graph, gone.contribution) == (None, None, True, None)


def test_row_alone_leaves_the_rest_as_it_is() -> None:
    change = change_of(encode_changes([IndexedRows(document("a", "One").row)], {}))
    assert (change.row is None, change.passages, change.chunks, change.in_graph) == (False, None, None, False)


def test_contribution_comes_with_the_rows() -> None:
    contribution = contribution_of("default/a")
    change = change_of(encode_changes([document("a", "One")], {A: encode_contribution(contribution)}))
    assert (change.in_graph, change.contribution) == (True, contribution)
    [commit] = commits_of([*in_graph("default/a", contribution), *in_graph("default/b", None), MARK])
    assert commit.in_graph == [(A, contribution), (DocumentKey("default", "b"), None)]
    assert commit.reached == {0: (7, 1_000), 2: (9, 1_001)}


def test_parts_are_put_together_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.write.change_encoding.PART_BYTES", 50)
    made = document("a", *(f"River {number}" for number in range(20)))
    records = encode_changes([made], {})
    assert len(records) > 10
    shuffled = records + records[:3]
    random.Random(1).shuffle(shuffled)
    assert change_of(shuffled).chunks == change_of(records).chunks


def test_nothing_is_given_before_the_mark() -> None:
    records = encode_changes([document("a", "One")], {})
    assert read([*records]) == ([], [])
    commits, _ = read([*records, MARK, MARK])
    assert [set(commit.changes) for commit in commits] == [{A}, set()]


def test_last_change_of_a_document_counts() -> None:
    first, second = (encode_changes([document("a", text)], {}) for text in ("One", "Two"))
    passages = change_of([*first, *second]).passages
    assert passages is not None
    assert passages["text"].to_pylist() == ["Two"]


def test_refused_document_is_void_until_it_is_sent_again() -> None:
    sent, void = encode_changes([document("a", "One")], {}), (b"default/a", encode_void())
    [commit] = commits_of([*sent, void, MARK])
    assert (commit.changes, commit.void, commit.in_graph) == ({}, {A}, [(A, None)])
    [commit] = commits_of([void, *sent, MARK])
    assert (set(commit.changes), commit.void) == ({A}, set())


def test_change_without_all_its_parts_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the topic was cut off in the middle of a document."""
    monkeypatch.setattr("indexer.write.change_encoding.PART_BYTES", 50)
    cut = encode_changes([document("a", "One", "Two")], {})[1:]
    commits, broken = read([*cut, *encode_changes([document("b", "Three")], {}), MARK])
    assert [set(commit.changes) for commit in commits] == [{DocumentKey("default", "b")}]
    assert broken == [(len(cut) - 1, "bad_contribution")]


def _part(body: bytes, size: int | None = None, number: int = 0) -> bytes:
    data = pa.compress(body, codec=CODEC, asbytes=True)
    return msgspec.msgpack.encode(Part(b"digest", number, 1, len(body) if size is None else size, data))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "bad_contribution"),
        (b"", "bad_contribution"),
        (b"not msgpack", "bad_contribution"),
        (msgspec.msgpack.encode(["other", 1]), "bad_contribution"),
        (_part(b"not msgpack"), "bad_contribution"),
        (_part(b"", -1), "bad_contribution"),
        (_part(b"\x80" * 10, 5), "bad_contribution"),
        (_part(b"\x80", number=4), "bad_contribution"),
        (msgspec.msgpack.encode(Part(b"d", 0, 1, 5, b"not zstd")), "bad_contribution"),
        (_part(msgspec.msgpack.encode({"row": {"key": [1]}})), "bad_contribution"),
        (_part(msgspec.msgpack.encode({"contribution": b"{}"})), "bad_contribution"),
        (in_graph("default/other", contribution_of("default/other"))[0][1], "key_mismatch"),
        (encode_changes([document("other", "One")], {})[0][1], "key_mismatch"),
    ],
)
def test_record_that_is_no_change_of_its_document_is_left_out(value: bytes | None, reason: str) -> None:
    good = encode_changes([document("b", "Three")], {})
    commits, broken = read([(b"default/a", value), *good, MARK])
    assert [set(commit.changes) for commit in commits] == [{DocumentKey("default", "b")}]
    assert broken == [(0, reason)]


@pytest.mark.parametrize("key", [None, b"", b"no-slash", b"\xff/a"])
def test_record_with_a_key_that_is_none_is_left_out(key: bytes | None) -> None:
    [(_, value)] = encode_changes([document("a", "One")], {})
    commits, broken = read([(key, value), MARK])
    assert ([commit.changes for commit in commits], broken[0][0]) == ([{}], 0)
