"""Fields of what is found: counted, and ordered by."""

from concurrent.futures import Executor
from typing import Any

import pytest

from query_api.retrieval.by_field import MOST_SORTED, sort_by_field
from query_api.retrieval.fusion import RankedPassage
from schemas.ids import DocumentKey
from tests.support.fakes.text_stores import Page, index_of, world
from tests.unit.query_api.index.text.test_filter_evaluation import row
from tests.unit.query_api.retrieval.asking import ask


def page(name: str, text: str = "The weir was rebuilt.", **metadata: Any) -> Page:
    return Page(name, name.title(), [[text]], collection="c", metadata=metadata)


PAGES = [
    page("a", status="Draft", published="2021-03-01", pages=9, tags=["x", "y"]),
    page("b", status="draft", published="2019", pages=10, tags=["x"]),
    page("c", status="Final", published="12 May 2020", pages="100", tags=["z"]),
    page("d", pages=2.5, title="zinc"),
    page("e", "Nothing of that.", status="Final", published="2018-01-01"),
]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("published", "e b c a d"),
        ("-published", "a c b e d"),
        ("pages", "d a b c e"),
        ("-pages", "c b a d e"),
        ("-tags", "c a b d e"),
        ("tags", "a b c d e"),
        ("status", "a b c e d"),
        ("document", "a b c d e"),
        ("-document", "e d c b a"),
        ("metadata.title", "d a b c e"),
    ],
)
def test_an_order_is_sorted_by_a_field(sort: str, expected: str) -> None:
    order = [RankedPassage(name, None, 1.0, {}, {}, DocumentKey("c", name)) for name in "abcde"]
    documents = index_of([row(each.id, dict(each.metadata)) for each in PAGES])
    assert " ".join(each.passage_id for each in sort_by_field(order, sort, documents)) == expected


def test_what_lies_behind_the_first_places_stays_there() -> None:
    order = [RankedPassage(f"{n}", None, 1.0, {}, {}, DocumentKey("c", f"{n}")) for n in range(MOST_SORTED + 2)]
    documents = index_of([row(f"{n}", {"n": n}) for n in range(MOST_SORTED + 2)])
    places = [int(each.passage_id) for each in sort_by_field(order, "-n", documents)]
    assert places == [*range(MOST_SORTED - 1, -1, -1), MOST_SORTED, MOST_SORTED + 1]


@pytest.mark.parametrize("group", ["passage", "chunk", "document"])
async def test_pages_of_a_sorted_search_are_those_of_one(executor: Executor, group: str) -> None:
    made = world(PAGES)
    asked = {"sort": "-published", "mode": "keyword", "group": group}
    whole = [hit.document_id for hit in (await ask(made, executor, "weir", **asked)).hits]
    assert whole == ["a", "c", "b", "d"]
    pages = [await ask(made, executor, "weir", k=1, offset=at, **asked) for at in range(4)]
    assert [hit.document_id for each in pages for hit in each.hits] == whole


@pytest.mark.parametrize(
    ("question", "request_", "counts", "missing"),
    [
        ("weir", {"mode": "keyword"}, [("draft", 2), ("Final", 1)], 1),
        ("weir", {"mode": "keyword", "k": 1, "offset": 2}, [("draft", 2), ("Final", 1)], 1),
        ("weir", {"mode": "hybrid"}, [("draft", 2), ("Final", 2)], 1),
        ("weir", {"mode": "hybrid", "filter": ["published<2021"]}, [("Final", 2), ("draft", 1)], 0),
        ('"nothing of"', {"mode": "hybrid"}, [("Final", 1)], 0),
        ("weir -nothing", {"mode": "vector"}, [("draft", 2), ("Final", 1)], 1),
        ("absent", {"mode": "keyword"}, [], 0),
    ],
)
async def test_values_are_counted_over_the_documents_found(
    executor: Executor, question: str, request_: dict[str, Any], counts: list[tuple[str, int]], missing: int
) -> None:
    done = (await ask(world(PAGES), executor, question, facets="status", **request_)).done
    (facet,) = done.facets
    assert [(each.value, each.documents) for each in facet.values] == counts
    assert (facet.field, facet.other, facet.missing) == ("status", 0, missing)
    assert [each.filter for each in facet.values] == [f"status={value}" for value, _ in counts]


async def test_facets_are_bounded_and_say_what_is_left_out(executor: Executor) -> None:
    many = [page(f"p{n:02}", code=[f"only {n:02}", "both" if n % 2 else "all"]) for n in range(30)]
    done = (await ask(world(many), executor, "weir", facets=["code", "document"], k=2)).done
    code, document = done.facets
    assert [(each.value, each.documents) for each in code.values][:3] == [("all", 15), ("both", 15), ("only 00", 1)]
    assert (len(code.values), code.other, code.missing) == (20, 12, 0)
    assert (len(document.values), document.other) == (20, 10)
