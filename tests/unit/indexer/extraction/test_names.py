"""Which names stand in a run of capitals."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.extraction import names
from indexer.extraction.names import code_in, dates_in, name_of, names_in, quoted_in
from schemas.ids import bare_name

EVERY_DATE = names._DATE
EVERY_IDENTIFIER = re.compile(
    r"(?<![\w./@:\\-])(?:[a-z]+[A-Z]\w*|_{0,2}[a-z]\w+(?:\.[a-z_]\w+)+|_{0,2}[a-z]\w*_\w+)(?![\w@/]|\.\w)"
)
PARTS_OF_DATES = st.sampled_from(
    ["1", "12", "30th", "2004", "20045", "May", "September", "Sept.", "January", " ", " ", ", ", "\n", ".", "x"]
)


def found(text: str) -> set[str]:
    return {name.name for name in names_in(text, 0, len(text)) if name.sure}


@given(st.text(alphabet="aAbB zé.'’s-&/+#_!()09ß", max_size=30))
def test_the_short_way_to_a_name_is_the_long_one(surface: str) -> None:
    assert name_of(surface) == bare_name(surface)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("He saw Shirley Temple.", {"shirley temple"}),
        ("a play by J. R. R. Tolkien", {"j. r. r. tolkien"}),
        ("in the University of Chicago", {"university of chicago", "chicago"}),
        ("by Guido van Rossum today", {"guido van rossum"}),
        ("as Ghana and to Czechoslovakia", {"ghana", "czechoslovakia"}),
        ("by Alan Menken and Howard Ashman", {"alan menken", "howard ashman"}),
        ("see PEP 8 for Python 3.12", {"pep 8 for python 3.12", "pep 8", "python 3.12", "python"}),
        ("as President Barack Obama said", {"president barack obama", "barack obama"}),
        ("as Janet Marie Waldo said", {"janet marie waldo", "janet waldo"}),
        ("for NBC in 1948", {"nbc"}),
        ("on January 7, 1943", set()),
        ("in the English language today", {"english", "english language"}),
        ("see Shirley Temple's Hollywood debut", {"shirley temple hollywood", "shirley temple", "hollywood"}),
        ("born at O'Hare in Łódź", {"o hare in lodz", "o hare", "lodz"}),
    ],
)
def test_a_run_yields_itself_and_its_useful_parts(sentence: str, expected: set[str]) -> None:
    assert found(sentence) == expected


def test_a_title_of_a_person_in_the_middle_parts_a_run() -> None:
    assert {"new york", "nelson rockefeller"} <= found("as New York Governor Nelson Rockefeller said")


@pytest.mark.parametrize("start", ["The", "In", "Although", "Meanwhile", "Usually", "Emphatically"])
def test_a_common_word_at_the_start_of_a_sentence_names_nothing(start: str) -> None:
    assert found(f"{start} it rains.") == set()


def test_a_name_at_the_start_of_a_sentence_counts() -> None:
    assert found("Hugh married Marozia.") == {"hugh", "marozia"}
    assert found("The Beatles sang.") == {"the beatles", "beatles"}
    assert found("Although John Smith sang.") == {"john smith"}


@pytest.mark.parametrize("lead", ["- ", "1. ", "  - ", "yes | "])
def test_an_item_or_cell_begins_as_a_sentence_does(lead: str) -> None:
    assert found(f"{lead}Emphatically so") == set()


def test_a_label_is_no_name() -> None:
    assert found("Author: nobody") == set()


def test_a_title_with_a_colon_is_one_name_too() -> None:
    assert "star wars the clone wars" in found("as in Star Wars: The Clone Wars today")


def test_quoted_titles_dates_and_code() -> None:
    text = (
        'In "A Date with Judy" of January 7, 1943 "so" calls asyncio.gather, TaskGroup and set_result '
        "but not e.g. this."
    )
    assert [name.surface for name in quoted_in(text, 0, len(text))] == ["A Date with Judy"]
    assert [(name.name, name.kind) for name in dates_in(text, 0, len(text))] == [("january 7 1943", "time")]
    assert {name.name for name in code_in(text, 0, len(text))} == {"asyncio.gather", "set_result"}
    assert "taskgroup" in found(text)


def test_spans_are_where_the_names_stand() -> None:
    text = "Then Count Ugolino of Pisa met President Barack Obama."
    for name in names_in(text, 0, len(text)):
        assert text[name.start : name.end] == name.surface


@pytest.mark.parametrize(
    "hostile",
    ["A " * 50_000, "A" * 200_000, "A." * 50_000, "Of the " * 30_000, "'" * 100_000, "A'b" * 50_000, "1 " * 90_000],
)
@pytest.mark.processor_seconds(20)
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    sum(1 for _ in names_in(hostile, 0, len(hostile)))
    sum(1 for _ in code_in(hostile, 0, len(hostile)))
    sum(1 for _ in quoted_in(hostile, 0, len(hostile)))


@given(st.lists(PARTS_OF_DATES, max_size=24), st.integers(0, 3), st.integers(0, 3))
def test_every_date_is_found_by_its_year(parts: list[str], before: int, behind: int) -> None:
    text = "".join(parts)
    end = max(before, len(text) - behind)
    found = [(name.start, name.end) for name in dates_in(text, before, end)]
    assert found == [match.span() for match in EVERY_DATE.finditer(text, before, end)]


@given(st.text("abXY19_.@/:- \n", max_size=40))
def test_identifiers_are_those_that_a_word_read_forwards_and_backwards_gives(text: str) -> None:
    found = [(name.start, name.end) for name in code_in(text, 0, len(text))]
    expected = [match for match in EVERY_IDENTIFIER.finditer(text) if len(name_of(match.group())) > 2]
    assert found == [match.span() for match in expected]
