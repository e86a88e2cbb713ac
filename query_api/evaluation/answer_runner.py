"""How well the running service answers labelled questions: `thalweg evaluate answers`."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from indexer.chunking.sentences import sentence_spans
from query_api.answers.sentences import HITS
from query_api.client import JSONObject, ServiceClient
from query_api.evaluation.answer_labels import AnswerLabels
from query_api.evaluation.datasets import LabelledCollection, Question, spread_out
from schemas.progress_bars import Bar

SEARCH = "/v1/search"


class Asked(NamedTuple):
    """A question, what was answered, and the seconds that the answer took, and the same search without one."""

    labels: AnswerLabels
    hits: list[JSONObject]
    answer: JSONObject
    seconds: float
    search_seconds: float

    @property
    def found(self) -> bool:
        """Whether all relevant documents are among the hits that an answer is made of."""
        relevant = self.labels.relevant
        return bool(relevant) and relevant <= {hit["document_id"] for hit in self.hits[:HITS]}

    @property
    def context_recall(self) -> float:
        held = self.labels.relevant & {hit["document_id"] for hit in self.hits[:HITS]}
        return len(held) / len(self.labels.relevant)

    @property
    def context_precision(self) -> float:
        first = self.hits[:HITS]
        return sum(hit["document_id"] in self.labels.relevant for hit in first) / max(len(first), 1)

    def support(self) -> tuple[int, int, int]:
        """How many of the cited sentences are needed; how many are cited; how many are needed."""
        cited = [self._place(source) for source in self.answer["citations"]]
        right = sum(
            self.labels.supports(source["document_id"], source["title"], place, source["text"])
            for source, place in zip(self.answer["citations"], cited, strict=True)
        )
        needed = len(self.labels.by_title) or len(self.labels.by_document) or len(self.labels.hops)
        return right, len(cited), needed

    def verbatim(self) -> list[bool]:
        """Of each cited sentence, whether its hit has it where the citation says."""
        return [self._passage(source)[1] == source["text"] for source in self.answer["citations"]]

    def _place(self, source: JSONObject) -> int:
        """The number of the sentence in its document; below 0 in a later passage, where it is not known."""
        hit, _ = self._passage(source)
        if hit["parent_start"]:
            return -1
        return sum(start < source["start"] for start, _ in sentence_spans(hit["parent_text"]))

    def _passage(self, source: JSONObject) -> tuple[JSONObject, str]:
        hit = self.hits[source["hit"] - 1]
        begin = hit["parent_start"]
        return hit, hit["parent_text"][source["start"] - begin : source["end"] - begin]


def evaluate_answers(
    client: ServiceClient,
    labelled: LabelledCollection,
    collection: str,
    most_questions: int | None,
    options: Mapping[str, Any],
    bar: Bar,
) -> dict[str, float | None]:
    """The figures of one collection of labelled questions; `options` are further parameters of the searches."""
    asked = []
    for question in (*spread_out(labelled.questions, most_questions), *labelled.unanswered):
        asked.append(_ask(client, labelled, question, {"collection": collection, **options}))
        bar.advance()
    return dict(_figures(asked))


def questions_of(labelled: LabelledCollection, most_questions: int | None) -> int:
    return len(spread_out(labelled.questions, most_questions)) + len(labelled.unanswered)


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
    return Asked(labels, found["hits"], found["answer"], time.perf_counter() - between, between - began)


def _figures(asked: Sequence[Asked]) -> Iterator[tuple[str, float | None]]:
    answerable = [each for each in asked if each.labels.relevant]
    found = [each for each in answerable if each.found]
    with_answer = [each for each in found if each.labels.answers]
    given = [each for each in found if each.labels.knows_support and not each.answer["refused"]]
    yield "questions", len(asked)
    yield "context_precision", _mean(each.context_precision for each in answerable)
    yield "context_recall", _mean(each.context_recall for each in answerable)
    yield "all_relevant_found", len(found)
    yield "answer_coverage", _mean(each.labels.answer_in(each.answer["text"]) for each in with_answer)
    support = [each.support() for each in given]
    yield "citation_precision", _mean(right / max(cited, 1) for right, cited, _ in support)
    yield "support_recall", _mean(min(right / max(needed, 1), 1.0) for right, _, needed in support)
    yield "support_f1", _mean(2 * right / max(cited + needed, 1) for right, cited, needed in support)
    yield "verbatim", _mean(same for each in asked for same in each.verbatim())
    yield "refused_of_answerable", _mean(each.answer["refused"] for each in found)
    yield "refused_of_unanswerable", _mean(each.answer["refused"] for each in asked if not each.labels.relevant)
    yield "words", _mean(sum(len(source["text"].split()) for source in each.answer["citations"]) for each in found)
    seconds, searches = ([getattr(each, name) for each in asked] for name in ("seconds", "search_seconds"))
    yield "seconds_p95", round(float(np.quantile(seconds, 0.95)), 4)
    yield "seconds_p95_of_search", round(float(np.quantile(searches, 0.95)), 4)


def _mean(values: Iterable[float]) -> float | None:
    """None of no values."""
    listed = [float(value) for value in values]
    return round(sum(listed) / len(listed), 4) if listed else None
