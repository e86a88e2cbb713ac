"""Query analysis: words, spans that may be names, intent, and the parts of a question."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, Self

import Stemmer

from indexer.chunking.sentences import sentence_spans
from indexer.extraction.lexicon import STOP_WORDS
from query_api.query.decomposition import question_clauses
from query_api.query.phrases import read_query
from schemas.choices import Intent
from schemas.hits import Understanding
from schemas.ids import normalise_name
from schemas.letters import INVISIBLE, MARKS
from schemas.search import MAX_HOPS, SearchRequest

MAX_WORDS = 64  # of a question, for names and weights; the channels get the whole of it
MAX_NAME_WORDS = 12
MIN_SINGLE_WORD_LETTERS = 2
MIN_UNMARKED_WORDS = 3
MAX_CACHED_QUESTIONS = 256
MAX_CACHED_TEXTS = 8_192  # sentences; a search meets each of its parents' several times

_BRACKETS = str.maketrans("()[]{}", "      ")
_WORD = re.compile(rf"[^\W_]+(?:(?:[{MARKS}{INVISIBLE}]+|['’.&+#/-](?=[^\W_]))[^\W_]*)*[+#]*")
_EDGES = " .-/&_"
_STEMMER_LANGUAGE = "english"


class Span(NamedTuple):
    """Words `first..last` (exclusive) of the question, and the normalised name they make.

    `marked` when it holds a capital or a digit, as names do.
    """

    first: int
    last: int
    name: str
    marked: bool


class Question:
    """Immutable once made. `stems` are the stems of the words that are not stop words, in order, each once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.phrases = read_query(text).phrases
        self.words = tuple(match.group() for match in _WORD.finditer(text))[:MAX_WORDS]
        stemmer = Stemmer.Stemmer(_STEMMER_LANGUAGE)
        content_words = [word.lower() for word in self.words if word.lower() not in STOP_WORDS]
        self.stems = tuple(dict.fromkeys(stemmer.stemWord(word) for word in content_words))
        self.word_of_stem = {stemmer.stemWord(word): word for word in reversed(content_words)}

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """Compiled on first use: until then a search has begun to embed the question."""
        longest_first = sorted(self.stems, key=lambda stem: (-len(stem), stem))
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})") if longest_first else None

    @cached_property
    def normalised(self) -> str:
        return f" {normalise_text(self.text)} "

    def stems_in(self, text: str) -> frozenset[str]:
        """Which stems begin a word of the text."""
        return frozenset(self._pattern.findall(text.lower())) if self._pattern else frozenset()

    def names(self, name: str) -> bool:
        """Whether the question holds this normalised name as whole words."""
        return f" {name} " in self.normalised

    def spans(self) -> list[Span]:
        """Every run of words that may be a name, longest first, then left to right.

        A run counts when it holds a capital or a digit, or has three words and more; one of stop words alone when each
        has a capital, as in the name of the band For Against. A single word must be capitalised or hold a digit, be no
        stop word and have two letters. In a question without capitals after its first word, every word counts as
        capitalised.
        """
        marked, content, capitals = _marks(self.words)
        bare = [normalise_text(word) for word in self.words]
        found = []
        for first, last in _runs(len(bare)):
            run, is_single = range(first, last), last - first == 1
            is_marked = not marked.isdisjoint(run)
            has_content = not content.isdisjoint(run) or (not is_single and capitals.issuperset(run))
            if has_content and (is_marked or last - first >= MIN_UNMARKED_WORDS):
                name = " ".join(bare[first:last]).strip(_EDGES)
                if len(name) >= (MIN_SINGLE_WORD_LETTERS if is_single else 1):
                    found.append(Span(first, last, name, is_marked))
        return found


def _marks(words: Sequence[str]) -> tuple[set[int], set[int], set[int]]:
    """The words that are marked, those that are no stop words, and those after the first with a capital."""
    is_cased = any(map(str.isupper, "".join(words[1:])))
    marked = {at for at, word in enumerate(words) if any(map(str.isdigit, word)) or not (is_cased and word.islower())}
    content = {at for at, word in enumerate(words) if word.lower() not in STOP_WORDS}
    return marked, content, {at for at, word in enumerate(words) if at and word[0].isupper()}


def _runs(words: int) -> Iterator[tuple[int, int]]:
    """The bounds of every run of words that a name may have, longest first, then left to right."""
    for length in range(min(MAX_NAME_WORDS, words), 0, -1):
        yield from ((first, first + length) for first in range(words - length + 1))


@lru_cache(MAX_CACHED_QUESTIONS)
def analysed_question(text: str) -> Question:
    """Cached: its pattern takes longer to compile than to use."""
    return Question(text)


_NO_TOPIC = frozenset(
    Question(
        "main major key central common recurring overall whole entire everything theme topic subject idea area point "
        "content issue question summarise summarize summary overview outline gist collection corpus dataset archive "
        "document documents knowledge base library cover discuss describe talk tell know list give show"
    ).stems
)
"""Stems of what such questions say of what they want, as opposed to what they want it about."""


def topic_of(question: Question) -> Question:
    """What the question is about: its words from the first to the last that say so."""
    topical = {question.word_of_stem[stem] for stem in question.stems if stem not in _NO_TOPIC}
    at = [place for place, word in enumerate(question.words) if word.lower() in topical]
    return analysed_question(" ".join(question.words[at[0] : at[-1] + 1]) if at else "")


class WordWeights(NamedTuple):
    """The weight of each stem of a question."""

    idf: dict[str, float]
    total: float

    @classmethod
    def from_idf(cls, question: Question, word_weights: Callable[[Sequence[str]], Sequence[float]]) -> Self:
        """By the idf of the collection; words that no text of it holds weigh nothing: no candidate can cover them."""
        weights = word_weights([question.word_of_stem[stem] for stem in question.stems])
        return cls(dict(zip(question.stems, weights, strict=True)), sum(weights))

    def share(self, stems: Iterable[str]) -> float:
        """The share of the question's weight that these stems carry, in [0, 1]."""
        return math.fsum(self.idf.get(stem, 0.0) for stem in stems) / self.total if self.total else 0.0


@lru_cache(MAX_CACHED_TEXTS)
def normalise_text(text: str) -> str:
    """A text normalised as names are, with the content of brackets kept, so that names in it are whole words."""
    words = (word.strip(_EDGES) for word in normalise_name(text.translate(_BRACKETS)).split())
    return " ".join(word for word in words if word)


def has_words(text: str, normalised: str) -> bool:
    """Whether a text has these normalised words next to each other, as whole words."""
    return f" {normalised} " in f" {normalise_text(text)} "


MAX_PARTS = 4
MIN_SENTENCE_WORDS = 3

# The first that matches; the most specific come first.
_INTENTS: Sequence[tuple[Intent, str]] = (
    (
        "global",
        (r"\b(?:main|major|key|central|common|recurring|overall|most important) (?:themes?|topics?|subjects?|areas?)\b|"
        r"\b(?:themes|topics|subjects) (?:are|do|does|in|of|across|covered|discussed) .{0,60}"
        r"\b(?:collection|corpus|data ?set|documents|archive|knowledge base)\b|"
        r"\b(?:everything|tell me all) (?:about|on|known|(?:that )?(?:there is|(?:you|we) (?:know|have)))\b|"
        r"^\W*all about\b|\bwhat (?:(?:do|can) (?:you|we) (?:know|tell me)|is (?:there to know|known)) about\b|"
        r"\bwhat (?:is|are) (?:all |this |the |these |my |our ){1,3}(?:collection|corpus|data ?set|documents|archive|"
        r"knowledge base) about\b|"
        r"\b(?:summari[sz]e|summary of|overview of) (?:all |this |the |these |my |our |whole |entire ){1,3}"
        r"(?:collection|corpus|data ?set|documents|archive|knowledge base)\b"),
    ),
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
_BEFORE_THING = re.compile(r"[?!.;:,]\s*|\b(?:is|are)\s+", re.IGNORECASE)
_AFTER_THING = re.compile(r"[?!.;:,]")


def understand(question: str, intent: Intent | None = None) -> Understanding:
    """The question's intent, unless the caller gives it, and its parts: none for a question that is one piece."""
    return Understanding(intent=intent or intent_of(question), parts=parts_of(question))


def hops_of(request: SearchRequest) -> int | None:
    """The depth of `expansion`: one step to what is to be explained, two to the rest; None for other methods."""
    if request.graph_method != "expansion":
        return None
    return request.hops or (1 if (request.intent or intent_of(request.q)) == "explain" else MAX_HOPS)


def intent_of(question: str) -> Intent:
    """By the first rule that matches; `general` when none does."""
    return next((intent for intent, pattern in _PATTERNS if pattern.search(question)), "general")


def parts_of(question: str) -> tuple[str, ...]:
    """The things compared, else the questions and sentences of three words or more where there are several; at most
    four."""
    compared = _compared(question)
    if compared:
        return tuple(compared[:MAX_PARTS])
    sentences = [question[start:end] for start, end in sentence_spans(question)]
    clauses = [clause for sentence in sentences for clause in question_clauses(sentence)]
    whole = [clause for clause in clauses if len(clause.split()) >= MIN_SENTENCE_WORDS]
    return tuple(whole[:MAX_PARTS]) if len(whole) > 1 else ()


def _compared(question: str) -> list[str]:
    """The things that a question compares, two or more; none where it does not."""
    things = _VERSUS.split(question)
    if len(things) > 1:
        things[0] = _BEFORE_THING.split(things[0])[-1]
        things[-1] = _AFTER_THING.split(things[-1])[0]
        things = [thing.strip() for thing in things]
        if all(re.fullmatch(_THING, thing) for thing in things):
            return things
    match = next(filter(None, (pattern.search(question) for pattern in _COMPARISONS)), None)
    return [] if match is None else [thing.strip() for thing in (*match["first"].split(","), match["last"])]
