"""What speaks for a sentence as an answer: a few dozen numbers, without any model.

They say how much of the question the sentence holds, alone, with its title and beyond what other hits say; where it
is; whether it has the kind of answer that is asked for; and whether a chain leads to it: a sentence of another hit
that names its title.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from indexer.text_analysis import query_terms
from query_api.answers.sentences import LEAST_LETTERS, Sentence, terms_in
from query_api.query.analysis import Question, normalise_text
from schemas.hits import Hit

Wanted = Literal["time", "number", "person", "place", "thing"]
KINDS: tuple[Wanted, ...] = ("time", "number", "person", "place")

FEATURES = (
    "share", "share_with_title", "share_beyond_title", "is_first", "inverse_place", "log_rank", "score", "confidence",
    "cosine", "title_asked", "names_hit", "named_by", "has_kind", "lacks_kind", "has_new_name", "new_names",
    "wants_time", "wants_number", "wants_person", "wants_place", "length", "path", "is_evidence", "of_best_in_hit",
    "of_best", "is_best_words", "beyond_anchor", "beyond_anchor_and_title", "linked", "linked_beyond", "linked_first",
    "linked_rest", "asked_noun", "asked_noun_beyond_title", "share_of_hit", "share_with_new_name", "share_with_kind",
    "begins_with_pronoun", "pronoun_of_asked_title",
)  # fmt: skip

_TIME = re.compile(
    r"\b(?:1\d{3}|20\d{2})\b|\b(?:January|February|March|April|May|June|July|August|September|October|November|"
    r"December)\b|\b\d{1,2}(?::\d{2}|th century| [ap]\.?m\b)"
)
_NUMBER = re.compile(
    r"\b\d[\d,.]*\b|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million|"
    r"billion|dozen)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'’.-]+(?:\s+(?:(?:of|the|de|van|von|and|&)\s+)?[A-Z][\w'’.-]+)*")
_PRONOUN = re.compile(r"(?:He|She|It|They|His|Her|Its|Their|This|These|The [a-z]+)\b")
_ASKED_NOUN = re.compile(r"\b(?:what|which|whose|how (?:many|much))\b((?:\W+\w+){1,4})", re.IGNORECASE)
_WANTED: dict[Wanted, str] = {
    "time": r"\bwhen\b|\b(?:what|which) (?:\w+ ){0,2}(?:year|date|month|decade|century|day|time)\b|\bhow old\b",
    "number": (
        r"\bhow (?:many|much|long|far|often|big|tall|large|high|deep|wide|fast|heavy)\b|"
        r"\b(?:what|which) (?:\w+ )?(?:number|percentage|age|length|population|distance|amount|size|share)\b"
    ),
    "person": (
        r"\bwho(?:se|m)?\b|\b(?:which|what) (?:\w+ ){0,3}(?:person|actor|actress|author|writer|singer|director|"
        r"president|player|musician|artist|politician|man|woman|king|queen|composer|producer|engineer|minister)\b"
    ),
    "place": (
        r"\bwhere\b|\b(?:what|which) (?:\w+ ){0,2}(?:city|country|state|place|town|county|region|river|island|"
        r"location|province|continent|village|district|nationality|street|building)\b"
    ),
}
"""The first that matches."""

_BRACKET_AT_END = re.compile(r"\s*\([^()]*\)\s*$")
SUBTITLE = re.compile(r"\s+[–—|-]\s+|: ")
_WORD = re.compile(r"\w+")
_PATH_STEPS = 4
_NAMES = 5
_WORDS = 60


def wanted(question: str) -> Wanted:
    """The kind of answer that a question asks for, by its words."""
    return next((kind for kind, words in _WANTED.items() if re.search(words, question, re.IGNORECASE)), "thing")


class AskedFor(NamedTuple):
    """The kind of answer that a question asks for, and its own words, which are no answer."""

    kind: Wanted
    words: frozenset[str]

    @classmethod
    def by(cls, question: Question) -> Self:
        return cls(wanted(question.text), frozenset(_WORD.findall(question.text.lower())))

    @property
    def is_measured(self) -> bool:
        """Whether it is a time or a number."""
        return self.kind in ("time", "number")

    def is_in(self, text: str) -> bool:
        """Whether a text has something of the kind: a time, a number, else a name with a word that the question has
        not."""
        if self.is_measured:
            return bool((_TIME if self.kind == "time" else _NUMBER).search(text))
        return bool(self.new_names(text))

    def new_names(self, text: str) -> list[str]:
        """The names in a text with a word that the question has not."""
        return [name for name in _NAME.findall(text) if not self.words.issuperset(_WORD.findall(name.lower()))]


class Titles(NamedTuple):
    """Of each hit: the question's terms in its title; the title as others name it, normalised between blanks, or
    nothing; whether the question names it; what the document is called: that, and what is before and after a dash or a
    colon."""

    terms: list[frozenset[int]]
    names: list[str]
    asked: list[bool]
    called: list[frozenset[str]]

    @classmethod
    def of(cls, question: Question, hits: Sequence[Hit], idf: Mapping[int, float]) -> Self:
        names = [normalise_text(_BRACKET_AT_END.sub("", hit.title)) for hit in hits]
        names = [f" {name} " if len(name) >= LEAST_LETTERS else "" for name in names]
        return cls(
            [terms_in(hit.title, 0, len(hit.title), idf) for hit in hits],
            names,
            [bool(name) and name in question.normalised for name in names],
            [frozenset((name, *_parts_of(hit.title))) for name, hit in zip(names, hits, strict=True)],
        )

    def held_with(self, sentences: Sequence[Sentence]) -> frozenset[int]:
        """The terms of the question that a title or one of the sentences holds."""
        return frozenset[int]().union(*self.terms, *(sentence.terms for sentence in sentences))

    def named_in(self, sentence: Sentence) -> list[bool]:
        """Of each hit, whether the sentence names its title."""
        text = sentence.normalised
        return [bool(name) and name in text for name in self.names]


def _parts_of(title: str) -> Iterator[str]:
    before, *after = SUBTITLE.split(title, maxsplit=1)
    yield from (f" {normalise_text(part)} " for part in (before, *after))


def sentence_features(
    question: Question,
    asked_for: AskedFor,
    hits: Sequence[Hit],
    sentences: Sequence[Sentence],
    titles: Titles,
    idf: Mapping[int, float],
) -> NDArray[np.float64]:
    """(n_sentences, len(FEATURES)) of the sentences of these hits. `idf` weighs the terms of the question. A pure
    function of its arguments."""
    if not sentences:
        return np.zeros((0, len(FEATURES)))
    rows = _Rows(question, asked_for, hits, sentences, titles, _Shares(idf))
    return np.array([rows.row(number) for number in range(len(sentences))])


class _Shares:
    """Shares of the question's idf."""

    def __init__(self, idf: Mapping[int, float]) -> None:
        self._idf = idf
        self._total = math.fsum(idf.values()) or 1.0
        self._known: dict[frozenset[int], float] = {}

    def __call__(self, terms: frozenset[int]) -> float:
        if terms not in self._known:
            self._known[terms] = math.fsum(self._idf.get(term, 0.0) for term in terms) / self._total
        return self._known[terms]


class _Rows:
    """The features of each sentence, of which many depend on the other sentences."""

    def __init__(
        self,
        question: Question,
        asked_for: AskedFor,
        hits: Sequence[Hit],
        sentences: Sequence[Sentence],
        titles: Titles,
        shares: _Shares,
    ) -> None:
        self._asked_for = asked_for
        self._hits = hits
        self._sentences = sentences
        self._titles = titles
        self._share = shares
        best = max((hit.score for hit in hits), default=0.0)
        self._scores = [hit.score / best if best > 0 else 0.0 for hit in hits]
        noun = _ASKED_NOUN.search(question.text)
        self._noun = frozenset(query_terms(noun.group(1))) if noun else frozenset[int]()
        self._with_title = [sentence.terms | titles.terms[sentence.hit] for sentence in sentences]
        self._names = [titles.named_in(sentence) for sentence in sentences]
        self._evidence = {
            edge.evidence.strip() for hit in hits for edge in hit.path if edge.evidence and edge.by != "question"
        }
        self._of_hit: list[list[int]] = [[] for _ in hits]
        for number, sentence in enumerate(sentences):
            self._of_hit[sentence.hit].append(number)
        self._anchors = [self._anchor(hit) for hit in range(len(hits))]
        self._all = [frozenset[int]().union(*(self._with_title[at] for at in own)) for own in self._of_hit]
        self._best_in = [max((shares(self._with_title[at]) for at in own), default=0.0) for own in self._of_hit]
        self._best = max(self._best_in)

    def _anchor(self, hit: int) -> int | None:
        """The sentence of another hit that fits the question best, where a chain to this one would begin."""
        return max(
            (at for at, sentence in enumerate(self._sentences) if sentence.hit != hit),
            key=lambda at: (
                self._share(self._with_title[at]) * (1 + self._scores[self._sentences[at].hit]) / 2,
                -at,
            ),
            default=None,
        )

    def row(self, number: int) -> list[float]:
        share = self._share
        sentence = self._sentences[number]
        at, terms, title = sentence.hit, sentence.terms, self._titles.terms[sentence.hit]
        hit, asked = self._hits[at], self._titles.asked[at]
        own, full = share(terms), share(self._with_title[number])
        anchor = self._anchors[at]
        before = frozenset[int]() if anchor is None else self._with_title[anchor]
        linked = anchor is not None and any(
            self._names[other][at] for other in self._of_hit[self._sentences[anchor].hit]
        )
        new_names, measured = self._asked_for.new_names(sentence.text), self._asked_for.is_measured
        fits = self._asked_for.is_in(sentence.text)
        noun = self._noun & terms
        pronoun = bool(_PRONOUN.match(sentence.text))
        values = {
            "share": own,
            "share_with_title": full,
            "share_beyond_title": share(terms - title),
            "is_first": sentence.place == 0,
            "inverse_place": 1 / (1 + sentence.place),
            "log_rank": math.log(1 + at),
            "score": self._scores[at],
            "confidence": hit.confidence or 0.0,
            "cosine": hit.scores.get("vector", 0.0),
            "title_asked": asked,
            "names_hit": max(
                (score for other, score in enumerate(self._scores) if other != at and self._names[number][other]),
                default=0.0,
            ),
            "named_by": max(
                (
                    share(self._with_title[other])
                    for other, each in enumerate(self._sentences)
                    if each.hit != at and self._names[other][at]
                ),
                default=0.0,
            ),
            "has_kind": measured and fits,
            "lacks_kind": measured and not fits,
            "has_new_name": not measured and bool(new_names),
            "new_names": min(len(new_names), _NAMES) / _NAMES,
            **{f"wants_{kind}": self._asked_for.kind == kind for kind in KINDS},
            "length": min(sentence.words, _WORDS) / _WORDS,
            "path": len(hit.path) / _PATH_STEPS,
            "is_evidence": sentence.text.strip() in self._evidence,
            "of_best_in_hit": own / (self._best_in[at] or 1.0),
            "of_best": full / (self._best or 1.0),
            "is_best_words": hit.answer is not None
            and hit.start - hit.parent_start + hit.answer.start == sentence.start,
            "beyond_anchor": share(terms - before),
            "beyond_anchor_and_title": share(terms - before - title),
            "linked": linked,
            "linked_beyond": linked * share(terms - before),
            "linked_first": linked and sentence.place == 0,
            "linked_rest": linked * (1 - full),
            "asked_noun": share(noun),
            "asked_noun_beyond_title": share(noun - title),
            "share_of_hit": share(self._all[at]),
            "share_with_new_name": own * bool(new_names),
            "share_with_kind": full * fits,
            "begins_with_pronoun": pronoun,
            "pronoun_of_asked_title": pronoun and asked,
        }
        return [float(values[name]) for name in FEATURES]
