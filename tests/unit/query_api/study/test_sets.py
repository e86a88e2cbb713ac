"""Sets of each kind."""

import pytest

from query_api.study.sets import make_content
from schemas.choices import StudyKind
from schemas.study import StudyContent
from tests.unit.query_api.study.course import course, curriculum, material_of, page


def made(kind: StudyKind, count: int = 5, document: str | None = None, entity: str | None = None) -> StudyContent:
    return make_content(material_of(course(), document, entity), kind, count)


def test_cards_are_of_different_sentences_documents_and_answers() -> None:
    cards = made("cards").questions
    assert [each.question for each in cards] == [1, 2, 3, 4, 5]
    assert len({each.explanation.document_id for each in cards}) == 5
    assert all(each.answer not in each.text and "_____" in each.text and each.options == [] for each in cards)
    for each in cards:
        assert each.text.replace("_____", each.answer) == each.explanation.sentence


def test_a_source_is_the_place_of_the_sentence() -> None:
    (card,) = made("cards", document="kitchen").questions
    text = course()[-1].passages[0][0]
    source = card.explanation
    assert text[source.start : source.end] == source.sentence
    assert (source.document_id, source.collection, card.answer) == ("kitchen", "course", "40")


def test_a_title_that_gives_the_answer_away_is_not_shown() -> None:
    shown = {each.answer: each.context for each in made("cards", 20).questions}
    assert (shown["Lisbon"], shown["1815"]) == (None, "Ada")


def test_a_quiz_has_two_questions_of_a_concept_first() -> None:
    pages = course(page("more", "Lisbon was the home of Ada Lovelace. Lisbon was visited by Alan Turing in May."))
    quiz = make_content(material_of(pages), "quiz", 5).questions
    concepts = [each.concept.id for each in quiz]
    assert max(map(concepts.count, concepts)) <= 2
    assert len({each.concept.id for each in made("cards", 3, entity="Lisbon").questions}) < 3
    assert all(each.answer in each.options for each in quiz)


def test_fewer_than_asked_for_have_a_note() -> None:
    assert made("cards", 2).notes == []
    assert made("quiz", 50).notes[0].startswith(f"{made('quiz', 50).total} of the 50 questions asked for: ")
    assert made("cards", document="alan", count=50).total <= 2


def test_an_entity_is_studied_by_what_mentions_it() -> None:
    assert {each.explanation.document_id for each in made("cards", entity="Alan Turing").questions} == {"alan"}
    assert [each.answer for each in made("cards", entity="oven").questions] == ["40"]


def test_a_map_has_no_concept_without_a_relation() -> None:
    drawn = made("map", 15)
    labels = {each.label for each in drawn.concepts}
    assert labels == {end.label for each in drawn.relations for end in (each.subject, each.object)}
    assert drawn.mermaid is not None
    assert all(f'["{label}"]' in drawn.mermaid for label in labels)
    assert made("map", document="porto").total == 0


def test_a_map_of_an_entity_begins_with_it() -> None:
    assert made("map", entity="bread").concepts[0].label == "bread"
    assert {each.label for each in made("map", 2, entity="dough").concepts} == {"dough", "bread"}


def test_a_path_begins_with_what_is_needed() -> None:
    path = make_content(material_of([*course(), *curriculum()]), "path", 20)
    labels = [each.concept.label for each in path.steps]
    assert labels.index("yeast") < labels.index("dough") < labels.index("bread")
    assert labels.index("Sets") < labels.index("Maps") < labels.index("Limits")
    steps = {each.concept.label: each for each in path.steps}
    assert steps["dough"].after[0].evidence is not None
    assert steps["Maps"].after[0].evidence is None  # of people
    assert [each.concept.label for each in made("path", entity="bread").steps] == ["yeast", "dough", "bread"]


@pytest.mark.parametrize("kind", ["cards", "quiz", "map", "path"])
def test_the_same_snapshot_makes_the_same_set(kind: StudyKind) -> None:
    assert made(kind, 10) == made(kind, 10)
    assert make_content(material_of(list(reversed(course()))), kind, 3).total == made(kind, 3).total
