"""How a question was read stands in the first part of the answer, and the caller may know better."""

from concurrent.futures import Executor
from typing import Any

import pytest
from pydantic import ValidationError

from indexer.errors import TransientStoreError
from query_api.query.field_constraints import recognise
from query_api.retrieval import graph_channel, stages
from query_api.retrieval.retrievers import structured
from query_api.retrieval.retrievers.walks import expansion
from schemas.frames import Meta
from schemas.hits import Understanding
from schemas.ids import entity_id
from schemas.search import SearchRequest
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import PAGES, QUESTION, Answer, ask


def understood(answer: Answer) -> Understanding:
    meta = answer.parts[0]
    assert isinstance(meta, Meta)
    assert meta.understanding is not None
    return meta.understanding


async def test_what_a_question_names_is_told_with_the_document_it_means(executor: Executor) -> None:
    (name,) = understood(await ask(world(PAGES), executor)).names

    assert name.model_dump() == {
        "words": "Alpha Film",
        "name": "alpha film",
        "collection": "wiki",
        "node": entity_id("wiki", "alpha film"),
        "document_id": "alpha",
        "title": "Alpha Film",
        "strength": 0.8,
        "others": 0,
    }


async def test_an_entity_without_a_document_of_its_own_is_told_without_one(executor: Executor) -> None:
    (name,) = understood(await ask(world(PAGES), executor, "What lies on the Tagus?")).names

    assert (name.words, name.document_id, name.title, name.strength) == ("Tagus", None, None, None)


async def test_names_that_the_caller_gives_lead_on_in_place_of_those_in_the_question(executor: Executor) -> None:
    question = "Where was the director of that picture born?"
    read = await ask(world(PAGES), executor, question, collection="wiki")
    given = await ask(world(PAGES), executor, question, collection="wiki", names=["alpha  film", "nobody"])

    assert understood(read).names == ()
    assert [(name.words, name.document_id) for name in understood(given).names] == [("alpha  film", "alpha")]
    alpha = next(hit for hit in given.hits if hit.title == "Alpha Film")
    assert [(step.source, step.edge, step.target) for step in alpha.path] == [("question", "names", "Alpha Film")]
    assert not any(step.edge == "names" for hit in read.hits for step in hit.path)


async def test_a_caller_may_say_that_nothing_is_named(executor: Executor) -> None:
    assert understood(await ask(world(PAGES), executor, names=[""])).names == ()


PROPOSALS = [
    Page(
        "pep-1", "Types", [["Hints."]], metadata={"status": "Final", "author": "Bo Ek", "created": "2002", "volume": 3}
    ),
    Page("pep-2", "Words", [["Keys."]], metadata={"status": "Draft", "author": "Ann Lee", "created": "2004"}),
]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (
            "Which final proposals by Bo Ek were created between 2001 and 2002?",
            [
                ("final", ("status",), "=", "final"),
                ("Bo Ek", ("author",), "=", "Bo Ek"),
                ("between 2001 and 2002", ("created",), ">=", "2001"),
                ("between 2001 and 2002", ("created",), "<=", "2002"),
            ],
        ),
        ("What says pep-2?", [("pep-2", ("document",), "=", "pep-2")]),
        ("proposals of volume 3", [("volume 3", ("volume",), "=", "3")]),
        ("Where does it rain?", []),
    ],
)
async def test_what_a_question_asks_of_fields_is_told_as_filters_would_have_it(
    executor: Executor, question: str, told: list[tuple[str, tuple[str, ...], str, str]]
) -> None:
    fields = understood(await ask(world(PROPOSALS), executor, question)).fields

    assert [(each.words, each.fields, each.operator, each.value) for each in fields] == told
    if told:  # and as filters they leave one document
        filters = tuple(f"{field}{each.operator}{each.value}" for each in fields for field in each.fields)
        left = await ask(world(PROPOSALS), executor, "hints and keys", filter=filters, mode="keyword")
        assert len(left.titles) == 1


async def test_fields_are_looked_for_once_and_only_where_their_channel_is_asked(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(
        structured, "recognise", lambda question, *more: looked.append(question) or recognise(question, *more)
    )
    assert understood(await ask(world(PROPOSALS), executor, "pep-2", mode="keyword")).fields == ()
    assert looked == []
    assert len(understood(await ask(world(PROPOSALS), executor, "pep-2")).fields) == 1
    assert looked == ["pep-2"]


@pytest.mark.parametrize("mode", ["vector", "keyword", "structured"])
async def test_no_name_is_looked_up_where_the_graph_is_not_asked(executor: Executor, mode: str) -> None:
    told = understood(await ask(world(PAGES), executor, mode=mode))

    assert (told.names, told.channels) == ((), (mode,))


@pytest.mark.parametrize(
    ("asked", "channels"),
    [
        ({}, ("vector", "keyword", "structured", "graph")),
        ({"channels": ["graph", "keyword"]}, ("keyword", "graph")),
        ({"mode": "graph_rerank"}, ("vector", "graph")),
    ],
)
async def test_the_channels_that_are_asked_are_told(
    executor: Executor, asked: dict[str, Any], channels: tuple[str, ...]
) -> None:
    assert understood(await ask(world(PAGES), executor, **asked)).channels == channels


@pytest.mark.parametrize(
    ("question", "asked", "hops"),
    [
        (QUESTION, {}, None),
        (QUESTION, {"graph_method": "pagerank"}, None),
        (QUESTION, {"graph_method": "expansion"}, 2),
        ("Why was Alpha Film made?", {"graph_method": "expansion"}, 1),
        ("Why was Alpha Film made?", {"graph_method": "expansion", "intent": "find"}, 2),
        ("Why was Alpha Film made?", {"graph_method": "expansion", "hops": 2}, 2),
    ],
)
async def test_how_far_the_graph_is_followed_is_told(
    executor: Executor, question: str, asked: dict[str, Any], hops: int | None
) -> None:
    assert understood(await ask(world(PAGES), executor, question, **asked)).hops == hops


@pytest.mark.parametrize("hops", [1, 2])
async def test_the_graph_is_followed_as_far_as_is_told(
    executor: Executor, monkeypatch: pytest.MonkeyPatch, hops: int
) -> None:
    gone: list[int] = []
    monkeypatch.setattr(
        graph_channel, "expansion", lambda beginning: gone.append(beginning.hops) or expansion(beginning)
    )

    answer = await ask(world(PAGES), executor, graph_method="expansion", hops=hops)

    assert gone == [hops] == [understood(answer).hops]


@pytest.mark.parametrize("mode", ["vector", "keyword", "structured"])
def test_names_where_the_graph_is_not_asked_are_refused(mode: str) -> None:
    with pytest.raises(ValidationError, match=f"mode={mode} does not"):
        SearchRequest(q="x", mode=mode, names=("Ada",))  # type: ignore[arg-type]


def test_hops_without_an_expansion_are_refused() -> None:
    with pytest.raises(ValidationError, match="graph_method=expansion"):
        SearchRequest(q="x", hops=1)


async def test_names_that_cannot_be_looked_up_cost_the_graph_and_nothing_else(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise TransientStoreError("The graph is away.")

    monkeypatch.setattr(stages, "link_names", broken)
    answer = await ask(world(PAGES), executor)

    assert understood(answer).names == ()
    assert answer.done.failed_channels == {"graph": "The graph is away."}
    assert answer.hits


async def test_the_parts_of_a_question_are_told_with_what_the_whole_names(executor: Executor) -> None:
    told = understood(await ask(world(PAGES), executor, "Compare Alpha Film and Beta Film", decompose=True))

    assert told.decomposed
    assert {name.document_id for name in told.names} == {"alpha", "beta"}


@pytest.mark.parametrize("title", ["", "Tagus"])
async def test_a_name_in_many_collections_is_told_by_a_few_and_how_many_more_there_are(
    executor: Executor, title: str
) -> None:
    """Once as an entity that texts mention, once as the title of a document in each collection."""
    pages = [
        Page("it", title or f"Page {number}", [["The Tagus rises."]], ["Tagus"], collection=f"c{number:04}")
        for number in range(300)
    ]
    everywhere = world(pages)
    names = understood(await ask(everywhere, executor, "What lies on the Tagus?")).names
    assert len(names) <= 5
    assert sum(name.others for name in names) == (295 if not title else 0)  # titles that so many share name nothing
    (one,) = understood(await ask(everywhere, executor, "What lies on the Tagus?", collection="c0007")).names
    assert (one.collection, one.others) == ("c0007", 0)
