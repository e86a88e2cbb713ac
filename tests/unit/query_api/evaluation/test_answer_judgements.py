"""The verdicts of the scorer, and the figures of verdicts, with numbers worked by hand."""

import pytest

from query_api.evaluation.answer_judgements import Judgement, scored
from schemas.answers import Answer
from tests.unit.query_api.answers.found import HITS, QUESTION
from tests.unit.query_api.evaluation.judged import asked, extracted, refused, written

BORN = "She was born in Lisbon, Portugal."
FILM = "Alpha Film is a film of 1950."


def figure(name: str, *verdicts: bool) -> float | None:
    lists: dict[str, list[bool]] = {each: [] for each in Judgement.__struct_fields__}
    return Judgement(**lists | {name: list(verdicts)}).figure(name)


def numbers_of(answer: Answer) -> dict[str, int]:
    return {source.text: source.number for source in answer.citations}


@pytest.mark.parametrize(
    ("relevant", "precision"),
    [
        ([True, True, False], 1.0),
        ([False, False, True, True, False], (1 / 3 + 2 / 4) / 2),
        ([True, False, True], (1 + 2 / 3) / 2),
        ([False, False], 0.0),
        ([], 0.0),
    ],
)
def test_context_precision_is_the_mean_precision_at_relevant_passages(relevant: list[bool], precision: float) -> None:
    assert figure("context_precision", *relevant) == pytest.approx(precision)


@pytest.mark.parametrize("name", [each for each in Judgement.__struct_fields__ if each != "context_precision"])
def test_other_figures_are_shares_and_none_of_nothing(name: str) -> None:
    assert figure(name, True, False, True, True) == 0.75
    assert figure(name) is None


def test_the_scorer_judges_by_the_labels() -> None:
    given = asked()
    judgement = scored(given)
    assert judgement.context_precision == [True, True, False]
    assert judgement.context_recall == [True, True]
    assert judgement.citation_precision == [source.text == BORN for source in given.answer.citations]
    assert judgement.figure("citation_precision") == pytest.approx(1 / 3)
    assert judgement.answer_coverage == [True]
    assert scored(asked(relevant=["d1", "d9"])).figure("context_recall") == 0.5


def test_what_nothing_is_known_of_is_not_judged() -> None:
    judgement = scored(asked(relevant=[]))
    assert (judgement.citation_precision, judgement.answer_coverage, judgement.context_recall) == ([], [], [])
    assert judgement.figure("faithfulness") == 1.0


def test_sentences_of_documents_are_supported_and_what_a_model_changed_is_not() -> None:
    assert scored(asked()).faithfulness == [True] * len(extracted().citations)
    of = numbers_of(extracted())
    right = f"Jane Doe was born in Lisbon. [{of[BORN]}]"
    judgement = scored(asked(written(right, f"She was born in Madrid. [{of[BORN]}]", f"Lisbon it is. [{of[FILM]}]")))
    assert judgement.faithfulness == [True, False, False]


def test_markup_in_a_document_is_no_reason_against_its_own_sentence() -> None:
    hits = [HITS[0].model_copy(update={"parent_text": "Alpha Film has a [page](https://alpha.example) of its own."})]
    answer = extracted(hits=hits)
    assert "](" in answer.citations[0].text
    assert scored(asked(answer)._replace(hits=hits)).faithfulness == [True]


def test_what_a_question_asks_for_are_its_words_and_the_kind_of_answer() -> None:
    """Director, Alpha, Film, born; and a place."""
    of = numbers_of(extracted())
    whole = scored(asked(written(f"The director was born in Lisbon. [{of[BORN]}]"))).answer_relevance
    assert whole == [True, True, True, True, True], "the titles of what is cited count"
    number = "How many trains were there?"
    judgement = scored(asked(written(f"Trains are nice. [{of[BORN]}]"), question=number))
    assert judgement.answer_relevance[-1] is False, "the number of a source is none"
    assert scored(asked(written(f"Nine trains. [{of[BORN]}]"), question=number)).answer_relevance[-1] is True


def test_a_refused_answer_covers_nothing_and_has_no_sentences() -> None:
    judgement = scored(asked(refused()))
    assert (judgement.answer_coverage, judgement.faithfulness, judgement.citation_precision) == ([False], [], [])


def test_cited_places_are_looked_up() -> None:
    given = asked()
    assert given.verbatim() == [True] * len(given.answer.citations)
    moved = [source.model_copy(update={"start": source.start + 1}) for source in given.answer.citations]
    wrong = given._replace(answer=given.answer.model_copy(update={"citations": moved}))
    assert not any(wrong.verbatim())
    later = [hit.model_copy(update={"parent_start": 500}) for hit in HITS]
    assert not any(given._replace(hits=later).needed()), "the number of a sentence is known in the first passage alone"
    assert given.question == QUESTION
