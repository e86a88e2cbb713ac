"""Answers to a made-up question, extracted and written, and a scripted judge's verdicts."""

import ast
import json
import re
from collections.abc import Sequence
from typing import Any

from query_api.answers.answer import compose
from query_api.answers.sentences import TermIdf
from query_api.evaluation.answer_judgements import Asked
from query_api.evaluation.answer_labels import AnswerLabels
from query_api.evaluation.datasets import Question
from schemas.answers import Answer
from schemas.hits import Hit
from schemas.search import SearchRequest
from tests.unit.query_api.answers.found import HITS, QUESTION, idf_of

METADATA = {"answer": "Lisbon", "supporting_facts": [["Alpha Film", 1], ["Jane Doe", 1]]}
RELEVANT = ("d1", "d2")


def extracted(question: str = QUESTION, hits: Sequence[Hit] = HITS) -> Answer:
    """Three sentences; without confidence in the hits, so that nothing is refused."""
    unsure = [hit.model_copy(update={"confidence": None}) for hit in hits]
    return compose(SearchRequest(q=question, answer=True), unsure, TermIdf(idf_of(question), 5.0))


def written(*lines: str) -> Answer:
    """A language model's sentences, with the numbers of the extract's citations."""
    return extracted().model_copy(update={"form": "model", "text": "\n".join(lines)})


def refused() -> Answer:
    return Answer(text="", refused=True, reason="Nothing.")


def asked(answer: Answer | None = None, question: str = QUESTION, relevant: Sequence[str] = RELEVANT) -> Asked:
    labels = AnswerLabels.of(Question(id="q1", text=question, metadata=METADATA if relevant else None), relevant)
    return Asked(question, labels, HITS, extracted() if answer is None else answer)


def verdicts(prompt: str, **instead: Any) -> str:
    """What a judge replies who finds everything right, but for `instead`."""
    lengths = re.search(r"\{[^{}]*'context_precision'[^{}]*\}", prompt)
    assert lengths is not None
    lists: dict[str, Any] = {name: [True] * count for name, count in ast.literal_eval(lengths[0]).items()}
    if not lists["faithfulness"]:
        lists["answer_coverage"] = [False] * len(lists["answer_coverage"])
    return json.dumps(lists | {"answer_relevance": [True, False]} | instead)
