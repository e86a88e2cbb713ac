"""A search over doubles of the stores: what is streamed, what happens when channels fail, how pages fit together."""

import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest

from indexer.errors import EncoderUnavailable
from query_api.reading.snapshot import Snapshot
from query_api.searching.search import SearchBudgets, SearchFailed, SearchSettings, search
from schemas.api import Hit, SearchRequest
from schemas.errors import MalformedFilter
from schemas.frames import Done, Meta, Stage
from tests.unit.query_api.in_memory_text import InMemoryText, Page, WordCounts, world

PAGES = [
    Page(
        "alpha",
        "Alpha Film",
        [["Alpha Film is a film of 1950.", "It was directed by Jane Doe, who also wrote it."]],
        ["Jane Doe", "Alpha Film"],
    ),
    Page(
        "jane",
        "Jane Doe",
        [["Jane Doe was a painter before she made pictures.", "She was born in Lisbon."]],
        ["Jane Doe", "Lisbon"],
    ),
    Page("lisbon", "Lisbon", [["Lisbon lies on the river Tagus."]], ["Lisbon", "Tagus"]),
    Page("beta", "Beta Film", [["Beta Film is a film of 1951 about trains."]], ["Beta Film"]),
    Page("secret", "Jane Doe", [["Jane Doe of another collection keeps bees."]], ["Jane Doe"], collection="private"),
]
QUESTION = "Where was the director of Alpha Film born?"


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


class Answer:
    """The parts of one search."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    async def filled(self, parts: AsyncIterator[Any]) -> "Answer":
        self.parts = [part async for part in parts]
        return self

    @property
    def hits(self) -> list[Hit]:
        return [part for part in self.parts if isinstance(part, Hit)]

    @property
    def stages(self) -> dict[str, Stage]:
        return {part.name: part for part in self.parts if isinstance(part, Stage)}

    @property
    def done(self) -> Done:
        assert isinstance(self.parts[-1], Done)
        return self.parts[-1]

    @property
    def titles(self) -> list[str]:
        return [hit.title for hit in self.hits]


async def ask(
    made: tuple[Snapshot, InMemoryText, WordCounts],
    executor: Executor,
    q: str = QUESTION,
    settings: SearchSettings | None = None,
    **request: Any,
) -> Answer:
    snapshot, _, encoder = made
    parts = search(SearchRequest(q=q, **request), "r1", snapshot, encoder, executor, settings or SearchSettings())
    return await Answer().filled(parts)


async def test_the_parts_come_in_order_and_tell_which_state_was_read(executor: Executor) -> None:
    answer = await ask(world(PAGES), executor, collection="wiki")
    meta, *rest = answer.parts
    assert isinstance(meta, Meta)
    assert (meta.snapshot.generation, meta.snapshot.graph_position, meta.snapshot.positions) == ("g0001", 3, "0:7")
    names = [type(part).__name__ for part in rest]
    assert names == ["Stage"] * 5 + ["Hit"] * 4 + ["Done"]
    assert set(answer.stages) == {"embed", "vector", "keyword", "structured", "graph"}
    assert [hit.rank for hit in answer.hits] == [1, 2, 3, 4]
    assert answer.done.next_offset is None
    assert set(answer.done.timings) == {*answer.stages, "compare", "texts"}


async def test_a_hit_says_where_it_comes_from_and_how_each_channel_saw_it(executor: Executor) -> None:
    answer = await ask(world(PAGES), executor, collection="wiki")
    first = answer.hits[0]
    assert first.title == "Alpha Film"
    assert first.parent_text.startswith("Alpha Film is a film of 1950. It was directed")
    assert first.text in first.parent_text
    assert (first.source.topic, first.source.partition, first.source.offset) == ("thalweg.documents.v1", 0, 5)
    assert set(first.scores) == set(first.ranks) == set(first.channels) == {"vector", "keyword", "graph"}
    assert first.metadata == {"lang": "en"}
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)


async def test_the_graph_alone_answers_in_two_hops_and_shows_its_path(executor: Executor) -> None:
    answer = await ask(world(PAGES), executor, mode="graph", collection="wiki")
    jane = next(hit for hit in answer.hits if hit.title == "Jane Doe")
    assert [(edge.source, edge.edge, edge.target) for edge in jane.path] == [
        ("question", "names", "Alpha Film"),
        ("Alpha Film", "mentions", "Jane Doe"),
    ]
    assert jane.path[0].evidence == "Alpha Film"
    assert jane.path[1].evidence == "It was directed by Jane Doe, who also wrote it."
    alpha = PAGES[0].chunks()
    assert jane.path[1].chunk_id == alpha[1][0], "the evidence stands in the second chunk"
    assert jane.channels == ["graph"]
    assert jane.score == jane.scores["graph"]


@pytest.mark.parametrize("mode", ["vector", "keyword", "graph", "hybrid"])
async def test_a_filter_holds_in_every_channel(executor: Executor, mode: str) -> None:
    """The graph may go by way of what is filtered out, but never shows it."""
    answer = await ask(world(PAGES), executor, mode=mode, collection="wiki", filter=["document!=alpha"])
    assert "Jane Doe" in answer.titles
    assert "Alpha Film" not in answer.titles
    assert not (await ask(world(PAGES), executor, mode=mode, filter=["title=Nobody"])).hits


async def test_a_question_for_a_document_by_its_fields_is_answered_by_them_and_says_so(executor: Executor) -> None:
    proposals = [
        Page(f"pep-{number:04}", f"Idea {number}", [["A proposal."]], metadata={"author": author})
        for number, author in enumerate(["Ann Lee", "Bo Ek", "Cy Dee"])
    ]
    for mode in ("hybrid", "structured"):
        answer = await ask(world(proposals), executor, q="proposals by Cy Dee", mode=mode)
        assert answer.titles[0] == "Idea 2"
        assert (answer.hits[0].matches, answer.hits[0].scores["structured"]) == (["author=Cy Dee"], 1.0)
        assert answer.stages["structured"].candidates == 1
    assert (await ask(world(proposals), executor, q="a proposal", mode="structured")).hits == []


async def test_a_late_structured_channel_is_left_out_and_the_answer_says_so(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    made = world(PAGES)
    monkeypatch.setattr(InMemoryText, "leads", lambda *_: release.wait(10) and {})
    settings = SearchSettings(budgets=SearchBudgets(structured_seconds=0.02))
    made[1].pages = {page.key: page for page in [*PAGES, Page("pep-0007", "Seven", [["nothing"]])]}
    try:
        answer = await ask(made, executor, q="pep 7", settings=settings)
    finally:
        release.set()
    assert answer.done.failed_channels == {"structured": "no answer within 0.02 s"}


async def test_a_filter_that_the_documents_cannot_answer_is_refused_before_anything_is_searched(
    executor: Executor,
) -> None:
    made = world(PAGES)
    with pytest.raises(MalformedFilter, match="'colour'"):
        await ask(made, executor, filter=["colour=red"])
    assert not made[1].calls


async def test_names_are_found_whatever_their_case(executor: Executor) -> None:
    answer = await ask(world(PAGES), executor, q="who directed alpha film", mode="graph", collection="wiki")
    assert answer.titles[0] == "Alpha Film"
    assert "Jane Doe" in answer.titles


SIDE_BY_SIDE = [
    Page("one", "Railways", [["A film about trains."]]),
    Page("two", "Harbours", [["A film about ships."]]),
]


async def test_where_nothing_is_named_and_nothing_linked_the_graph_stays_out(executor: Executor) -> None:
    made = world(SIDE_BY_SIDE)
    answer = await ask(made, executor, q="is there a film about fast trains")
    assert answer.titles == ["Railways", "Harbours"]
    assert all("graph" not in hit.scores and not hit.path for hit in answer.hits)
    assert made[1].calls["keyword_search"] == 1, "a closed gate costs no further search"


@pytest.mark.parametrize("mode", ["vector", "keyword", "graph", "hybrid"])
async def test_nothing_crosses_collections(executor: Executor, mode: str) -> None:
    made = world(PAGES)
    for collection, forbidden in (("wiki", "private"), ("private", "wiki")):
        answer = await ask(made, executor, q="Who is Jane Doe?", mode=mode, collection=collection)
        assert answer.hits
        assert forbidden not in {hit.collection for hit in answer.hits}
    everywhere = await ask(made, executor, q="Who is Jane Doe?", mode=mode)
    assert {hit.collection for hit in everywhere.hits} == {"wiki", "private"}


async def test_a_link_into_another_collection_is_followed_only_without_a_filter(executor: Executor) -> None:
    made = world([Page("a", "Alpha Film", [["See the notes."]], links=["private/secret"]), *PAGES[3:]])
    question = "What is Alpha Film?"
    within = await ask(made, executor, q=question, mode="graph", collection="wiki")
    assert {hit.collection for hit in within.hits} == {"wiki"}
    everywhere = await ask(made, executor, q=question, mode="graph")
    secret = next(hit for hit in everywhere.hits if hit.collection == "private")
    assert [(edge.edge, edge.target) for edge in secret.path] == [("names", "Alpha Film"), ("links_to", "Jane Doe")]
    assert secret.path[1].evidence == "See the notes."


async def test_a_late_channel_is_left_out_and_said_so(executor: Executor) -> None:
    made = world(SIDE_BY_SIDE)
    release = threading.Event()
    made[1].hold["keyword_search"] = release
    settings = SearchSettings(budgets=SearchBudgets(keyword_seconds=0.05))
    try:
        answer = await ask(made, executor, q="film about trains", settings=settings)
    finally:
        release.set()
    assert answer.titles[0] == "Railways"
    assert answer.stages["keyword"].error == "no answer within 0.05 s"
    assert answer.done.failed_channels == {"keyword": "no answer within 0.05 s"}
    assert all("keyword" not in hit.scores for hit in answer.hits)


async def test_a_broken_channel_is_reported_and_the_others_answer(executor: Executor) -> None:
    made = world(PAGES)
    made[1].broken.add("vector_search")
    answer = await ask(made, executor, collection="wiki")
    assert answer.hits
    assert answer.done.failed_channels == {"vector": "Could not vector_search: the disk is gone"}
    assert answer.stages["vector"].error == "Could not vector_search: the disk is gone"


async def test_an_encoder_that_is_away_costs_the_vector_channel_only(executor: Executor) -> None:
    made = world(PAGES)
    made[2].broken = EncoderUnavailable("The embeddings endpoint cannot be reached.")
    answer = await ask(made, executor, collection="wiki")
    assert answer.titles[:1] == ["Alpha Film"]
    assert {"keyword", "graph"} <= {channel for hit in answer.hits for channel in hit.channels}
    assert answer.stages["embed"].error == "The embeddings endpoint cannot be reached."
    assert answer.done.failed_channels == {
        "vector": "The question was not embedded: The embeddings endpoint cannot be reached."
    }
    with pytest.raises(SearchFailed, match="cannot be reached"):
        await ask(made, executor, mode="vector", collection="wiki")


async def test_a_broken_graph_leaves_the_text_channels(executor: Executor) -> None:
    made = world(PAGES)
    release = threading.Event()
    text = made[1]
    keyword = text.keyword_search
    text.keyword_search = lambda query, limit, collection: (  # type: ignore[method-assign]
        keyword(query, limit, collection) if query == QUESTION else release.wait(10) and []
    )
    settings = SearchSettings(budgets=SearchBudgets(graph_seconds=0.05))
    try:
        answer = await ask(made, executor, settings=settings, collection="wiki")
    finally:
        release.set()
    assert answer.done.failed_channels == {"graph": "no answer within 0.05 s"}
    assert answer.hits
    assert all(not hit.path for hit in answer.hits)


async def test_when_every_channel_fails_the_search_fails(executor: Executor) -> None:
    made = world(PAGES)
    made[1].broken |= {"vector_search", "keyword_search", "passages"}
    with pytest.raises(SearchFailed, match=r"graph: .*keyword: .*vector: Could not vector_search: the disk is gone"):
        await ask(made, executor, collection="wiki")
    with pytest.raises(SearchFailed):
        await ask(made, executor, mode="vector", collection="wiki")


async def test_the_graph_alone_among_the_channels_may_find_nothing(executor: Executor) -> None:
    answer = await ask(world(SIDE_BY_SIDE), executor, q="is there a film", channels="graph")
    assert (answer.hits, answer.done.failed_channels) == ([], {})
    found = await ask(world(PAGES), executor, channels="graph", collection="wiki")
    assert "Jane Doe" in found.titles
    assert {channel for hit in found.hits for channel in hit.channels} == {"graph"}


async def test_only_the_channels_that_are_asked_for_work(executor: Executor) -> None:
    answer = await ask(world(PAGES), executor, channels="vector,structured", collection="wiki")
    assert set(answer.stages) == {"embed", "vector", "structured"}
    assert {channel for hit in answer.hits for channel in hit.channels} == {"vector"}


async def test_reranking_shows_what_the_vector_channel_found_and_fails_with_it(executor: Executor) -> None:
    made = world(PAGES)
    answer = await ask(made, executor, mode="rerank", collection="wiki")
    assert set(answer.stages) == {"embed", "vector", "graph"}
    assert sorted(answer.titles) == sorted((await ask(made, executor, mode="vector", collection="wiki")).titles)
    made[1].broken.add("vector_search")
    with pytest.raises(SearchFailed, match="vector: Could not vector_search"):
        await ask(made, executor, mode="rerank", collection="wiki")


async def test_what_could_not_be_compared_is_ranked_as_it_was_found_and_the_answer_says_so(executor: Executor) -> None:
    made = world(PAGES)
    made[1].broken.add("compare_vectors")
    answer = await ask(made, executor, collection="wiki")
    assert answer.hits
    reason = "Could not compare_vectors: the disk is gone"
    assert answer.done.failed_channels == {
        "graph": f"What was found was not compared with the question: {reason}",
        "compare": reason,
    }
    assert answer.stages["graph"].error == answer.done.failed_channels["graph"]
    with pytest.raises(SearchFailed, match="not compared with the question"):
        await ask(made, executor, mode="graph", collection="wiki")


async def test_texts_that_cannot_be_read_fail_the_search(executor: Executor) -> None:
    made = world(PAGES)
    made[1].broken.add("chunks_of_passages")
    with pytest.raises(SearchFailed, match="texts of the hits"):
        await ask(made, executor, collection="wiki")


async def test_keyword_search_needs_no_encoder(executor: Executor) -> None:
    made = world(PAGES)
    made[2].broken = AssertionError("must not be called")
    answer = await ask(made, executor, q="trains", mode="keyword", collection="wiki")
    assert answer.titles == ["Beta Film"]
    assert set(answer.stages) == {"keyword"}


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


async def test_the_same_search_gives_the_same_hits(executor: Executor) -> None:
    made = world(PAGES)
    first = await ask(made, executor)
    second = await ask(made, executor)
    assert [hit.model_dump() for hit in first.hits] == [hit.model_dump() for hit in second.hits]


async def test_a_closed_search_waits_for_nothing(executor: Executor) -> None:
    made = world(PAGES)
    release = threading.Event()
    made[1].hold["keyword_search"] = release
    parts = search(SearchRequest(q=QUESTION), "r1", made[0], made[2], executor, SearchSettings())
    try:
        assert isinstance(await anext(parts), Meta)
        assert isinstance(await anext(parts), Stage)
        await parts.aclose()  # type: ignore[attr-defined]
        assert made[1].calls["passages"] == 0
    finally:
        release.set()


async def test_a_fact_is_told_in_its_own_direction_with_the_line_that_states_it(executor: Executor) -> None:
    made = world(
        [
            Page(
                "101", "PEP 101", [["PEP 101", "Replaces: 102", "Do it."]], facts=[("PEP 101", "replaces", "PEP 102")]
            ),
            Page("102", "PEP 102", [["Doing micro releases."]]),
        ]
    )
    answer = await ask(made, executor, q="What replaces PEP 102?", mode="graph")
    replacing = next(hit for hit in answer.hits if hit.title == "PEP 101")
    assert [(edge.source, edge.edge, edge.target) for edge in replacing.path] == [
        ("question", "names", "PEP 102"),
        ("PEP 101", "replaces", "PEP 102"),
    ]


async def test_a_shared_entity_is_a_step_of_its_own_with_evidence_on_both_sides(executor: Executor) -> None:
    made = world(
        [
            Page("a", "Alpha Film", [["Alpha Film was shot in Lisbon."]], ["Lisbon"]),
            Page("b", "Tram lines", [["Yellow trams climb the hills of Lisbon."]], ["Lisbon"]),
        ]
    )
    answer = await ask(made, executor, q="What runs where Alpha Film was shot?", mode="graph")
    trams = next(hit for hit in answer.hits if hit.title == "Tram lines")
    steps = [(edge.source, edge.edge, edge.target, edge.evidence) for edge in trams.path]
    assert steps == [
        ("question", "names", "Alpha Film", "Alpha Film"),
        ("Alpha Film", "mentions", "Lisbon", "Alpha Film was shot in Lisbon."),
        ("Lisbon", "mentioned_in", "Tram lines", "Yellow trams climb the hills of Lisbon."),
    ]
    assert all(edge.chunk_id for edge in trams.path[1:])


async def test_a_channel_that_breaks_while_a_page_is_deepened_is_reported(executor: Executor) -> None:
    one_long_document = Page("long", "Long", [[f"The river has bend {number}."] for number in range(80)])
    made = world([one_long_document])
    _, text, _ = made
    whole = text.keyword_search

    def first_only(query: str, limit: int, collection: str | None) -> Any:
        found = whole(query, limit, collection)
        text.broken.add("keyword_search")
        return found

    text.keyword_search = first_only  # type: ignore[method-assign]
    answer = await ask(made, executor, q="river", mode="keyword", group="document", k=5)
    assert [hit.document_id for hit in answer.hits] == ["long"]
    assert "the disk is gone" in answer.done.failed_channels["keyword"]
