"""Every question put to the running service in every approach, as a client would: over the stream, one at a time."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from query_api.evaluation.answers import Asked
from query_api.evaluation.approaches import WITHOUT_RERANKER, Approach
from query_api.evaluation.datasets import Question
from schemas.errors import Failure, WrongSetting
from schemas.filters import Group
from schemas.search import MAX_QUERY_CHARACTERS

JSONObject = dict[str, Any]


class FrameSource(Protocol):
    """What answers: `ServiceClient`, or a double."""

    def events(self, path: str, params: Mapping[str, Any]) -> Iterable[tuple[str, JSONObject]]: ...


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """What all searches of a collection's questions have in common."""

    collection: str
    k: int
    group: Group
    lower_case: bool = False

    def parameters(self, question: Question, approach: Approach) -> dict[str, Any]:
        text = (question.text.lower() if self.lower_case else question.text)[:MAX_QUERY_CHARACTERS]
        scope = {"collection": self.collection, "group": self.group, "cache": False}
        return {"q": text, "k": self.k, **scope, **WITHOUT_RERANKER, **approach.parameters}


def offered(
    source: FrameSource, asking: Asking, question: Question, approaches: Sequence[Approach]
) -> tuple[tuple[Approach, ...], dict[str, str]]:
    """The approaches that the service takes, and {approach: why not} of the others.

    Each is asked the question once before anything counts, so opening a connection and waking up is nobody's latency.
    Raises WrongSetting when it takes none, with the reason of the first.
    """
    taken, refused = [], {}
    for approach in approaches:
        try:
            ask(source, question.id, asking.parameters(question, approach))
        except WrongSetting as refusal:
            refused[approach.name] = str(refusal)
        else:
            taken.append(approach)
    if not taken:
        raise WrongSetting(f"The service offers none of these approaches. {next(iter(refused.values()))}")
    return tuple(taken), refused


def require_one(source: FrameSource, asking: Asking, question: Question, approaches: Sequence[Approach]) -> None:
    """Raises WrongSetting, as `offered` does, where the service takes none of them."""
    for approach in approaches:
        with suppress(WrongSetting):
            ask(source, question.id, asking.parameters(question, approach))
            return
    offered(source, asking, question, approaches)


def ask_all(
    source: FrameSource,
    asking: Asking,
    questions: Sequence[Question],
    approaches: Sequence[Approach],
    advance: Callable[[int], None] = lambda _: None,
) -> dict[str, list[Asked]]:
    """{approach: an answer for each question, in the order of `questions`}.

    The approaches of a question take turns at being first, since the first one finds the question's texts cold.
    """
    answers: dict[str, list[Asked]] = {approach.name: [] for approach in approaches}
    for number, question in enumerate(questions):
        first = number % len(approaches)
        for approach in [*approaches[first:], *approaches[:first]]:
            answers[approach.name].append(ask(source, question.id, asking.parameters(question, approach)))
            advance(1)
    return answers


def ask(source: FrameSource, question_id: str, asked: Mapping[str, Any]) -> Asked:
    """One search. Raises Failure when its stream ends in an error or in the middle, WrongSetting when it is refused."""
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
                scores=tuple(hit["score"] for hit in hits),
                confidences=tuple(hit.get("confidence") for hit in hits),
                stages=body["timings"],
                first_hit_seconds=first_hit,
                seconds=time.perf_counter() - began,
                failed_channels=body["failed_channels"],
            )
    raise Failure(f"The answer to the question {question_id!r} ended in the middle; is the service still running?")
