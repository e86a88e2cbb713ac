"""Multiple-choice questions, of which one option is right and three are wrong."""

from query_api.study.cloze import Cloze, clozes
from query_api.study.questions import OPTIONS, Question, QuestionMaker, asked
from tests.support.fakes.text_stores import Page
from tests.unit.query_api.study.course import course, material_of, page


def question(answer: str, *more: Page, left_out: str = "") -> Question | None:
    material = material_of([each for each in course(*more) if each.id != left_out])
    return QuestionMaker(material).question(cloze_of(answer, clozes(material)))


def cloze_of(answer: str, found: list[Cloze]) -> Cloze:
    return next(each for each in found if each.answer == answer)


def test_options_are_of_the_same_type_and_in_the_same_order_each_time() -> None:
    found = question("Lisbon")
    assert found is not None
    assert found.text == "Which of these is the capital of Portugal and lies on the river Tagus?"
    assert len(set(found.options)) == OPTIONS
    assert {"Lisbon"} < set(found.options) <= {"Lisbon", "Porto", "Braga", "Faro", "Evora"}
    assert question("Lisbon") == found


def test_a_blank_stays_where_the_sentence_does_not_begin_with_it() -> None:
    found = cloze_of("Portugal", clozes(material_of(course())))
    assert asked(found) == "Lisbon is the capital of _____ and lies on the river Tagus."
    made = page("made", "Ada Lovelace was an Evora scholar and lived in Braga for years.")
    article = cloze_of("Braga", clozes(material_of([made]))).sentence
    assert asked(Cloze(article, 0, 0, 20, 25, 0.0)).startswith("Ada Lovelace was a(n) _____ scholar")


def test_what_is_stated_of_the_same_or_named_with_it_is_no_option() -> None:
    assert "Porto" in (question("Lisbon") or Question).options
    stated = page("stated", "Porto lies in Portugal.", [("Porto", "located_in", "Portugal")])
    made = question("Lisbon", stated)
    assert made is not None
    assert "Porto" not in made.options
    together = question("Lisbon", page("together", "Braga and Faro belong to Portugal."))
    assert together is None  # two are left


def test_another_name_of_the_answer_is_no_option() -> None:
    alias = page("alias", "Lisbon was Old Lisbon.")
    made = question("Lisbon", alias)
    assert made is not None
    assert not [each for each in made.options if each != "Lisbon" and "Lisbon" in each]


def test_fewer_than_three_siblings_make_no_question() -> None:
    assert question("Lisbon", left_out="porto") is not None
    material = material_of([each for each in course() if each.id not in ("porto", "braga")])
    assert QuestionMaker(material).question(cloze_of("Lisbon", clozes(material))) is None


def test_dates_are_asked_among_dates() -> None:
    found = question("1912")
    assert found is not None
    assert sorted(found.options) == ["1815", "1882", "1906", "1912"]


def test_quantities_are_not_asked() -> None:
    assert question("40") is None
