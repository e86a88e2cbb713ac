"""One evaluation, from labelled collections to what was found: a function of frozen inputs and a service to ask.

1. Make each collection, or the pool of them, searchable; or take one that is there.
2. Put every question in every approach that the service offers.
3. Judge the rankings; means, intervals, comparisons, calibration, latencies.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from query_api.client import ServiceClient
from query_api.evaluation.answers import Asked
from query_api.evaluation.approaches import Approach
from query_api.evaluation.client import Asking, ask_all, offered, require_one
from query_api.evaluation.corpus import corpus_of, served_id
from query_api.evaluation.datasets import LabelledCollection, spread_out
from query_api.evaluation.findings import Evaluation, Loaded, ServiceFacts
from query_api.evaluation.judgement import Setting, judged, predictions
from query_api.evaluation.loading import load, there_already
from query_api.evaluation.metrics.uncertainty import LEVEL, RESAMPLES
from query_api.evaluation.unavailable import not_measured
from schemas.errors import WrongSetting
from schemas.filters import Group

Begin = Callable[[str, int], Callable[[int], None]]
"""Called with a step and its number of parts as it begins; what it returns is told of parts that are done."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to evaluate. `questions` are at most so many of each collection; with `pool` they share a collection.

    With `within` nothing is loaded: the questions are put to this collection of the service, as it is.
    """

    collections: tuple[LabelledCollection, ...]
    approaches: tuple[Approach, ...]
    k: int = 10
    group: Group = "document"
    questions: int | None = None
    lower_case: bool = False
    pool: str | None = None
    within: str | None = None


class _Answered(NamedTuple):
    """The answers to one collection's questions, {approach: one for each}, and which approaches have figures."""

    setting: Setting
    measured: tuple[Approach, ...]
    answers: dict[str, list[Asked]]
    not_offered: dict[str, str]
    not_measured: dict[str, str]


def evaluate(plan: Plan, client: ServiceClient, begin: Begin = lambda _what, _parts: lambda _done: None) -> Evaluation:
    """Load, ask, judge. Raises the client's failures, those of `load` and `ask`, and Failure where no approach was
    measured; what was loaded stays loaded."""
    if plan.within is not None and plan.pool is not None:
        raise WrongSetting("--pool loads into a collection and --within takes one as it is: give one of the two.")
    status = client.get("/v1/status")
    searchable = _searchable(plan, client, begin)  # 1
    asked: list[_Answered] = []
    for number, collection in enumerate(plan.collections):
        setting = _setting(plan, collection, searchable[number])
        asking = Asking(collection=setting.loaded.collection, k=plan.k, group=plan.group, lower_case=plan.lower_case)
        approaches, not_offered = offered(client, asking, setting.questions[0], plan.approaches)
        advance = begin(f"asked: {collection.name}", len(setting.questions) * len(approaches))
        answers = ask_all(client, asking, setting.questions, approaches, advance)  # 2
        missing = not_measured(approaches, answers)
        measured = tuple(approach for approach in approaches if approach.name not in missing)
        asked.append(_Answered(setting, measured, answers, not_offered, missing))
    predicted = [
        {approach.name: predictions(each.answers[approach.name], each.setting.judgements) for approach in each.measured}
        for each in asked
    ]
    findings = []
    for number, one in enumerate(asked):  # 3
        others = {
            name: [each for at, of in enumerate(predicted) if at != number for each in of.get(name, ())]
            for name in predicted[number]
        }
        findings.append(
            judged(
                one.setting,
                one.measured,
                one.answers,
                not_offered=one.not_offered,
                not_measured=one.not_measured,
                others=others,
            )
        )
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


def _searchable(plan: Plan, client: ServiceClient, begin: Begin) -> list[Loaded]:
    """For each collection of the plan, where it is in the service."""
    if plan.within is not None:
        return [there_already(client, plan.within, collection) for collection in plan.collections]
    pools = [plan.collections] * len(plan.collections) if plan.pool else [(each,) for each in plan.collections]
    found: list[Loaded] = []
    for pool in pools:
        if plan.pool and found:
            found.append(found[0])
            continue
        corpus = corpus_of(pool, plan.pool)
        name = plan.pool or pool[0].name
        if not found:  # else documents would be loaded that no question is asked of
            asking = Asking(collection=corpus.collection, k=plan.k, group=plan.group, lower_case=plan.lower_case)
            require_one(client, asking, pool[0].questions[0], plan.approaches)
        found.append(load(client, corpus, begin(f"searchable: {name}", len(corpus.envelopes))))
    return found


def _setting(plan: Plan, collection: LabelledCollection, loaded: Loaded) -> Setting:
    questions = spread_out(collection.questions, plan.questions)
    served = {document.id: served_id(collection, document.id, plan.pool) for document in collection.documents}
    return Setting(
        collection=collection,
        questions=questions,
        judgements={
            question.id: {served[document]: grade for document, grade in collection.judgements[question.id].items()}
            for question in questions
        },
        metadata={served[document.id]: document.metadata or {} for document in collection.documents},
        loaded=loaded,
        k=plan.k,
    )
