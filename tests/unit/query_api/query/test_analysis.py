"""A question taken apart: its words and names, its kind, its parts."""

import pytest

from query_api.query.analysis import Question, WordWeights, intent_of, normalise_text, parts_of, understand


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
    weights = WordWeights.from_idf(question, lambda words: [told[word] for word in words])
    assert weights.idf == {"film": 0.5, "rice": 1.5, "painter": 0.0}
    assert weights.total == 2.0
    assert weights.share({"rice"}) == pytest.approx(0.75)
    assert weights.share({"rice", "film", "painter"}) == 1.0
    assert weights.share({"elsewhere"}) == 0.0
    assert WordWeights.from_idf(question, lambda words: [0.0] * len(words)).share({"film"}) == 0.0
    assert WordWeights.from_idf(Question("who is it"), lambda words: [0.0] * len(words)).share({"film"}) == 0.0


def test_stop_words_are_a_name_where_each_has_a_capital_behind_the_first_word() -> None:
    assert "for against" in names("Which label is For Against signed to?")
    assert "for" not in names("Which label is For Against signed to?")
    assert "for against" not in names("Which label is for Against, or Against for, signed to?")
    assert "what is" not in names("What Is Alpha?"), "the first word has a capital whatever it is"


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("Why does the lock exist?", "explain"),
        ("how does free threading work", "explain"),
        ("What is a token?", "explain"),
        ("Compare Faust and Flink", "compare"),
        ("lists vs. tuples", "compare"),
        ("Were Scott Derrickson and Ed Wood of the same age, and what is the difference?", "compare"),
        ("Who wrote PEP 8?", "find"),
        ("How many lakes are there?", "find"),
        ("list all withdrawn proposals", "find"),
        ("Give me an overview of packaging", "summarise"),
        ("What are the main themes?", "global"),
        ("What topics do these documents cover?", "global"),
        ("Summarise everything about async iteration", "global"),
        ("everything about async iteration", "global"),
        ("Everything there is on the Elbe", "global"),
        ("Everything that we have on the Elbe", "global"),
        ("all about honey", "global"),
        ("Tell me all about honey", "global"),
        ("What do you know about honey?", "global"),
        ("What is there to know about honey?", "global"),
        ("What is everything you need to keep bees?", "find"),
        ("Show me all letters of Ada Moss", "find"),
        ("What does the report know about honey?", "find"),
        ("All on board the ship were saved", "general"),
        ("What is this collection about?", "global"),
        ("Give me a summary of all these documents", "global"),
        ("Which document is about themes?", "find"),
        ("How is the tariff related to the strike?", "relation"),
        ("how are the tariff and the strike related", "relation"),
        ("What should I learn before monads?", "path"),
        ("quiz me on rivers", "quiz"),
        ("soft keyword deprecation", "general"),
        ("0-dimensional biomaterials lack inductive properties.", "general"),
    ],
)
def test_a_question_has_a_kind(question: str, intent: str) -> None:
    assert intent_of(question) == intent


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Compare the Elbe with the Oder.", ("the Elbe", "the Oder")),
        ("What is the difference between a weir and a dam?", ("a weir", "a dam")),
        ("lists vs tuples", ("lists", "tuples")),
        ("lists vs. tuples vs sets?", ("lists", "tuples", "sets")),
        ("Which is faster, lists versus tuples versus sets in Python?", ("lists", "tuples", "sets in Python")),
        ("What is Faust vs Flink?", ("Faust", "Flink")),
        ("Compare weirs, dams and locks.", ("weirs", "dams", "locks")),
        ("compare weirs, dams, locks, and ferries of the Elbe", ("weirs", "dams", "locks", "ferries of the Elbe")),
        ("Compare the Elbe, the Oder and the Rhine, in terms of length", ("the Elbe", "the Oder", "the Rhine")),
        ("What are the differences between a weir, a dam, and a lock?", ("a weir", "a dam", "a lock")),
        ("How do weirs, dams and locks differ in spring?", ("weirs", "dams", "locks")),
        ("a vs b vs c vs d vs e", ()),
        ("Ada vs Bo vs Cy vs Di vs Ed", ("Ada", "Bo", "Cy", "Di")),
        ("How does a weir differ from a dam in spring?", ("a weir", "a dam in spring")),
        ("What is a weir? Who built the first one?", ("What is a weir?", "Who built the first one?")),
        ("I look for weirs of Dr. Ek. They hold water back.", ("I look for weirs of Dr. Ek.", "They hold water back.")),
        ("Where is the weir of J. R. Ek?", ()),
        ("Really? Where is the weir?", ()),
        ("soft keyword deprecation", ()),
    ],
)
def test_a_question_falls_into_parts_or_is_one_piece(question: str, parts: tuple[str, ...]) -> None:
    assert parts_of(question) == parts


def test_the_caller_knows_better_what_kind_of_question_it_is() -> None:
    assert understand("Compare Faust and Flink", "find").intent == "find"


def test_no_question_takes_long_to_read() -> None:
    for question in ("compare " * 1_200, "a vs " * 2_000, "difference between " * 500, "x. " * 3_000):
        understand(question[:10_000])
