"""From answers to findings: every figure of one collection's questions. Arithmetic only."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import msgspec

from query_api.evaluation.answers import Asked
from query_api.evaluation.approaches import Approach
from query_api.evaluation.datasets import LabelledCollection, Question
from query_api.evaluation.findings import (
    AgainstBaselines,
    ApproachFindings,
    CollectionFindings,
    Comparison,
    KindFindings,
    Loaded,
    QuestionFindings,
)
from query_api.evaluation.metrics.calibration import calibrate, recalibrated
from query_api.evaluation.metrics.diversity import diversity
from query_api.evaluation.metrics.latency import latencies
from query_api.evaluation.metrics.measures import judge
from query_api.evaluation.metrics.thresholds import thresholds
from query_api.evaluation.metrics.uncertainty import bootstrap, compare, holm

COMPARED = ("nDCG@10", "R@5", "AllGold@5", "MRR@10")
BEST_BY = ("R@5", "nDCG@10")
LAW_MEASURES = ("nDCG@10", "R@5")
KIND = "kind"

Judgements = Mapping[str, Mapping[str, int]]
Values = Mapping[str, Mapping[str, Sequence[float]]]
"""{approach: {measure: the value of each question}}."""
Predictions = Sequence[tuple[float, bool]]
"""(confidence, whether the hit is relevant) of every hit that carries a confidence."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What is judged: the collection, the questions of it that were put, and the documents' ids as the service has
    them. `metadata` is that of every document, by the same ids."""

    collection: LabelledCollection
    questions: tuple[Question, ...]
    judgements: Judgements
    metadata: Mapping[str, Mapping[str, Any]]
    loaded: Loaded
    k: int


def judged(
    setting: Setting,
    approaches: Sequence[Approach],
    answers: Mapping[str, Sequence[Asked]],
    *,
    not_offered: Mapping[str, str],
    not_measured: Mapping[str, str],
    others: Mapping[str, Predictions],
) -> CollectionFindings:
    """What the answers to `approaches` come to, each of which was measured. `others` is {approach: predictions on the
    evaluation's other collections}."""
    collection = setting.collection
    values: Values = {
        approach.name: judge(
            {asked.question_id: asked.documents for asked in answers[approach.name]}, setting.judgements, setting.k
        )
        for approach in approaches
    }
    return CollectionFindings(
        name=collection.name,
        split=collection.split,
        documents=len(collection.documents),
        unfilled=sum(document.is_empty for document in collection.documents),
        title_only=sum(document.is_title_only for document in collection.documents),
        questions=len(collection.questions),
        asked=len(setting.questions),
        loaded=setting.loaded,
        approaches=tuple(
            _approach_findings(approach, setting, answers[approach.name], values[approach.name], others)
            for approach in approaches
        ),
        comparisons=comparisons(values),
        kinds=kinds(setting.questions, approaches, values),
        against_baselines=against_baselines(approaches, values),
        not_offered=not_offered,
        not_measured=not_measured,
    )


def predictions(answers: Sequence[Asked], judgements: Judgements) -> Predictions:
    return [
        (confidence, judgements[answer.question_id].get(document, 0) > 0)
        for answer in answers
        for document, confidence in zip(answer.documents, answer.confidences, strict=True)
        if confidence is not None
    ]


def comparisons(values: Values) -> tuple[Comparison, ...]:
    """The first approach with each other on each of the COMPARED measures; p adjusted for the number of the others."""
    found: list[Comparison] = []
    first, *others = values
    for measure in COMPARED:
        if not others or measure not in values[first]:
            continue
        differences = [compare(values[first][measure], values[other][measure]) for other in others]
        adjusted = holm([difference.p for difference in differences])
        found += [
            Comparison(measure=measure, ours=first, theirs=other, difference=difference, adjusted_p=p)
            for other, difference, p in zip(others, differences, adjusted, strict=True)
        ]
    return tuple(found)


def against_baselines(approaches: Sequence[Approach], values: Values) -> tuple[AgainstBaselines, ...]:
    """The first approach and the best baseline by each of the LAW_MEASURES."""
    first, *others = approaches
    baselines = [each.name for each in others if each.baseline]
    if first.baseline or not baselines:
        return ()
    found = []
    for measure in LAW_MEASURES:
        if measure in values[first.name]:
            means = {name: fmean(values[name][measure]) for name in (first.name, *baselines)}
            best = max(baselines, key=means.__getitem__)
            found.append(
                AgainstBaselines(
                    measure=measure, ours=first.name, best=best, difference=round(means[first.name] - means[best], 6)
                )
            )
    return tuple(found)


def kinds(questions: Sequence[Question], approaches: Sequence[Approach], values: Values) -> tuple[KindFindings, ...]:
    """Findings for each kind of question, in the order they first come; none where no question names its kind."""
    places: dict[str, list[int]] = {}
    for place, question in enumerate(questions):
        if isinstance(kind := (question.metadata or {}).get(KIND), str):
            places.setdefault(kind, []).append(place)
    return tuple(
        _kind_findings(
            kind,
            approaches,
            {
                approach: {measure: [of[place] for place in at] for measure, of in measures.items()}
                for approach, measures in values.items()
            },
        )
        for kind, at in places.items()
    )


def _kind_findings(kind: str, approaches: Sequence[Approach], values: Values) -> KindFindings:
    first = approaches[0]
    singles = [approach.name for approach in approaches if approach.single]
    against = []
    for measure in BEST_BY:
        if first.single or not singles or measure not in values[first.name]:
            continue
        best = max(singles, key=lambda name: sum(values[name][measure]))
        difference = compare(values[first.name][measure], values[best][measure])
        against.append(
            Comparison(measure=measure, ours=first.name, theirs=best, difference=difference, adjusted_p=difference.p)
        )
    return KindFindings(
        kind=kind,
        questions=len(next(iter(values[first.name].values()))),
        measures={
            approach: {measure: bootstrap(of) for measure, of in measures.items()}
            for approach, measures in values.items()
        },
        against_best=tuple(against),
    )


def _approach_findings(
    approach: Approach,
    setting: Setting,
    answers: Sequence[Asked],
    values: Mapping[str, Sequence[float]],
    others: Mapping[str, Predictions],
) -> ApproachFindings:
    judgements = setting.judgements
    predicted = predictions(answers, judgements)
    return ApproachFindings(
        name=approach.name,
        about=approach.about,
        measures={measure: bootstrap(of_questions) for measure, of_questions in values.items()},
        latencies=latencies(answers),
        calibration=calibrate(predicted),
        left_out_calibration=recalibrated(predicted, others.get(approach.name, ())),
        thresholds=thresholds(
            [
                [
                    (score, judgements[answer.question_id].get(document, 0) > 0)
                    for document, score in zip(answer.documents, answer.scores, strict=True)
                ]
                for answer in answers
            ]
        ),
        diversity=diversity([answer.documents for answer in answers], setting.metadata),
        failed_channels=Counter(channel for answer in answers for channel in answer.failed_channels),
        questions=tuple(
            QuestionFindings(
                question_id=question.id,
                question=question.text,
                documents=answer.documents,
                measures={measure: round(of_questions[number], 6) for measure, of_questions in values.items()},
            )
            for number, (question, answer) in enumerate(zip(setting.questions, answers, strict=True))
        ),
    )
