"""How well the running service answers labelled questions: `thalweg evaluate answers`."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from query_api.answers.sentences import HITS
from query_api.client import ServiceClient
from query_api.evaluation.answer_judge import ModelJudge
from query_api.evaluation.answer_judgements import Asked, JudgedBy, Judgement, scored
from query_api.evaluation.answer_labels import AnswerLabels
from query_api.evaluation.datasets import LabelledCollection, Question, spread_out
from query_api.evaluation.ranking_measures import spread
from schemas.answers import Answer
from schemas.hits import Hit
from schemas.progress_bars import Bars

SEARCH = "/v1/search"


class Figure(NamedTuple):
    """The mean of `of` values; None of none. `by` is who judged them, where somebody did."""

    value: float | None
    of: int
    by: JudgedBy | None = None


def evaluate_answers(
    client: ServiceClient,
    labelled: LabelledCollection,
    most_questions: int | None,
    options: Mapping[str, Any],
    bars: Bars,
    judge: ModelJudge | None = None,
) -> dict[str, Figure]:
    """The figures of one collection of labelled questions, judged by the scorer where there is no `judge`; `options`
    are the further parameters of the searches."""
    client.leave_no_usage()
    questions = (*spread_out(labelled.questions, most_questions), *labelled.unanswered)
    asked, bar = [], bars(f"asked: {labelled.name}", len(questions))
    for question in questions:
        asked.append(_ask(client, labelled, question, options))
        bar.advance()
    if judge is None:
        return dict(_figures([each._replace(judgement=scored(each)) for each in asked], "scorer"))
    judgements = judge.judge(asked, bars(f"judged: {labelled.name}", len(asked)).advance)
    judged = [each._replace(judgement=judgement) for each, judgement in zip(asked, judgements, strict=True)]
    return dict(_figures(judged, "model"))


def _ask(client: ServiceClient, labelled: LabelledCollection, question: Question, options: Mapping[str, Any]) -> Asked:
    grades = labelled.judgements.get(question.id, {})
    labels = AnswerLabels.of(question, [document for document, grade in grades.items() if grade > 0])
    search = {"q": question.text, "cache": False, **options}
    plain = {name: value for name, value in search.items() if not name.startswith("answer")}
    client.get(SEARCH, plain)  # which finds the texts cold
    began = time.perf_counter()
    client.get(SEARCH, plain)
    between = time.perf_counter()
    found = client.get(SEARCH, search | {"answer": True})
    seconds = (time.perf_counter() - between, between - began)
    hits = [Hit.model_validate(hit) for hit in found["hits"][:HITS]]
    return Asked(question.text, labels, hits, Answer.model_validate(found["answer"]), seconds)


def _figures(asked: Sequence[Asked], by: JudgedBy) -> Iterator[tuple[str, Figure]]:
    answerable = [each for each in asked if each.labels.relevant]
    found = [each for each in asked if each.found]
    answered = [each for each in asked if not each.answer.refused]
    yield "questions", Figure(len(asked), len(asked))
    yield "not_judged", Figure(sum(each.judgement is None for each in asked), len(asked))
    some = dict.fromkeys(("context_precision", "context_recall"), answerable)
    some |= dict.fromkeys(("citation_precision", "answer_coverage"), found)
    for name in Judgement.__struct_fields__:
        judged = [each.judgement for each in some.get(name, answered) if each.judgement]
        yield name, _mean((each.figure(name) for each in judged), by)
    given = [each for each in found if each.labels.needed and not each.answer.refused]
    support = [(sum(right := each.needed()), len(right), each.labels.needed) for each in given]
    yield "support_recall", _mean((min(right / needed, 1.0) for right, _, needed in support), "scorer")
    yield "support_f1", _mean((2 * right / (cited + needed) for right, cited, needed in support), "scorer")
    yield "all_relevant_found", _mean(each.found for each in answerable)
    yield "verbatim", _mean(same for each in asked for same in each.verbatim())
    yield "written_by_model", _mean(each.answer.form == "model" for each in answered)
    yield "refused_of_answerable", _mean(each.answer.refused for each in found)
    yield "refused_of_unanswerable", _mean(each.answer.refused for each in asked if not each.labels.relevant)
    yield "words", _mean(sum(len(text.split()) for text, _ in each.sentences) for each in found)
    with_answer, without = zip(*(each.seconds for each in asked), strict=True)
    yield "seconds_p95", Figure(spread(with_answer).p95, len(asked))
    yield "seconds_p95_of_search", Figure(spread(without).p95, len(asked))


def _mean(values: Iterable[float | None], by: JudgedBy | None = None) -> Figure:
    """Of those that are not None."""
    known = [float(value) for value in values if value is not None]
    return Figure(round(sum(known) / len(known), 4) if known else None, len(known), by)
