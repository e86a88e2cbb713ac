"""What may be left out of a sentence."""

import pytest

from query_api.study.cloze import clozes, initials_of
from tests.unit.query_api.study.course import course, material_of, page


def answers(text: str, facts: list[tuple[str, str, str]] | None = None) -> set[str]:
    return {each.answer for each in clozes(material_of([page("one", text, facts or [])], "one"))}


def test_what_is_defined_comes_first_and_dates_come_last() -> None:
    found = clozes(material_of(course()))
    assert found[0].with_blank("___") == "___ is the capital of Portugal and lies on the river Tagus."
    assert [each.answer for each in found].index("1912") > [each.answer for each in found].index("Bletchley Park")
    assert found == clozes(material_of(course()))


def test_a_quantity_may_be_missing_where_it_is_the_only_number() -> None:
    text = "Bakers may leave dough in the oven for 40 minutes each day."
    assert answers(text) == {"40"}
    assert answers(text.replace("each day", "on 2 days")) == set()
    assert answers(text.replace("40 minutes", "Gate 40 minutes")) == set()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Lisbon is the capital of Portugal and lies on the river Tagus.", {"Lisbon", "Portugal", "Tagus"}),
        ("Lisbon is a town, and Lisbon was the capital of old Portugal.", {"Portugal"}),  # twice in it
        ("Lisbon is a town whose Lisboners sail from Portugal by a Lisbon-built ship.", {"Portugal"}),
        ("Ada Lovelace (AL) was born in Lisbon and wrote the first program.", {"Lisbon"}),  # its initials are there
        ("Porto Lisbon was built beside Faro in the south by fishing people.", {"Faro"}),  # parts of a longer name
        ("Lisbon of Portugal was built beside Faro by fishing people and kings.", {"Portugal", "Faro"}),
        ("Some of the Lisbon people were born in Faro and went on to sea.", set()),  # points back
        ("The Portugal people of Lisbon were born in Faro and went on to sea.", {"Lisbon", "Faro"}),  # an attribute
    ],
)
def test_what_is_left_does_not_give_it_away(text: str, missing: set[str]) -> None:
    assert answers(text, [("Lisbon", "located_in", "Portugal")]) == missing


def test_names_without_a_verb_or_another_name_are_no_fact() -> None:
    assert answers("Sponsor Ada Lovelace, code Alan Turing, six weeks in all.") == set()
    assert answers("Lisbon has grown a great deal in the last few decades.") == set()
    assert answers("Ada Lovelace was born in a house near Lisbon long ago.") == {"Ada Lovelace", "Lisbon"}


def test_initials() -> None:
    assert initials_of("World-wide Health Organization, U.N.") == "WHOU"
