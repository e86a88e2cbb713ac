"""What kind of question is asked, and how it is searched: its sub-questions and the parameters of their searches.

By rules over the words of English questions, as `query_api.query.analysis` has them; nothing is learned.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from indexer.extraction.lexicon import STOP_WORDS
from indexer.extraction.relations import facts_in
from query_api.answers.features import wanted
from query_api.query.analysis import analysed_question, intent_of, parts_of, topic_of
from schemas.research import QuestionKind
from schemas.search import MAX_QUERY_CHARACTERS

_DEFINITION = re.compile(
    r"^\W*(?:define|(?:what|who) (?:is|are|was|were) (?:an? |the )?[\w-]+(?: [\w-]+){0,3}\W*$)", re.IGNORECASE
)
_LIST = re.compile(
    r"^\W*(?:please )?(?:list|name|enumerate|give|show)\b|\b(?:what|which) (?:are|were) (?:all|the)\b", re.IGNORECASE
)
_TEMPORAL = re.compile(r"\b(?:timeline|chronolog\w*|history of|since when|how long ago|in what order)\b", re.IGNORECASE)
_ASKS = re.compile(
    r"^\W*(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will|"
    r"would|should|list|name|define|explain|describe|compare|find|show|give|tell)\b|\?\W*$",
    re.IGNORECASE,
)
_COMPARING = re.compile(r"\b(?:compar\w+|differ\w*|versus|vs|between|advantages?|contrast)\b", re.IGNORECASE)

PARAMETERS: Mapping[QuestionKind, Mapping[str, Any]] = {
    "definition": {"answer_sentences": 2},
    "list": {"answer_sentences": 6, "max_per_document": 2},
    "path": {"graph_method": "pagerank"},
}
"""What the searches of a kind are asked beside the question; of the others nothing."""


class Plan(NamedTuple):
    """`questions` are those of the first round; `parameters` are those of every search."""

    kind: QuestionKind
    questions: tuple[str, ...]
    parameters: Mapping[str, Any]


def plan_for(text: str) -> Plan:
    kind = kind_of(text)
    parts = parts_of(text)
    if kind == "comparison":
        parts = tuple(f"{part} {aspect}".strip() for aspect in [_aspect(text, parts)] for part in parts)
    questions = (*parts, text) if kind == "comparison" else parts or (text,)
    return Plan(kind, tuple(each[:MAX_QUERY_CHARACTERS] for each in questions), PARAMETERS.get(kind, {}))


def kind_of(text: str) -> QuestionKind:
    """The first that fits; `fact` where none does."""
    intent = intent_of(text)
    if intent == "compare":
        return "comparison"
    if intent in ("relation", "path"):
        return "path"
    if _DEFINITION.search(text):
        return "definition"
    if _LIST.search(text):
        return "list"
    if _TEMPORAL.search(text) or wanted(text) == "time":
        return "temporal"
    return "claim" if not _ASKS.search(text) and any(facts_in(text)) else "fact"


def _aspect(text: str, parts: tuple[str, ...]) -> str:
    """In what the parts are compared: the other content words."""
    of_parts = {word for part in parts for word in part.lower().split()}
    words = topic_of(analysed_question(_COMPARING.sub(" ", text))).words
    return " ".join(word for word in words if word.lower() not in of_parts | STOP_WORDS)
