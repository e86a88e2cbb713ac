"""What kind of question is asked, and the parts it falls into: by rules, without looking at any document."""

import re
from collections.abc import Sequence

from indexer.chunking.sentences import sentence_spans
from query_api.query.decomposition import question_clauses
from schemas.hits import Understanding
from schemas.search import MAX_HOPS, Intent, SearchRequest

MAX_PARTS = 4
LEAST_WORDS_OF_A_SENTENCE = 3

# The first that fits tells; the kinds that say most of what is wanted stand first.
_INTENTS: Sequence[tuple[Intent, str]] = (
    ("quiz", r"\b(?:quiz|flash ?cards?|test me|test my knowledge|multiple[- ]choice|exam questions?)\b"),
    (
        "path",
        (r"\b(?:learning path|path from|steps? (?:from|to learn)|prerequisites?|what (?:should|must) i "
        r"(?:learn|know|read) (?:first|before)|in what order|roadmap)\b"),
    ),
    (
        "compare",
        (r"\b(?:compare[ds]?|comparing|comparison|vs\.?|versus|differen(?:ce|ces|t from)|differs? from|in contrast to|"
        r"(?:both|same) .{1,80} and|advantages? of .{1,80} over)(?!\w)"),
    ),
    ("summarise", r"\b(?:summari[sz]e|summary|overview|outline|gist|main points|key points|tl;?dr)\b"),
    (
        "relation",
        (r"\b(?:related? to|relation(?:ship)?s? (?:between|of|to)|connect(?:ed|ion|s)? (?:between|to|with)|"
        r"links? between|depends? on|lead(?:s|ing)? to|have to do with|"
        r"(?:is|are|was|were) .{1,120} (?:related|connected|linked))\b"),
    ),
    ("explain", (r"^\W*(?:please )?(?:why|how (?!many|much|long|old|far|often|big|tall|large)|explain|describe|define|"
                r"what (?:is|are|does|do) (?:an? |the )?[\w-]+(?: [\w-]+){0,2} ?(?:mean|\?|$))")),
    (
        "find",
        (r"^\W*(?:please )?(?:who|whose|whom|when|where|which|what|how (?:many|much|long|old|far|often|big|tall|large)|"
        r"find|show|list|give|search|get|name|look up)\b"),
    ),
)  # fmt: skip
_PATTERNS = [(intent, re.compile(pattern, re.IGNORECASE)) for intent, pattern in _INTENTS]

_THING = r"[^,;:?!]{2,120}?"
_END = r"\s*(?:[?!.;:,]|$)"


def _series(joined_by: str) -> str:
    """`A and B`, `A, B and C`: the things of a list, the last of which is joined by one of these words."""
    return rf"(?P<first>{_THING}(?:,{_THING}){{0,8}}?),?\s+(?:{joined_by})\s+(?P<last>{_THING})"


_COMPARISONS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bcompar(?:e|ing|ison (?:of|between))\s+{_series('and|or|with|to|against')}{_END}",
        rf"\bdifferences?\s+(?:between|of)\s+{_series('and')}{_END}",
        rf"\bhow\s+(?:is|are|does|do)\s+{_series('differ from|different from')}{_END}",
        rf"\bhow\s+(?:do|are)\s+{_series('and|or')}\s+(?:differ(?:ent)?|compare[d]?)\b",
    )
)
_VERSUS = re.compile(r"\s+(?:vs\.?|versus)\s+", re.IGNORECASE)
_BEFORE_A_THING = re.compile(r"[?!.;:,]\s*|\b(?:is|are)\s+", re.IGNORECASE)
_BEHIND_A_THING = re.compile(r"[?!.;:,]")


def understood(question: str, intent: Intent | None = None) -> Understanding:
    """The question's kind, unless the caller says it, and its parts: none for a question that is one piece."""
    return Understanding(intent=intent or intent_of(question), parts=parts_of(question))


def hops_of(request: SearchRequest) -> int | None:
    """How many steps `expansion` goes: what is to be explained stands near, the rest may be two steps away."""
    if request.graph_method != "expansion":
        return None
    return request.hops or (1 if (request.intent or intent_of(request.q)) == "explain" else MAX_HOPS)


def intent_of(question: str) -> Intent:
    """By the first rule that fits; `general` when none does."""
    return next((intent for intent, pattern in _PATTERNS if pattern.search(question)), "general")


def parts_of(question: str) -> tuple[str, ...]:
    """The things compared, else the questions and sentences of three words or more where there are several; at most
    four."""
    compared = _compared(question)
    if compared:
        return tuple(compared[:MAX_PARTS])
    sentences = [question[start:end] for start, end in sentence_spans(question)]
    clauses = [clause for sentence in sentences for clause in question_clauses(sentence)]
    whole = [clause for clause in clauses if len(clause.split()) >= LEAST_WORDS_OF_A_SENTENCE]
    return tuple(whole[:MAX_PARTS]) if len(whole) > 1 else ()


def _compared(question: str) -> list[str]:
    """The things that a question compares, two or more; none where it does not."""
    things = _VERSUS.split(question)
    if len(things) > 1:
        things[0] = _BEFORE_A_THING.split(things[0])[-1]
        things[-1] = _BEHIND_A_THING.split(things[-1])[0]
        things = [thing.strip() for thing in things]
        if all(re.fullmatch(_THING, thing) for thing in things):
            return things
    match = next(filter(None, (pattern.search(question) for pattern in _COMPARISONS)), None)
    return [] if match is None else [thing.strip() for thing in (*match["first"].split(","), match["last"])]
