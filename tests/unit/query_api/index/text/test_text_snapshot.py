"""Passages read from tables are cached between snapshots: read once, never stale."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from indexer.read.rows import ChunkRow, PassageRow
from query_api.index.text.in_memory import InMemoryIndex
from query_api.index.text.text_snapshot import TextCache, TextSnapshot
from schemas.ids import DocumentKey

KEYS = [DocumentKey("wiki", f"d{number}") for number in range(3)]
IDS = [f"passage of {key}" for key in KEYS]


class Tables:
    """Tables of one passage with one chunk for each of these documents."""

    def __init__(self, revisions: Mapping[DocumentKey, str]) -> None:
        self.revisions = revisions
        self.calls: Counter[str] = Counter()

    def passages(self, ids: Iterable[str]) -> list[PassageRow]:
        self.calls["passages"] += 1
        return [row for row in map(self._passage, self.revisions) if row.id in set(ids)]

    def chunks_of_passages(self, passage_ids: Iterable[str]) -> list[ChunkRow]:
        self.calls["chunks_of_passages"] += 1
        wanted = set(passage_ids)
        rows = [self._passage(key) for key in self.revisions]
        return [
            ChunkRow(f"chunk of {row.id}", row.key, row.revision, 0, row.id, [], 0, 4, "text")
            for row in rows
            if row.id in wanted
        ]

    def _passage(self, key: DocumentKey) -> PassageRow:
        revision = self.revisions[key]
        return PassageRow(f"passage of {key}", key, revision, 0, [], 0, 4, f"Title {revision}", "text")


def snapshot(cache: TextCache, revisions: Mapping[DocumentKey, str]) -> tuple[TextSnapshot, Tables]:
    """A snapshot whose texts and vectors are not in memory."""
    memory = InMemoryIndex.empty()
    index = InMemoryIndex(revisions, memory.documents, memory.postings, None, None, 0, 0)
    tables: Any = Tables(revisions)
    return TextSnapshot(tables, index, cache), tables


@pytest.fixture
def cache() -> TextCache:
    return TextCache()


def test_what_was_read_is_not_read_again(cache: TextCache) -> None:
    text, tables = snapshot(cache, dict.fromkeys(KEYS, "1"))
    first = text.passages(IDS)
    assert list(first) == IDS
    assert text.passages(list(reversed(IDS))) == first
    chunks = text.chunks_of_passages(IDS)
    assert [row.passage_id for rows in chunks.values() for row in rows] == IDS
    assert text.chunks_of_passages(IDS) == chunks
    assert tables.calls == {"passages": 1, "chunks_of_passages": 1}


def test_a_row_of_another_revision_is_read_again(cache: TextCache) -> None:
    before, _ = snapshot(cache, dict.fromkeys(KEYS, "1"))
    after, _ = snapshot(cache, dict.fromkeys(KEYS, "2"))
    assert before.passages(IDS)[IDS[0]].title == "Title 1"
    assert after.passages(IDS)[IDS[0]].title == "Title 2"
    assert before.passages(IDS)[IDS[0]].title == "Title 1", "an older snapshot still sees its own"


def test_a_deleted_document_is_gone_although_it_is_cached(cache: TextCache) -> None:
    whole, _ = snapshot(cache, dict.fromkeys(KEYS, "1"))
    whole.passages(IDS)
    whole.chunks_of_passages(IDS)
    left, _ = snapshot(cache, dict.fromkeys(KEYS[1:], "1"))
    assert set(left.passages(IDS)) == set(IDS[1:])
    assert set(left.chunks_of_passages(IDS)) == set(IDS[1:])


def test_the_rows_used_longest_ago_go_first() -> None:
    text, tables = snapshot(TextCache(passages=2), dict.fromkeys(KEYS, "1"))
    text.passages(IDS[:2])
    text.passages(IDS[:1])
    text.passages(IDS[2:])
    tables.calls.clear()
    text.passages([IDS[0], IDS[2]])
    assert tables.calls["passages"] == 0
    text.passages([IDS[1]])
    assert tables.calls["passages"] == 1
