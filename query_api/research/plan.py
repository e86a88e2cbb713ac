"""What kind of question is asked, and how it is searched, by rules over the words of English questions."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from query_api.answers.features import wanted
from query_api.query.analysis import analysed_question, intent_of, parts_of, topic_of
from query_api.research.stated_facts import claimed_facts
from schemas.choices import Intent
from schemas.research import LONGEST_CLAIM, QuestionKind

_KINDS: Mapping[Intent, QuestionKind] = {"compare": "comparison", "relation": "path", "path": "path"}
_BY_WORDS: Mapping[QuestionKind, re.Pattern[str]] = {
    "definition": re.compile(
        r"^\W*(?:define\b|(?:what|who) (?:is|are|was|were) (?:an? |the )?[\w-]+(?: (?!of\b)[\w-]+){0,3}\W*$)",
        re.IGNORECASE,
    ),
    "list": re.compile(r"^\W*(?:please )?(?:list|name|enumerate|give|show)\b|\b(?:what|which) are\b", re.IGNORECASE),
    "temporal": re.compile(r"\b(?:timeline|chronolog\w*|history of|since when|in what order)\b", re.IGNORECASE),
}
"""The first that matches."""
_ASKS = re.compile(
    r"^\W*(?:who|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|can)\b|\?\W*$", re.IGNORECASE
)
_INSTRUCTIONS = re.compile(
    r"\b(?:compar\w+|differ\w*|versus|vs|between|contrast|relat\w+|connect\w+|define)\b", re.IGNORECASE
)
_ASPECT = re.compile(r"\s+(?:by|in terms of|with respect to|as to|regarding|concerning)\s+")
PARAMETERS: Mapping[QuestionKind, Mapping[str, Any]] = {
    "definition": {"answer_sentences": 2},
    "list": {"answer_sentences": 8, "max_per_document": 2},
    "path": {"graph_method": "pagerank"},
}


class Plan(NamedTuple):
    """`questions` are those of the first round, `parameters` those of every search beside the question; `topic` is the
    question without its instructions."""

    kind: QuestionKind
    questions: tuple[str, ...]
    parameters: Mapping[str, Any]
    topic: str


def plan_for(text: str) -> Plan:
    kind, parts = kind_of(text), parts_of(text)
    if kind == "comparison" and parts:  # each thing, with what the last is compared by
        aspect = "".join(_ASPECT.split(parts[-1], maxsplit=1)[1:])
        parts = (*(f"{_ASPECT.split(part, maxsplit=1)[0]} {aspect}".strip() for part in parts), text)
    topic = topic_of(analysed_question(_INSTRUCTIONS.sub(" ", text))).text
    return Plan(kind, parts or (text,), PARAMETERS.get(kind, {}), topic)


def kind_of(text: str) -> QuestionKind:
    """`fact` where nothing else fits."""
    kind = _KINDS.get(intent_of(text)) or next((each for each, words in _BY_WORDS.items() if words.search(text)), None)
    if kind is None and wanted(text) == "time":
        return "temporal"
    if kind is None and len(text) <= LONGEST_CLAIM and not _ASKS.search(text) and claimed_facts(text):
        return "claim"
    return kind or "fact"
