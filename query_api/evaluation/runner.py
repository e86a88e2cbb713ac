"""One evaluation of a running service, from labelled collections to results.

1. Make each collection, or the pool of them, searchable; or take one that is there.
2. Put every question in every approach that the service offers, as a client would: over the stream, one at a time.
3. Aggregate the rankings: means, intervals, comparisons, calibration, latencies.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from query_api.client import ServiceClient
from query_api.evaluation.aggregation import Experiment, collection_result, not_measured, predictions
from query_api.evaluation.approaches import WITHOUT_RERANKER, Approach
from query_api.evaluation.datasets import (
    LabelledCollection,
    Question,
    already_loaded,
    corpus_of,
    load,
    served_id,
    spread_out,
)
from query_api.evaluation.ranking_measures import require_ir_measures
from query_api.evaluation.results import Answer, Evaluation, Loaded, ServiceFacts
from query_api.evaluation.statistics import LEVEL, RESAMPLES
from schemas.errors import Failure, WrongSetting
from schemas.filters import Group
from schemas.progress_bars import Bar, Bars
from schemas.search import MAX_QUERY_CHARACTERS

JSONObject = dict[str, Any]


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

    def parameters(self, collection: str, question: Question, approach: Approach) -> dict[str, Any]:
        """Those of one search."""
        text = (question.text.lower() if self.lower_case else question.text)[:MAX_QUERY_CHARACTERS]
        scope = {"collection": collection, "group": self.group, "cache": False}
        return {"q": text, "k": self.k, **scope, **WITHOUT_RERANKER, **approach.parameters}


class _Responses(NamedTuple):
    """The answers to one collection's questions, {approach: one for each}, and which approaches have figures."""

    experiment: Experiment
    measured: tuple[Approach, ...]
    answers: dict[str, list[Answer]]
    not_offered: dict[str, str]
    not_measured: dict[str, str]


def evaluate(plan: Plan, client: ServiceClient, bars: Bars = Bar) -> Evaluation:
    """The client's searches count in no analytics, from now on.

    Raises the client's failures, those of `load` and `search`, WrongSetting where ir-measures is missing and Failure
    where no approach was measured; what was loaded stays loaded.
    """
    require_ir_measures()
    if plan.within is not None and plan.pool is not None:
        raise WrongSetting("--pool loads into a collection and --within takes one as it is: give one of the two.")
    client.leave_no_usage()
    status = client.get("/v1/status")
    loaded = _load(plan, client, bars)  # 1
    responses = [  # 2
        _search_all(plan, client, _experiment(plan, collection, into), bars)
        for collection, into in zip(plan.collections, loaded, strict=True)
    ]
    predicted = [
        {
            approach.name: predictions(each.answers[approach.name], each.experiment.judgements)
            for approach in each.measured
        }
        for each in responses
    ]
    results = [  # 3
        collection_result(
            each.experiment,
            each.measured,
            each.answers,
            not_offered=each.not_offered,
            not_measured=each.not_measured,
            others={
                name: [one for at, of in enumerate(predicted) if at != number for one in of.get(name, ())]
                for name in predicted[number]
            },
        )
        for number, each in enumerate(responses)
    ]
    return Evaluation(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        service=ServiceFacts(status["version"], status["generation"], status["embedding_model"]),
        k=plan.k,
        group=plan.group,
        lower_case=plan.lower_case,
        pool=plan.pool,
        level=LEVEL,
        resamples=RESAMPLES,
        collections=tuple(results),
    )


def _load(plan: Plan, client: ServiceClient, bars: Bars) -> list[Loaded]:
    """For each collection of the plan, where it is in the service."""
    if plan.within is not None:
        return [already_loaded(client, plan.within, collection) for collection in plan.collections]
    pools = [plan.collections] if plan.pool else [(each,) for each in plan.collections]
    loaded: list[Loaded] = []
    for pool in pools:
        corpus = corpus_of(pool, plan.pool)
        if not loaded:  # else documents would be loaded although no approach is offered
            _require_approach(client, plan, corpus.collection, pool[0].questions[0])
        step = f"searchable: {plan.pool or pool[0].name}"
        loaded.append(load(client, corpus, bars(step, len(corpus.envelopes)).advance))
    return loaded * len(plan.collections) if plan.pool else loaded


def _experiment(plan: Plan, collection: LabelledCollection, loaded: Loaded) -> Experiment:
    questions = spread_out(collection.questions, plan.questions)

    def served(document_id: str) -> str:
        return served_id(collection, document_id, plan.pool)

    return Experiment(
        collection=collection,
        questions=questions,
        judgements={
            question.id: {served(document): grade for document, grade in collection.judgements[question.id].items()}
            for question in questions
        },
        metadata={served(document.id): document.metadata or {} for document in collection.documents},
        loaded=loaded,
        k=plan.k,
    )


def _search_all(plan: Plan, client: ServiceClient, experiment: Experiment, bars: Bars) -> _Responses:
    """The approaches of a question take turns at being first, since the first one finds the question's texts cold."""
    into, questions = experiment.loaded.collection, experiment.questions
    approaches, not_offered = offered_approaches(client, plan, into, questions[0])
    asked = bars(f"asked: {experiment.collection.name}", len(questions) * len(approaches))
    answers: dict[str, list[Answer]] = {approach.name: [] for approach in approaches}
    for number, question in enumerate(questions):
        first = number % len(approaches)
        for approach in (*approaches[first:], *approaches[:first]):
            answers[approach.name].append(search(client, question.id, plan.parameters(into, question, approach)))
            asked.advance()
    missing = not_measured(approaches, answers)
    measured = tuple(approach for approach in approaches if approach.name not in missing)
    return _Responses(experiment, measured, answers, not_offered, missing)


def offered_approaches(
    client: ServiceClient, plan: Plan, collection: str, question: Question
) -> tuple[tuple[Approach, ...], dict[str, str]]:
    """The approaches that the service takes, and {approach: why not} of the others.

    Each is searched once before anything counts, so that connecting and warming up count in no latency.
    Raises WrongSetting when it takes none, with the reason of the first.
    """
    offered, refused = [], {}
    for approach in plan.approaches:
        try:
            search(client, question.id, plan.parameters(collection, question, approach))
        except WrongSetting as refusal:
            refused[approach.name] = str(refusal)
        else:
            offered.append(approach)
    if not offered:
        raise WrongSetting(f"The service offers none of these approaches. {next(iter(refused.values()))}")
    return tuple(offered), refused


def _require_approach(client: ServiceClient, plan: Plan, collection: str, question: Question) -> None:
    """Raises WrongSetting, as `offered_approaches` does, where the service takes none of them."""
    for approach in plan.approaches:
        with suppress(WrongSetting):
            search(client, question.id, plan.parameters(collection, question, approach))
            return
    offered_approaches(client, plan, collection, question)


def search(client: ServiceClient, question_id: str, parameters: Mapping[str, Any]) -> Answer:
    """One search. Raises Failure when its stream ends in an error or is cut off, WrongSetting when it is refused."""
    began = time.perf_counter()
    hits: list[JSONObject] = []
    first_hit: float | None = None
    for name, body, _ in client.events("/v1/search", parameters):
        if name == "hit":
            first_hit = first_hit if hits else time.perf_counter() - began
            hits.append(body)
        elif name == "done":
            return Answer(
                question_id=question_id,
                documents=tuple(hit["document_id"] for hit in hits),
                scores=tuple(hit["score"] for hit in hits),
                confidences=tuple(hit.get("confidence") for hit in hits),
                stages=body["timings"],
                first_hit_seconds=first_hit,
                seconds=time.perf_counter() - began,
                failed_channels=body["failed_channels"],
            )
    raise Failure(f"The answer to the question {question_id!r} ended in the middle; is the service still running?")
