"""Which hits a search shows and what it tells beside them: duplicates, floors, contexts, factors."""

from collections.abc import Mapping
from concurrent.futures import Executor

import numpy as np
import pytest
from numpy.typing import NDArray

from query_api.retrieval.confidence import FEATURES
from query_api.retrieval.search_context import SearchSettings
from schemas.errors import MalformedFilter
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import PAGES, ask

COPIES = [
    Page("first", "Weirs", [["A weir holds the river back."]]),
    Page("copy", "Weirs", [["A  weir holds the RIVER back."]]),
    Page("nearly", "Weirs", [["A weir holds the river back here."]]),
    Page("other", "Boats", [["A boat goes down the river."], ["A second boat follows on the river."]]),
]
QUESTION = "what holds the river back"


class ByRank:
    """Says of each place what is written down for its rank, 0 of the others."""

    def __init__(self, by_rank: Mapping[int, float]) -> None:
        self._by_rank = by_rank

    def probabilities(self, way: str, features: NDArray[np.float64]) -> NDArray[np.float64]:
        assert way == "hybrid"
        ranks = np.exp(features[:, FEATURES.index("log_rank")]).round().astype(int).tolist()
        return np.array([self._by_rank.get(rank, 0.0) for rank in ranks])


async def test_passages_of_the_same_text_come_once_and_the_others_are_told(executor: Executor) -> None:
    answer = await ask(world(COPIES), executor, q=QUESTION, duplicates="exact")
    assert sorted(answer.titles) == ["Boats", "Boats", "Weirs", "Weirs"]
    told = {hit.document_id: [each.document_id for each in hit.duplicates] for hit in answer.hits if hit.duplicates}
    assert told in ({"first": ["copy"]}, {"copy": ["first"]})


async def test_all_are_kept_unless_asked_whatever_the_mode(executor: Executor) -> None:
    made = world(COPIES)
    assert len((await ask(made, executor, q=QUESTION)).hits) == 5
    assert len((await ask(made, executor, q=QUESTION, group="document")).hits) == 4
    assert len((await ask(made, executor, q=QUESTION, group="document", duplicates="exact")).hits) == 3
    assert len((await ask(made, executor, q=QUESTION, mode="keyword", duplicates="exact")).hits) == 4
    assert len((await ask(made, executor, q=QUESTION, group="chunk", duplicates="exact")).hits) == 4


async def test_what_is_equal_goes_when_asked_and_no_vector_is_shown(executor: Executor) -> None:
    made = world(COPIES)
    answer = await ask(made, executor, q=QUESTION, duplicates="semantic", duplicate_threshold=0.9)
    assert sorted(answer.titles) == ["Boats", "Boats", "Weirs"]
    (weirs,) = (hit for hit in answer.hits if hit.title == "Weirs")
    assert len(weirs.duplicates) == 2
    assert min(each.similarity for each in weirs.duplicates) > 0.9
    assert "vector" not in answer.hits[0].model_dump(exclude={"scores", "ranks", "channels"})


async def test_a_default_search_asks_for_no_vectors_and_no_chunks_around(executor: Executor) -> None:
    snapshot, text, encoder = world(COPIES)
    await ask((snapshot, text, encoder), executor, q=QUESTION)
    assert text.calls["vectors"] == text.calls["chunks_in"] == 0
    assert text.calls["passages"] <= 2


async def test_pages_without_duplicates_are_one_long_page(executor: Executor) -> None:
    made = world([Page(f"d{at:03}", f"Doc {at % 9}", [[f"common words {at % 40}"]]) for at in range(200)])
    for duplicates in ("exact", "semantic"):
        whole = await ask(made, executor, q="common words", duplicates=duplicates, k=150)
        pages = []
        for offset in range(0, 150, 11):
            page = await ask(made, executor, q="common words", duplicates=duplicates, k=11, offset=offset)
            pages += [(hit.rank, hit.chunk_id, hit.confidence) for hit in page.hits]
        assert pages == [(hit.rank, hit.chunk_id, hit.confidence) for hit in whole.hits]
        assert len(pages) == {"exact": 40, "semantic": len(pages)}[duplicates]
        assert whole.done.next_offset is None


async def test_no_document_fills_the_page(executor: Executor) -> None:
    long = Page("long", "Rivers", [[f"A river, part {part}."] for part in range(30)])
    made = world([long, *(Page(f"d{at}", "Brook", [[f"A brook and a river {at}."]]) for at in range(5))])
    answer = await ask(made, executor, q="river", max_per_document=2, k=7)
    documents = [hit.document_id for hit in answer.hits]
    assert len(documents) == 7
    assert documents.count("long") == 2


BY = ["Ann", "ann", "Bo", "Cy"]
SHELF = [
    Page(f"b{at:03}", f"Book {at}", [[f"A river {'mud ' * (at % 7)}{at}."]], metadata={"by": {"name": BY[at % 4]}})
    for at in range(100)
] + [Page("none", "Loose Leaf", [["A river on a loose leaf."]], metadata={})]


async def test_no_value_of_a_field_fills_the_page_unless_documents_lack_it(executor: Executor) -> None:
    answer = await ask(world(SHELF), executor, q="river", diversity="by.name", k=50)
    names = [hit.metadata["by"]["name"].lower() if hit.metadata else None for hit in answer.hits]
    assert {name: names.count(name) for name in names} == {"ann": 2, "bo": 2, "cy": 2, None: 1}
    assert answer.done.next_offset is None
    one_each = await ask(world(SHELF), executor, q="river", diversity="metadata.by.name", max_per_value=1, k=50)
    assert len(one_each.hits) == 4


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
async def test_pages_of_diverse_hits_are_one_long_page(executor: Executor, mode: str) -> None:
    made = world(SHELF)
    asked = {"q": "a river of mud", "diversity": "by.name", "max_per_value": 15, "mode": mode}
    whole = await ask(made, executor, k=150, **asked)
    assert len(whole.hits) == 46
    for size in (4, 11):
        pages = []
        offset: int | None = 0
        while offset is not None:
            page = await ask(made, executor, k=size, offset=offset, **asked)
            pages += [(hit.rank, hit.chunk_id) for hit in page.hits]
            offset = page.done.next_offset
        assert pages == [(hit.rank, hit.chunk_id) for hit in whole.hits]


async def test_a_field_that_no_document_has_is_refused_with_those_there_are(executor: Executor) -> None:
    with pytest.raises(MalformedFilter, match=r"has a field 'author'; there are document, title, .*by\.name"):
        await ask(world(SHELF), executor, q="river", diversity="author")
    assert (await ask(world(SHELF), executor, q="river", diversity="author", collection="empty")).hits == []


async def test_hits_below_the_floor_are_left_out_and_the_answer_ends(executor: Executor) -> None:
    settings = SearchSettings(calibration=ByRank({1: 0.9, 2: 0.6, 3: 0.2}))
    answer = await ask(world(COPIES), executor, q=QUESTION, settings=settings, min_confidence=0.5)
    assert [(hit.rank, hit.confidence) for hit in answer.hits] == [(1, 0.9), (2, 0.6)]
    assert answer.done.next_offset is None


async def test_a_hit_has_its_confidence_in_a_word(executor: Executor) -> None:
    settings = SearchSettings(calibration=ByRank({1: 0.8, 2: 0.12, 3: 0.1199}))
    answer = await ask(world(COPIES), executor, q=QUESTION, settings=settings)
    assert [(hit.likelihood, hit.unlikely) for hit in answer.hits[:3]] == [
        ("likely", False),
        ("possible", False),
        ("unlikely", True),
    ]


async def test_a_word_that_no_document_has_makes_every_hit_less_likely(executor: Executor) -> None:
    asked = {"mode": "keyword"}
    known, unheard = [
        (await ask(world(COPIES), executor, q=question, **asked)).hits[0].confidence
        for question in (QUESTION, f"{QUESTION} in Zanzibar")
    ]
    assert known is not None
    assert unheard is not None
    assert unheard < known


async def test_a_hit_is_as_likely_alone_on_its_page_as_among_others(executor: Executor) -> None:
    made = world(COPIES)
    pages = [(await ask(made, executor, q=QUESTION, mode="keyword", k=k)).hits[0] for k in (1, 2, 10)]
    assert len({hit.confidence for hit in pages}) == 1


async def test_without_a_floor_each_hit_tells_its_confidence(executor: Executor) -> None:
    for mode in ("hybrid", "vector", "keyword", "graph", "graph_rerank"):
        answer = await ask(world(PAGES), executor, mode=mode)
        assert answer.hits, mode
        assert all(hit.confidence is not None and 0 <= hit.confidence <= 1 for hit in answer.hits), mode


async def test_a_store_that_cannot_compare_leaves_hits_without_confidence(executor: Executor) -> None:
    snapshot, text, encoder = world(PAGES)
    text.broken = {"compare_words"}
    answer = await ask((snapshot, text, encoder), executor, mode="vector")
    assert answer.hits
    assert {hit.confidence for hit in answer.hits} == {None}


async def test_contexts_are_shown_beside_the_chunk(executor: Executor) -> None:
    made = world([Page("tale", "Tale", [["One begins.", "Two goes on.", "Three turns."], ["Four ends."]])])
    (hit, *_) = (await ask(made, executor, q="three turns", context="window", context_chunks=1)).hits
    assert hit.text == "Three turns."
    assert hit.context_text == "Two goes on. Three turns. Four ends."
    assert len(hit.context_chunk_ids) == 3
    (hit, *_) = (await ask(made, executor, q="three turns", context="section")).hits
    assert hit.context_text == "One begins. Two goes on. Three turns. Four ends."
    (hit, *_) = (await ask(made, executor, q="three turns")).hits
    assert hit.context_text is None
    assert hit.context_chunk_ids == []


async def test_factors_are_told_when_asked_for_and_add_up(executor: Executor) -> None:
    answer = await ask(world(PAGES), executor, explain=True)
    factors = {hit.document_id: hit.factors for hit in answer.hits if hit.collection == "wiki"}
    alpha, beta = factors["alpha"], factors["beta"]
    assert alpha is not None
    assert beta is not None
    weights = {"semantic": 25, "exact": 20, "recency": 15, "centrality": 15, "relationship": 10, "entity": 10}
    parts = alpha.model_dump()
    total = sum(weight * parts[name] for name, weight in weights.items()) + 5 * alpha.source
    assert abs(alpha.weighted - total / 100) < 1e-3
    assert alpha.entity == 1.0  # the question names it
    assert beta.entity == 0.0
    assert alpha.recency < 1e-9  # its record is of 1970
    assert alpha.source == 0.6667  # a version and metadata, and no URI
    assert {hit.factors for hit in (await ask(world(PAGES), executor)).hits} == {None}


async def test_who_is_named_elsewhere_is_more_central(executor: Executor) -> None:
    pages = [
        Page("rhine", "Rhine", [["The Rhine is a river."]], ["Rhine"]),
        *(Page(f"town{at}", f"Town {at}", [["A town on the Rhine river."]], ["Rhine"]) for at in range(10)),
    ]
    answer = await ask(world(pages), executor, q="which river is it", explain=True, k=20)
    central = {hit.document_id: hit.factors.centrality for hit in answer.hits if hit.factors}
    assert central["rhine"] == 0.5  # ten passages of other documents: 10 / (10 + 10)
    assert central["town1"] == 0.0
