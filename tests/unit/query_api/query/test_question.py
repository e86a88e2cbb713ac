"""What a question is taken apart into."""

import pytest

from query_api.query.question import Question, WordWeights, normalise_text


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


def test_the_weight_of_words_is_what_the_collection_says_they_tell() -> None:
    question = Question("Which film of the Rices was about painters?")
    told = {"film": 0.5, "rices": 1.5, "painters": 0.0}
    weights = WordWeights.of(question, lambda words: [told[word] for word in words])
    assert weights.idf == {"film": 0.5, "rice": 1.5, "painter": 0.0}
    assert weights.total == 2.0
    assert weights.share({"rice"}) == pytest.approx(0.75)
    assert weights.share({"rice", "film", "painter"}) == 1.0
    assert weights.share({"elsewhere"}) == 0.0
    assert WordWeights.of(question, lambda words: [0.0] * len(words)).share({"film"}) == 0.0
    assert WordWeights.of(Question("who is it"), lambda words: [0.0] * len(words)).share({"film"}) == 0.0


def test_stop_words_are_a_name_where_each_has_a_capital_behind_the_first_word() -> None:
    assert "for against" in names("Which label is For Against signed to?")
    assert "for" not in names("Which label is For Against signed to?")
    assert "for against" not in names("Which label is for Against, or Against for, signed to?")
    assert "what is" not in names("What Is Alpha?"), "the first word has a capital whatever it is"
