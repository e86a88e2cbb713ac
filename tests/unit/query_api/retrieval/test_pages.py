"""Pages by offset, by documents and by chunks: how they fit together."""

from concurrent.futures import Executor

import pytest

from schemas.hits import Hit
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import ask

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
    whole = await ask(made, executor, q="common words", mode=mode, group=group, k=1000)
    pages: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await ask(made, executor, q="common words", mode=mode, group=group, k=50, offset=offset)
        assert [hit.rank for hit in page.hits] == list(range(offset + 1, offset + len(page.hits) + 1))
        pages += [hit.chunk_id for hit in page.hits]
        offset = page.done.next_offset
    assert pages == [hit.chunk_id for hit in whole.hits]
    expected = {"passage": 240, "document": 120, "chunk": 240 if mode == "keyword" else 360}
    assert len(pages) == expected[group]
    assert whole.done.next_offset is None


WORDS = ["river", "lake", "weir", "dam", "boat", "mill"]
WATERS = [
    Page(
        f"d{at:02}",
        f"Doc {at}",
        [
            [f"river lake weir {'mud ' * (20 + part)}" if at % 4 == 0 else f"{WORDS[at % 5]} {WORDS[part % 3]} {at}"]
            for part in range(1 + at % 7)
        ],
    )
    for at in range(60)
]


def shown(hit: Hit) -> tuple[str, list[str]]:
    """The passage of a hit, and the further ones inside."""
    return hit.passage_id, [each.passage_id for each in hit.passages]


@pytest.mark.parametrize("group", ["passage", "document"])
async def test_short_pages_are_one_long_page_also_where_only_a_search_tells_cosines(
    executor: Executor, group: str
) -> None:
    """Muddy waters hold many of the words, and are far from the question: only their words find them at first."""
    made = world(WATERS)
    made[1].cosines_at_once = False
    question = "is a weir at the river or the lake"
    whole = await ask(made, executor, q=question, group=group, k=150)
    for size in (7, 40):
        pages: list[tuple[str, list[str]]] = []
        for offset in range(0, 120, size):
            page = await ask(made, executor, q=question, group=group, k=size, offset=offset)
            pages += map(shown, page.hits)
        assert pages == list(map(shown, whole.hits))[: len(pages)]
        assert len(pages) >= min(120, len(whole.hits))


async def test_what_a_deeper_search_finds_has_the_cosine_it_was_found_with(executor: Executor) -> None:
    at_once, by_search = world(WATERS), world(WATERS)
    by_search[1].cosines_at_once = False
    found = [await ask(made, executor, q="river lake", channels="vector", k=150) for made in (at_once, by_search)]
    assert len(found[0].hits) == 150
    assert [(hit.passage_id, hit.score) for hit in found[1].hits] == [
        (hit.passage_id, pytest.approx(hit.score)) for hit in found[0].hits
    ]


async def test_documents_come_once_and_by_their_best_passage(executor: Executor) -> None:
    made = world(MANY)
    answer = await ask(made, executor, q="common tail", group="document", k=20)
    ids = [hit.document_id for hit in answer.hits]
    assert len(set(ids)) == len(ids) == 20
    assert {hit.parent_text for hit in answer.hits} == {"common tail"}


LOCKS = [
    Page("locks", "Locks", [["A lock lifts a barge."], ["A lock of a canal."], ["A barge waits."], ["A lock."]]),
    Page("weirs", "Weirs", [["A weir holds back."]]),
]


async def test_a_document_shows_its_next_passages(executor: Executor) -> None:
    made = world(LOCKS)
    by_passage = [hit for hit in (await ask(made, executor, q="lock barge")).hits if hit.document_id == "locks"]
    first = (await ask(made, executor, q="lock barge", group="document")).hits[0]
    assert first.passage_id == by_passage[0].passage_id
    assert [(each.passage_id, each.chunk_id, each.text, each.highlights) for each in first.passages] == [
        (hit.passage_id, hit.chunk_id, hit.text, hit.highlights) for hit in by_passage[1:3]
    ]
    assert [hit.passages for hit in by_passage] == [[], [], [], []]


async def test_a_document_that_repeats_itself_shows_a_text_once(executor: Executor) -> None:
    made = world([Page("loop", "Loop", [["A lock lifts."], ["A lock lifts."], ["A lock lifts it."]])])
    (hit,) = (await ask(made, executor, q="lock lifts", group="document")).hits
    assert [hit.text, *(each.text for each in hit.passages)] == ["A lock lifts.", "A lock lifts it."]


async def test_a_decomposed_question_shows_next_passages_too(executor: Executor) -> None:
    asked = {"q": "Compare a lock and a weir", "decompose": True, "group": "document"}
    answer = await ask(world(LOCKS), executor, **asked)
    assert sorted(map(len, (hit.passages for hit in answer.hits))) == [0, 2]


async def test_hundreds_of_copies_are_one_card(executor: Executor) -> None:
    copies = [Page(f"copy{at:03}", f"Copy {at}", LOCKS[0].passages) for at in range(300)]
    for pages in (copies, [*copies, LOCKS[1]]):
        for k in (1, 10):
            asked = {"q": "lock barge", "group": "document", "duplicates": "exact", "k": k}
            answer = await ask(world(pages), executor, **asked)
            assert [hit.copies for hit in answer.hits] == [299, 0][: min(k, 1 + len(pages) - len(copies))]


@pytest.mark.parametrize(("knows_copies", "shown"), [(True, 3), (False, 1)])
async def test_documents_that_share_a_passage_are_not_copies(
    executor: Executor, knows_copies: bool, shown: int
) -> None:
    """Where texts are too many for memory, only the passages that are shown are compared."""
    made = world(
        [Page(f"adr{at}", "Lock", [["Accepted by the board."], [f"Lock {at} gets a gate."]]) for at in range(3)]
    )
    made[1].knows_copies = knows_copies
    asked = {"q": "accepted by the board", "group": "document"}
    hits = (await ask(made, executor, duplicates="exact", **asked)).hits
    assert [hit.copies for hit in hits] == [0] * shown
    assert len((await ask(made, executor, duplicates="semantic", **asked)).hits) == 1


async def test_copies_outside_of_what_is_searched_do_not_count(executor: Executor) -> None:
    copies = [Page(f"c{at}", "Locks", LOCKS[0].passages, metadata={"year": 2000 + at % 3}) for at in range(9)]
    made = world([*copies, Page("other", "Locks", LOCKS[0].passages, collection="private")])
    asked = {"q": "lock", "group": "document", "collection": "wiki", "filter": ["year=2001"]}
    (hit,) = (await ask(made, executor, duplicates="exact", **asked)).hits
    assert hit.copies == 2
    assert [hit.copies for hit in (await ask(made, executor, **asked)).hits] == [0, 0, 0]
