"""A search over doubles of the stores: what is streamed, what is found, and by which path."""

from concurrent.futures import Executor

import pytest

from query_api.retrieval.search_context import SearchFailed
from schemas.errors import MalformedFilter
from schemas.frames import Meta
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import PAGES, SIDE_BY_SIDE, ask


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
    assert set(answer.hits[1].scores) == {"vector", "keyword", "graph"}
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
    answer = await ask(made, executor, mode="graph_rerank", collection="wiki")
    assert set(answer.stages) == {"embed", "vector", "graph"}
    assert sorted(answer.titles) == sorted((await ask(made, executor, mode="vector", collection="wiki")).titles)
    made[1].broken.add("vector_search")
    with pytest.raises(SearchFailed, match="vector: Could not vector_search"):
        await ask(made, executor, mode="graph_rerank", collection="wiki")


async def test_the_same_search_gives_the_same_hits(executor: Executor) -> None:
    made = world(PAGES)
    first = await ask(made, executor)
    second = await ask(made, executor)
    assert [hit.model_dump() for hit in first.hits] == [hit.model_dump() for hit in second.hits]


async def test_a_fact_that_reads_the_other_way_round_leads_to_its_subject_and_says_so(executor: Executor) -> None:
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
    assert [(edge.source, edge.edge, edge.target, edge.inverse) for edge in replacing.path] == [
        ("question", "names", "PEP 102", False),
        ("PEP 102", "replaces", "PEP 101", True),
    ]


async def test_a_fact_that_no_sentence_states_shows_none(executor: Executor) -> None:
    """It stood in the front matter; another sentence of the chunk is no evidence of it."""
    made = world(
        [
            Page("w", "Weirs", [["A weir holds water back."]], facts=[("Weirs", "written_by", "Ann Lee")]),
            Page("a", "Ann Lee", [["Nothing is known of her."]]),
        ]
    )
    answer = await ask(made, executor, q="Who wrote Weirs?", mode="graph")
    ann = next(hit for hit in answer.hits if hit.title == "Ann Lee")
    assert [(edge.edge, edge.evidence) for edge in ann.path] == [("names", "Weirs"), ("written_by", None)]


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


async def test_what_words_alone_lead_to_is_told_as_no_edge_with_the_sentence_that_holds_them(
    executor: Executor,
) -> None:
    """The graph does not know that the last page speaks of Jane Doe; a fact that is called `continues` is an edge."""
    made = world(
        [
            Page("a", "Alpha Film", [["Alpha Film was directed by Jane Doe."]], ["Jane Doe"]),
            Page("c", "A life", [["It began early. Jane Doe came from Lisbon."]]),
            *(Page(f"d{at}", f"Director {at}", [["A director was born."]]) for at in range(6)),
            Page("b", "Beta Film", [["Beta Film continues Alpha Film."]], facts=[FACT]),
        ]
    )
    answer = await ask(made, executor, q="Where was the director of Alpha Film born?", mode="graph")
    paths = {hit.title: [(edge.edge, edge.by, edge.evidence) for edge in hit.path] for hit in answer.hits}
    assert paths["A life"] == [
        ("names", "question", "Alpha Film"),
        ("continues", "words", "Jane Doe came from Lisbon."),
    ]
    assert paths["Beta Film"][-1] == ("continues", "graph", "Beta Film continues Alpha Film.")


FACT = ("Beta Film", "continues", "Alpha Film")
