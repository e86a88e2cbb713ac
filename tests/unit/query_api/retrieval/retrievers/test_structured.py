"""Questions about documents' own fields: what is recognised, what stays silent, and the order that comes of it."""

from typing import Any

import pytest

from query_api.index.text.text_segments import EVERYTHING, Scope
from query_api.retrieval.retrievers.structured import Structured, structured_search
from schemas.ids import DocumentKey
from tests.support.fakes.text_stores import InMemoryText, Page, WordCounts


def page(name: str, title: str, text: str, **metadata: Any) -> Page:
    return Page(name, title, [[text], ["A later passage."]], collection="c", metadata=metadata)


PAGES = [
    page(
        "pep-0008", "Style Guide", "How code is laid out.", author=["Ann Lee"], status="Active", created="05-Jul-2001"
    ),
    page(
        "pep-0020",
        "PEP 20 – The Zen of It",
        "Beautiful code.",
        author=["Bo Ek"],
        status="Active",
        created="19-Aug-2004",
    ),
    page(
        "pep-0102", "Micro Releases", "A code cycle.", author="Bo Ek, Ann Lee", status="Withdrawn", created="2001-01-22"
    ),
    page("CACM-0001", "Algebraic Language", "A report.", authors=["Perlis, A. J."], date="December, 1958", volume=1),
    page("Case.md", "One", "It is."),
    page("case.md", "Two", "Case md, case md: the case."),
    page("guide/intro.md", "Introduction", "Consent and how it is withdrawn.", keywords=["consent"], year=1999),
    *(page(f"x-{number}", f"Other {number}", "Nothing of note.", status="Final") for number in range(20)),
]


def ask(question: str, scope: Scope = EVERYTHING, limit: int = 10) -> Structured:
    text = InMemoryText({each.key: each for each in PAGES}, WordCounts({}))
    return structured_search(text, question, limit, scope)


@pytest.mark.parametrize(
    ("question", "expected", "matches"),
    [
        ("pep 8", "pep-0008", ("document=pep 8",)),
        ("Who wrote PEP-0008?", "pep-0008", ("document=PEP-0008",)),
        ("what does CACM 1 say", "CACM-0001", ("document=CACM 1",)),
        ("show guide/intro.md", "guide/intro.md", ("document=guide/intro.md",)),
        ("Algebraic Language", "CACM-0001", ("title=Algebraic Language",)),
        ("The Zen of It", "pep-0020", ("title=The Zen of It",)),
        ("papers by A. J. Perlis", "CACM-0001", ("authors=A. J. Perlis",)),
        ("papers by Perlis", "CACM-0001", ("authors=Perlis",)),
        ("anything in December 1958", "CACM-0001", ("date=in December 1958",)),
        ("what was published in 1999?", "guide/intro.md", ("year=in 1999",)),
        ("volume 1", "CACM-0001", ("volume=volume 1",)),
        ("withdrawn proposals", "pep-0102", ("status=withdrawn",)),
        ("proposals by Ann Lee created in January 2001", "pep-0102", ("author=Ann Lee", "created=in January 2001")),
        ("Which active proposals did Ann Lee write?", "pep-0008", ("status=active", "author=Ann Lee")),
        ("proposals by Bo Ek before 2002", "pep-0102", ("author=Bo Ek", "created|date|year=before 2002")),
    ],
)
def test_what_a_question_names_is_found_first_with_the_reason(
    question: str, expected: str, matches: tuple[str, ...]
) -> None:
    found = ask(question)
    first = found.candidates[0]
    assert (first.key, first.score) == (DocumentKey("c", expected), 1.0)
    assert found.matches[first.passage_id] == matches


@pytest.mark.parametrize(
    "question",
    [
        "pep 8",
        "papers by A. J. Perlis",
        "withdrawn proposals",
        "PEPs created in 2004",
        "reports of 2001",
        "what came out in 2001?",
    ],
)
def test_a_question_made_of_constraints_is_decided_by_them(question: str) -> None:
    assert ask(question).conclusiveness == 1.0


@pytest.mark.parametrize(
    "question",
    [
        "how is consent withdrawn in clinical trials",
        "consent",
        "an active volcano and a final report of its eruption",
        "what is the algebraic language of the committee about",
        "3 code cycles for 8 nodes",
        "what is our revenue of 2001?",
        "revenue in December 1958",
        "which beaches were open before 2002",
        "nothing that any document names",
        "?!",
    ],
)
def test_a_common_word_that_happens_to_be_a_value_decides_nothing(question: str) -> None:
    assert ask(question).conclusiveness == 0.0


def test_a_document_named_in_passing_counts_a_little() -> None:
    found = ask("why did the community never follow the naming conventions of pep 8 with enthusiasm")
    assert [candidate.key.document_id for candidate in found.candidates] == ["pep-0008"]
    assert 0 < found.conclusiveness < 0.2


def test_what_has_all_that_was_asked_comes_before_what_has_a_part() -> None:
    found = ask("Withdrawn proposals by Ann Lee")
    assert (found.candidates[0].key.document_id, found.candidates[0].score) == ("pep-0102", 1.0)
    assert all(each.score < 1.0 for each in found.candidates[1:])


def test_what_equals_a_value_comes_before_what_has_it_among_others() -> None:
    listing = page("a-0", "Two", "A new one about proposals.", author="Cy Oz, Dee Oh", status="Rejected")
    template = page("a-1", "Template", "How proposals are written.", status="<REQUIRED: Accepted | Rejected | Final>")
    alone = page("b-0", "One", "Another.", author="Dee Oh", status="Rejected")
    array = page("b-1", "Three", "Another.", author=["Cy Oz", "Dee Oh"], status="Rejected")
    text = InMemoryText({each.key: each for each in [*PAGES, listing, template, alone, array]}, WordCounts({}))

    rejected = structured_search(text, "rejected proposals", 10, EVERYTHING)
    assert [each.key.document_id for each in rejected.candidates] == ["a-0", "b-0", "b-1", "a-1"]
    assert [each.score for each in rejected.candidates] == [1.0, 1.0, 1.0, 0.5]
    by_one = structured_search(text, "proposals by Dee Oh", 10, EVERYTHING)
    assert [each.key.document_id for each in by_one.candidates] == ["b-0", "b-1", "a-0"]
    assert {each.score for each in by_one.candidates} == {1.0}


def test_each_document_is_shown_by_the_passage_that_fits_the_words_else_by_its_first() -> None:
    text = InMemoryText({each.key: each for each in PAGES}, WordCounts({}))
    later = structured_search(text, "pep 8: a later passage", 5, EVERYTHING).candidates[0]
    assert later.passage_id == PAGES[0].passage_ids()[1]
    first = structured_search(text, "CACM-0001", 5, EVERYTHING).candidates[0]
    assert first.passage_id == PAGES[3].passage_ids()[0]


def test_only_documents_of_the_scope_are_found_and_counted() -> None:
    only = Scope("c", frozenset({DocumentKey("c", "pep-0020")}))
    assert [each.key.document_id for each in ask("Active proposals", only).candidates] == ["pep-0020"]
    assert ask("pep 8", only) == ask("pep 8", Scope("elsewhere")) == ask("")


def test_no_more_documents_than_asked_for() -> None:
    assert len(ask("final proposals", limit=3).candidates) == 3
    assert len(ask("final proposals", limit=99).candidates) == 20


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Case.md", [("Case.md", 1.0), ("case.md", 0.5)]),
        ("show case.md", [("case.md", 1.0), ("Case.md", 0.5)]),
        ("CASE.MD", [("case.md", 1.0), ("Case.md", 1.0)]),
    ],
)
def test_of_ids_that_differ_by_case_the_one_that_is_said_comes_first(
    question: str, expected: list[tuple[str, float]]
) -> None:
    assert [(candidate.key.document_id, candidate.score) for candidate in ask(question).candidates] == expected
