"""What a question is taken apart into."""

import math

import pytest

from query_api.channels.question import Question, WordWeights, normalise_text


def names(text: str) -> list[str]:
    return [span.name for span in Question(text).spans()]


def test_names_hold_a_capital_or_a_digit() -> None:
    found = names("Who is the director of Bitter Rice?")
    assert "bitter rice" in found
    assert "director" not in found
    assert "is" not in found


def test_without_any_capitals_every_word_may_be_a_name() -> None:
    found = names("who wrote pep 8")
    assert "pep 8" in found
    assert "wrote" in found
    assert "who" not in found


def test_three_words_may_be_a_name_without_capitals_but_are_not_marked_as_one() -> None:
    spans = {span.name: span for span in Question("What is the place of birth of Ann?").spans()}
    assert not spans["place of birth"].marked
    assert spans["ann"].marked


def test_longer_names_come_first() -> None:
    found = names("Is Alpha Beta Gamma older than Delta?")
    assert found.index("alpha beta gamma") < found.index("alpha beta") < found.index("delta")


def test_possessives_and_brackets_do_not_hide_a_name() -> None:
    assert "khanzada begum" in names("Where did Khanzada Begum's father die?")
    assert normalise_text("The Zone (2017 film), in Paris.") == "the zone 2017 film in paris"


def test_stems_find_other_forms_at_the_beginning_of_words() -> None:
    question = Question("Which painters were painting ships?")
    assert question.stems == ("painter", "paint", "ship")
    assert question.stems_in("He paints; worship is no SHIP.") == {"paint", "ship"}
    assert Question("who is it").stems_in("who is it") == frozenset()


def test_a_name_is_held_as_whole_words_only() -> None:
    question = Question("When was New York founded?")
    assert question.names("new york")
    assert not question.names("ew york")


def test_word_weights_are_idf_over_the_pool() -> None:
    pool = [frozenset({"film", "rice"}), frozenset({"film"}), frozenset({"film"})]
    weights = WordWeights.over(["film", "rice", "absent"], pool)
    film = math.log(1 + (3 - 3 + 0.5) / (3 + 0.5))
    rice = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    assert weights.idf == {"film": pytest.approx(film), "rice": pytest.approx(rice)}
    assert weights.share({"rice"}) == pytest.approx(rice / (film + rice))
    assert weights.share({"absent"}) == 0.0
    assert WordWeights.over(["a"], []).share({"a"}) == 0.0
