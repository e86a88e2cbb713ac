"""Pages by offset, by documents and by chunks: how they fit together."""

from concurrent.futures import Executor

import pytest

from tests.unit.query_api.in_memory_text import Page, world
from tests.unit.query_api.searching.asking import ask

MANY = [
    Page(
        f"d{number:03}",
        f"Doc {number}",
        [[f"common words {number}", f"more common words {number} here"], ["common tail"]],
    )
    for number in range(120)
]


@pytest.mark.parametrize("group", ["passage", "chunk", "document"])
@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
async def test_pages_by_offset_are_one_long_page(executor: Executor, mode: str, group: str) -> None:
    made = world(MANY)
    whole = await ask(made, executor, q="common words", mode=mode, group=group, duplicates="keep", k=1000)
    pages: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await ask(
            made, executor, q="common words", mode=mode, group=group, duplicates="keep", k=50, offset=offset
        )
        assert [hit.rank for hit in page.hits] == list(range(offset + 1, offset + len(page.hits) + 1))
        pages += [hit.chunk_id for hit in page.hits]
        offset = page.done.next_offset
    assert pages == [hit.chunk_id for hit in whole.hits]
    expected = {"passage": 240, "document": 120, "chunk": 240 if mode == "keyword" else 360}
    assert len(pages) == expected[group]
    assert whole.done.next_offset is None


@pytest.mark.parametrize("group", ["passage", "document"])
async def test_short_pages_are_one_long_page_also_where_only_a_search_tells_cosines(
    executor: Executor, group: str
) -> None:
    """Each passage has words of its own, so that covering the question moves them, and more than one block is asked."""
    words = ["river", "lake", "weir", "dam", "boat", "mill"]
    made = world(
        [
            Page(
                f"d{at:02}",
                f"Doc {at}",
                [[f"{words[at % 6]} {words[at % 5]} {words[part % 3]}"] for part in range(at % 7)],
            )
            for at in range(60)
        ]
    )
    made[1].cosines_at_once = False
    question = "is a weir at the river or the lake"
    whole = await ask(made, executor, q=question, group=group, k=150)
    for size in (7, 40):
        pages: list[str] = []
        for offset in range(0, 120, size):
            page = await ask(made, executor, q=question, group=group, k=size, offset=offset)
            pages += [hit.passage_id for hit in page.hits]
        assert pages == [hit.passage_id for hit in whole.hits][: len(pages)]
        assert len(pages) >= min(120, len(whole.hits))


async def test_documents_come_once_and_by_their_best_passage(executor: Executor) -> None:
    made = world(MANY)
    answer = await ask(made, executor, q="common tail", group="document", k=20)
    ids = [hit.document_id for hit in answer.hits]
    assert len(set(ids)) == len(ids) == 20
    assert {hit.parent_text for hit in answer.hits} == {"common tail"}
