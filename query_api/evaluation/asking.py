"""Every question put to the running service in every approach, as a client would: over the stream, one at a time."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from query_api.evaluation.approaches import Approach
from query_api.evaluation.labelled import Question
from schemas.api import MAX_QUERY_CHARACTERS, Group
from schemas.exits import Failure

JSONObject = dict[str, Any]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What came back for one question in one approach.

    `documents` and `confidences` are those of the hits, best first; `stages` the seconds the service's answer gives
    for each of its steps, `first_hit_seconds` and `seconds` those until the first hit and the end had come here.
    """

    question_id: str
    documents: tuple[str, ...]
    confidences: tuple[float | None, ...]
    stages: Mapping[str, float]
    first_hit_seconds: float | None
    seconds: float
    failed_channels: Mapping[str, str]


class FrameSource(Protocol):
    """What answers: `ServiceClient`, or a double."""

    def events(self, path: str, params: Mapping[str, Any]) -> Iterable[tuple[str, JSONObject]]: ...


def ask_all(
    source: FrameSource,
    collection: str,
    questions: Sequence[Question],
    approaches: Sequence[Approach],
    *,
    k: int,
    group: Group,
    lower_case: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> dict[str, list[Asked]]:
    """{approach: an answer for each question, in the order of `questions`}.

    The first question is asked once in each approach before anything counts, so that opening a connection and waking
    up is nobody's latency; the approaches of a question then take turns at being first, since the first one finds the
    question's texts cold.
    """
    answers: dict[str, list[Asked]] = {approach.name: [] for approach in approaches}

    def put(question: Question, approach: Approach) -> Asked:
        text = (question.text.lower() if lower_case else question.text)[:MAX_QUERY_CHARACTERS]
        asked = {"q": text, "k": k, "collection": collection, "group": group, "cache": False, **approach.parameters}
        return ask(source, question.id, asked)

    for approach in approaches:
        put(questions[0], approach)
    for number, question in enumerate(questions):
        first = number % len(approaches)
        for approach in [*approaches[first:], *approaches[:first]]:
            answers[approach.name].append(put(question, approach))
            advance(1)
    return answers


def ask(source: FrameSource, question_id: str, asked: Mapping[str, Any]) -> Asked:
    """One search. Raises Failure when its stream ends in an error or in the middle."""
    began = time.perf_counter()
    hits: list[JSONObject] = []
    first_hit: float | None = None
    for name, body in source.events("/v1/search", asked):
        if name == "hit":
            first_hit = first_hit if hits else time.perf_counter() - began
            hits.append(body)
        elif name == "error":
            raise Failure(f"The question {question_id!r} was not answered. {body['title']}: {body['detail']}")
        elif name == "done":
            return Asked(
                question_id=question_id,
                documents=tuple(hit["document_id"] for hit in hits),
                confidences=tuple(hit.get("confidence") for hit in hits),
                stages=body["timings"],
                first_hit_seconds=first_hit,
                seconds=time.perf_counter() - began,
                failed_channels=body["failed_channels"],
            )
    raise Failure(f"The answer to the question {question_id!r} ended in the middle; is the service still running?")
