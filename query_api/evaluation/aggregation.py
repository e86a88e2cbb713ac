"""From answers to results: every figure of one collection's questions. Arithmetic only."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import msgspec

from query_api.evaluation.approaches import Approach
from query_api.evaluation.datasets import KIND, LabelledCollection, Question
from query_api.evaluation.ranking_measures import diversity, latencies, measure_rankings, thresholds
from query_api.evaluation.results import (
    Answer,
    ApproachResult,
    BaselineMargin,
    CollectionResult,
    Comparison,
    KindResult,
    Loaded,
    QuestionResult,
)
from query_api.evaluation.statistics import Prediction, bootstrap, calibrate, compare, holm, recalibrated
from query_api.evaluation.trained_parts import confidence_fitted_to
from schemas.errors import Failure

COMPARED = ("nDCG@10", "R@5", "AllGold@5", "MRR@10")
BEST_CHANNEL_MEASURES = ("R@5", "nDCG@10")
BASELINE_MEASURES = ("nDCG@10", "R@5")
MAX_MISSING_SHARE = 0.5
"""An approach has no figures when more of its answers than this lack a step that it needs."""

Judgements = Mapping[str, Mapping[str, int]]
Values = Mapping[str, Mapping[str, Sequence[float]]]
"""{approach: {measure: the value of each question}}."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One collection with the questions that were put. Documents have their ids in the service; `metadata` is that of
    every document."""

    collection: LabelledCollection
    questions: tuple[Question, ...]
    judgements: Judgements
    metadata: Mapping[str, Mapping[str, Any]]
    loaded: Loaded
    k: int


def collection_result(
    experiment: Experiment,
    approaches: Sequence[Approach],
    answers: Mapping[str, Sequence[Answer]],
    *,
    not_offered: Mapping[str, str],
    not_measured: Mapping[str, str],
    others: Mapping[str, Sequence[Prediction]],
) -> CollectionResult:
    """`answers` is {approach: an answer to each question}, `others` {approach: predictions on the evaluation's other
    collections}."""
    collection = experiment.collection
    values: Values = {
        approach.name: measure_rankings(
            {answer.question_id: answer.documents for answer in answers[approach.name]},
            experiment.judgements,
            experiment.k,
        )
        for approach in approaches
    }
    return CollectionResult(
        name=collection.name,
        split=collection.split,
        documents=len(collection.documents) or experiment.loaded.documents,
        unfilled=sum(document.is_empty for document in collection.documents),
        title_only=sum(document.is_title_only for document in collection.documents),
        questions=len(collection.questions),
        asked=len(experiment.questions),
        loaded=experiment.loaded,
        approaches=tuple(
            _approach_result(approach, experiment, answers[approach.name], values[approach.name], others)
            for approach in approaches
        ),
        comparisons=comparisons(values),
        kinds=kind_results(experiment.questions, approaches, values),
        against_baselines=baseline_margins(approaches, values),
        not_offered=not_offered,
        not_measured=not_measured,
        confidence_fitted_to=confidence_fitted_to(collection.name, experiment.loaded.collection),
    )


def not_measured(approaches: Sequence[Approach], answers: Mapping[str, Sequence[Answer]]) -> dict[str, str]:
    """{approach: why it has no figures}, of those most of whose answers came without a step that they need.

    A search goes on without a re-ranker or a channel that does not answer; the figures of what is left are not those of
    the approach. Raises Failure when that is all of them, with the reason of the first.
    """
    reasons = {}
    for approach in approaches:
        of_approach = answers[approach.name]
        for step in approach.needs:
            failures = Counter(each.failed_channels[step] for each in of_approach if step in each.failed_channels)
            if failures.total() > MAX_MISSING_SHARE * len(of_approach):
                reason = failures.most_common(1)[0][0].rstrip(".")
                came = f"{failures.total():,} of {len(of_approach):,} answers came"
                reasons[approach.name] = f"{came} without its step {step!r}: {reason}."
                break
    if approaches and len(reasons) == len(approaches):
        raise Failure(f"No approach was measured. {approaches[0].name}: {reasons[approaches[0].name]}")
    return reasons


def predictions(answers: Sequence[Answer], judgements: Judgements, depth: int | None = None) -> list[Prediction]:
    """Of every hit that carries a confidence, or of those among the first `depth` of each answer."""
    return [
        (confidence, judgements[answer.question_id].get(document, 0) > 0)
        for answer in answers
        for document, confidence in list(zip(answer.documents, answer.confidences, strict=True))[:depth]
        if confidence is not None
    ]


def comparisons(values: Values) -> tuple[Comparison, ...]:
    """The first approach with each other on each of the COMPARED measures; p adjusted for the number of the others."""
    found: list[Comparison] = []
    first, *others = values
    for name in COMPARED:
        if not others or name not in values[first]:
            continue
        differences = [compare(values[first][name], values[other][name]) for other in others]
        adjusted = holm([difference.p for difference in differences])
        found += [
            Comparison(measure=name, ours=first, theirs=other, difference=difference, adjusted_p=p)
            for other, difference, p in zip(others, differences, adjusted, strict=True)
        ]
    return tuple(found)


def baseline_margins(approaches: Sequence[Approach], values: Values) -> tuple[BaselineMargin, ...]:
    """The first approach and the best baseline by each of the BASELINE_MEASURES."""
    first, *others = approaches
    baselines = [each.name for each in others if each.baseline]
    if first.baseline or not baselines:
        return ()
    found = []
    for name in BASELINE_MEASURES:
        if name in values[first.name]:
            means = {approach: fmean(values[approach][name]) for approach in (first.name, *baselines)}
            best = max(baselines, key=means.__getitem__)
            difference = round(means[first.name] - means[best], 6)
            found.append(BaselineMargin(measure=name, ours=first.name, best=best, difference=difference))
    return tuple(found)


def kind_results(
    questions: Sequence[Question], approaches: Sequence[Approach], values: Values
) -> tuple[KindResult, ...]:
    """For each kind of question, in the order they first come; none where no question names its kind."""
    rows_of: dict[str, list[int]] = {}
    for row, question in enumerate(questions):
        if isinstance(kind := (question.metadata or {}).get(KIND), str):
            rows_of.setdefault(kind, []).append(row)
    return tuple(
        _kind_result(
            kind,
            approaches,
            {
                approach: {name: [of[row] for row in rows] for name, of in measures.items()}
                for approach, measures in values.items()
            },
        )
        for kind, rows in rows_of.items()
    )


def _kind_result(kind: str, approaches: Sequence[Approach], values: Values) -> KindResult:
    first = approaches[0]
    singles = [approach.name for approach in approaches if approach.single]
    against = []
    for name in BEST_CHANNEL_MEASURES:
        if first.single or not singles or name not in values[first.name]:
            continue
        best = max(singles, key=lambda single: sum(values[single][name]))
        difference = compare(values[first.name][name], values[best][name])
        against.append(
            Comparison(measure=name, ours=first.name, theirs=best, difference=difference, adjusted_p=difference.p)
        )
    return KindResult(
        kind=kind,
        questions=len(next(iter(values[first.name].values()))),
        measures={
            approach: {name: bootstrap(of) for name, of in measures.items()} for approach, measures in values.items()
        },
        against_best=tuple(against),
    )


def _approach_result(
    approach: Approach,
    experiment: Experiment,
    answers: Sequence[Answer],
    values: Mapping[str, Sequence[float]],
    others: Mapping[str, Sequence[Prediction]],
) -> ApproachResult:
    judgements = experiment.judgements
    predicted = predictions(answers, judgements)
    scored = [
        [
            (score, judgements[answer.question_id].get(document, 0) > 0)
            for document, score in zip(answer.documents, answer.scores, strict=True)
        ]
        for answer in answers
    ]
    return ApproachResult(
        name=approach.name,
        about=approach.about,
        measures={name: bootstrap(of_questions) for name, of_questions in values.items()},
        latencies=latencies(answers),
        calibration=calibrate(predicted),
        first_hit_calibration=calibrate(predictions(answers, judgements, depth=1)),
        left_out_calibration=recalibrated(predicted, others.get(approach.name, ())),
        thresholds=thresholds(scored),
        diversity=diversity([answer.documents for answer in answers], experiment.metadata),
        failed_channels=Counter(channel for answer in answers for channel in answer.failed_channels),
        questions=tuple(
            QuestionResult(
                question_id=question.id,
                question=question.text,
                documents=answer.documents,
                measures={name: round(of_questions[number], 6) for name, of_questions in values.items()},
            )
            for number, (question, answer) in enumerate(zip(experiment.questions, answers, strict=True))
        ),
    )
