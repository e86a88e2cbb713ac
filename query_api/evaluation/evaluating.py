"""One evaluation, from labelled collections to what was found: a function of frozen inputs and a service to ask.

1. Make each collection, or the pool of them, searchable.
2. Put every question in every approach.
3. Judge the rankings; means, intervals, comparisons, calibration, latencies.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations

import msgspec

from query_api.command.client import ServiceClient
from query_api.evaluation.approaches import Approach
from query_api.evaluation.asking import Asked, ask_all
from query_api.evaluation.corpus import corpus_of, served_id
from query_api.evaluation.figures.calibration import Calibration, calibrate
from query_api.evaluation.figures.latency import latencies
from query_api.evaluation.figures.measures import judge
from query_api.evaluation.figures.uncertainty import LEVEL, RESAMPLES, bootstrap, compare, holm
from query_api.evaluation.findings import (
    ApproachFindings,
    CollectionFindings,
    Comparison,
    Evaluation,
    QuestionFindings,
    ServiceFacts,
)
from query_api.evaluation.labelled import LabelledCollection, Question, spread_out
from query_api.evaluation.loading import Loaded, load
from schemas.api import Group

COMPARED = ("nDCG@10", "R@5", "AllGold@5", "MRR@10")

Judgements = Mapping[str, Mapping[str, int]]

Begin = Callable[[str, int], Callable[[int], None]]
"""Called with a step and its number of parts as it begins; what it returns is told of parts that are done."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to evaluate. `questions` are at most so many of each collection; with `pool` they share a collection."""

    collections: tuple[LabelledCollection, ...]
    approaches: tuple[Approach, ...]
    k: int = 10
    group: Group = "document"
    questions: int | None = None
    lower_case: bool = False
    pool: str | None = None


def evaluate(plan: Plan, client: ServiceClient, begin: Begin = lambda _what, _parts: lambda _done: None) -> Evaluation:
    """Load, ask, judge. Raises the client's failures, and those of `load` and `ask`; what was loaded stays loaded."""
    status = client.get("/v1/status")
    corpora = {}
    if plan.pool is not None:
        corpus = corpus_of(plan.collections, plan.pool)
        loaded = load(client, corpus, begin(f"searchable: {plan.pool}", len(corpus.envelopes)))
        corpora = dict.fromkeys(range(len(plan.collections)), loaded)
    findings = []
    for number, collection in enumerate(plan.collections):
        if number not in corpora:
            corpus = corpus_of([collection])
            corpora[number] = load(client, corpus, begin(f"searchable: {collection.name}", len(corpus.envelopes)))  # 1
        questions = spread_out(collection.questions, plan.questions)
        answers = ask_all(  # 2
            client,
            corpora[number].collection,
            questions,
            plan.approaches,
            k=plan.k,
            group=plan.group,
            lower_case=plan.lower_case,
            advance=begin(f"asked: {collection.name}", len(questions) * len(plan.approaches)),
        )
        findings.append(judged(plan, collection, questions, answers, corpora[number]))  # 3
    return Evaluation(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        service=ServiceFacts(status["version"], status["generation"], status["embedding_model"]),
        k=plan.k,
        group=plan.group,
        lower_case=plan.lower_case,
        pool=plan.pool,
        level=LEVEL,
        resamples=RESAMPLES,
        collections=tuple(findings),
    )


def judged(
    plan: Plan,
    collection: LabelledCollection,
    questions: Sequence[Question],
    answers: Mapping[str, Sequence[Asked]],
    loaded: Loaded,
) -> CollectionFindings:
    """What the answers come to. Arithmetic only."""
    judgements = {
        question.id: {
            served_id(collection, document, plan.pool): grade
            for document, grade in collection.judgements[question.id].items()
        }
        for question in questions
    }
    values = {
        name: judge({asked.question_id: asked.documents for asked in given}, judgements, plan.k)
        for name, given in answers.items()
    }
    return CollectionFindings(
        name=collection.name,
        split=collection.split,
        documents=len(collection.documents),
        unfilled=sum(document.is_empty for document in collection.documents),
        title_only=sum(document.is_title_only for document in collection.documents),
        questions=len(collection.questions),
        asked=len(questions),
        loaded=loaded,
        approaches=tuple(
            _approach_findings(approach, questions, answers[approach.name], values[approach.name], judgements)
            for approach in plan.approaches
        ),
        comparisons=comparisons(values),
    )


def comparisons(values: Mapping[str, Mapping[str, Sequence[float]]]) -> tuple[Comparison, ...]:
    """Every pair of approaches on each of the COMPARED measures, of {approach: {measure: value of each question}}."""
    found: list[Comparison] = []
    pairs = list(combinations(values, 2))
    for measure in COMPARED:
        if not pairs or measure not in values[pairs[0][0]]:
            continue
        differences = [compare(values[ours][measure], values[theirs][measure]) for ours, theirs in pairs]
        adjusted = holm([difference.p for difference in differences])
        found += [
            Comparison(measure=measure, ours=ours, theirs=theirs, difference=difference, adjusted_p=p)
            for (ours, theirs), difference, p in zip(pairs, differences, adjusted, strict=True)
        ]
    return tuple(found)


def _approach_findings(
    approach: Approach,
    questions: Sequence[Question],
    answers: Sequence[Asked],
    values: Mapping[str, Sequence[float]],
    judgements: Judgements,
) -> ApproachFindings:
    return ApproachFindings(
        name=approach.name,
        about=approach.about,
        measures={measure: bootstrap(of_questions) for measure, of_questions in values.items()},
        latencies=latencies(answers),
        calibration=_calibration(answers, judgements),
        failed_channels=Counter(channel for answer in answers for channel in answer.failed_channels),
        questions=tuple(
            QuestionFindings(
                question_id=question.id,
                question=question.text,
                documents=answer.documents,
                measures={measure: round(of_questions[number], 6) for measure, of_questions in values.items()},
            )
            for number, (question, answer) in enumerate(zip(questions, answers, strict=True))
        ),
    )


def _calibration(answers: Sequence[Asked], judgements: Judgements) -> Calibration | None:
    return calibrate(
        [
            (confidence, judgements[answer.question_id].get(document, 0) > 0)
            for answer in answers
            for document, confidence in zip(answer.documents, answer.confidences, strict=True)
            if confidence is not None
        ]
    )
