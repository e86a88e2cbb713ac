"""Texts kept between snapshots: read once, never stale."""

from dataclasses import replace

from query_api.index.text_cache import CachedText, TextCache
from tests.unit.query_api.in_memory_text import Page, world

PAGES = [Page(f"d{number}", f"Title {number}", [[f"first {number}", f"second {number}"]]) for number in range(3)]
IDS = [page.passage_ids()[0] for page in PAGES]


def test_what_was_read_is_not_read_again() -> None:
    _, text, _ = world(PAGES)
    cache = TextCache()
    first = CachedText(text, cache).passages(IDS)
    again = CachedText(text, cache).passages(list(reversed(IDS)))
    assert again == first == text.passages(IDS)
    assert text.calls["passages"] == 2, "once by the cache, once by this test"
    chunks = CachedText(text, cache).chunks_of_passages(IDS)
    assert CachedText(text, cache).chunks_of_passages(IDS) == chunks == text.chunks_of_passages(IDS)
    assert text.calls["chunks_of_passages"] == 2


def test_a_row_of_another_revision_is_read_anew() -> None:
    cache = TextCache()
    before, after = world(PAGES)[1], world([replace(page, revision="2", title="New") for page in PAGES])[1]
    assert CachedText(before, cache).passages(IDS)[IDS[0]].title == "Title 0"
    assert CachedText(after, cache).passages(IDS)[IDS[0]].title == "New"
    assert CachedText(before, cache).passages(IDS)[IDS[0]].title == "Title 0", "an older snapshot still sees its own"


def test_a_deleted_document_is_gone_although_it_is_kept() -> None:
    cache = TextCache()
    CachedText(world(PAGES)[1], cache).passages(IDS)
    left = CachedText(world(PAGES[1:])[1], cache)
    assert set(left.passages(IDS)) == set(IDS[1:])
    assert set(left.chunks_of_passages(IDS)) == set(IDS[1:])


def test_the_rows_used_longest_ago_go_first() -> None:
    _, text, _ = world(PAGES)
    cached = CachedText(text, TextCache(passages=2))
    cached.passages(IDS[:2])
    cached.passages(IDS[:1])
    cached.passages(IDS[2:])
    text.calls.clear()
    cached.passages([IDS[0], IDS[2]])
    assert text.calls["passages"] == 0
    cached.passages([IDS[1]])
    assert text.calls["passages"] == 1
