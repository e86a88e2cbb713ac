"""Multiple-choice questions: a cloze item, and siblings of what is missing that nothing says it of.

Distractors are of the same type, and like the answer in kind, length and frequency, as Mitkov and Ha (2003,
"Computer-Aided Generation of Multiple-Choice Tests") take neighbours in a hierarchy.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from rapidfuzz import fuzz

from indexer.resolution.keys import KINDS_OF_THING, UNTYPED
from indexer.text_analysis import query_terms
from query_api.entities.node_search import NEAREST_CHUNKS, entities_by_meaning
from query_api.index.graph.typed_mentions import typed_mentions_of
from query_api.index.text.text_segments import Scope
from query_api.study.cloze import Cloze, initials_of, is_name
from query_api.study.material import StudyMaterial
from schemas.graph_delta import LITERAL_TYPES
from schemas.ids import digest

OPTIONS = 4
TRIED = 60  # siblings, the most similar first
LEAST_CONFIDENCE = 0.5  # of their type, and of the answer's
SAME_SPELLING = 80  # percent, from which two names may be one
FREQUENCY, WORD = 0.5, 0.75  # less similar by e times the mentions, and by each word
AGREEING = KINDS_OF_THING | UNTYPED
BLANK = "_____"

_ASKS = re.compile(r"(?:The |An? )?$")
_COPULA = re.compile(r" (?:is|are|was|were) ")
_ARTICLE = re.compile(r"\b([Aa])n? $")
_DIGIT, _NUMBER, _LETTERS = re.compile(r"\d"), re.compile(r"\d+"), re.compile(r"[^\W\d_]+")


class Question(NamedTuple):
    """The options are in an order that depends on nothing but them and the sentence."""

    cloze: Cloze
    text: str
    options: list[str]
    answer: str


class QuestionMaker:
    """Makes questions of one collection."""

    def __init__(self, material: StudyMaterial) -> None:
        self._material = material
        self._catalogue = material.catalogue
        self._frequent = np.log1p(material.catalogue.mentions)
        self._near: dict[int, set[int | None]] = {}

    def question(self, cloze: Cloze) -> Question | None:
        """None where less than three siblings are wrong for certain, and for a quantity, which has none."""
        others, left = self._other_names(cloze), set(query_terms(cloze.with_blank(" ")))
        if cloze.row is None or self._catalogue.confidences[cloze.row] < LEAST_CONFIDENCE:
            return None
        wrong: dict[str, set[int]] = {}
        for row, label in self._most_similar(cloze, cloze.row):
            terms = set(query_terms(label))
            is_new = not any(terms <= known or known <= terms for known in wrong.values())
            if is_new and self._is_wrong(row, label, cloze, {*others}, left):
                wrong[label] = terms
            if len(wrong) == OPTIONS - 1:
                texts = [_as_first(each) if cloze.start == 0 else each for each in wrong]
                options = sorted([cloze.answer, *texts], key=lambda option: digest(cloze.sentence.text, option))
                return Question(cloze, asked(cloze), options, cloze.answer)
        return None

    def _most_similar(self, cloze: Cloze, own: int) -> Iterator[tuple[int, str]]:
        """(row, label) of what could be there, the most similar first: of an agreeing type, and near in meaning, length
        and frequency."""
        catalogue, kind = self._catalogue, self._catalogue.type_of(own)
        allowed = AGREEING if kind in AGREEING else {kind}
        near = self._of_type(kind) if kind in LITERAL_TYPES else self._near_in_meaning(cloze, own)
        rows = [row for row in near if row != own and catalogue.type_of(row) in allowed]
        rows = [row for row in rows if catalogue.confidences[row] >= LEAST_CONFIDENCE]
        labels = catalogue.labels.take(np.array(rows, dtype=np.int64)).to_pylist()
        shape, words = _shape(cloze.answer, kind), len(cloze.answer.split())

        def unlike(at: int) -> tuple[float, str]:
            row, label = rows[at], labels[at]
            far = 0.0 if kind in LITERAL_TYPES else np.log1p(at)
            far += FREQUENCY * abs(self._frequent[row] - self._frequent[own]) + WORD * abs(len(label.split()) - words)
            return float(far), digest(cloze.sentence.text, label)

        here = self._material.mentioned_in(cloze.sentence.chunk.key) if kind == "person" else frozenset()
        fit = [
            at
            for at, label in enumerate(labels)
            if _shape(label, kind) == shape and (" " in label or rows[at] not in here)  # such as a first name
        ]
        return ((rows[at], labels[at]) for at in sorted(fit, key=unlike)[:TRIED])

    def _of_type(self, kind: str) -> list[int]:
        found = self._catalogue.rows(collection=self._material.collection, prefix="", entity_type=kind)
        return [int(row) for row in found]

    def _near_in_meaning(self, cloze: Cloze, own: int) -> list[int]:
        """The rows of what the chunks speak of that are nearest to the sentence's, the nearest first. Where it is of a
        document about the answer, what other such documents are about comes first, and nothing that it mentions."""
        chunk, text, subjects = cloze.sentence.chunk, self._material.snapshot.text, self._material.subjects
        vector = text.vectors([chunk.id]).get(chunk.id)
        if vector is None:
            return []
        nearest = text.vector_search(vector, NEAREST_CHUNKS, Scope(collection=self._material.collection))
        titles = []
        if own in subjects(chunk.key):
            nearest = [each for each in nearest if each.key != chunk.key]
            titles = [row for each in nearest for row in sorted(subjects(each.key))]
        spoken_of = entities_by_meaning(self._material.snapshot.graph, self._catalogue, nearest)
        return list(dict.fromkeys([*titles, *spoken_of]))

    def _other_names(self, cloze: Cloze) -> set[int]:
        """The rows of the other entities that the sentence names."""
        text = cloze.with_blank(" ")
        rows = {
            self._material.row_of(each.entity)
            for each in cloze.sentence.mentions
            if each.type not in LITERAL_TYPES and is_name(each.surface, each.type) and each.surface in text
        }
        return {row for row in rows if row is not None} - {cloze.row}

    def _is_wrong(self, row: int, label: str, cloze: Cloze, others: set[int], left: set[int]) -> bool:
        """Whether nothing suggests that it would be right too: it is no other name of the answer, not in the sentence,
        and neither stated of, nor in a chunk with, what the sentence names or the answer."""
        terms, answer = set(query_terms(label)), set(query_terms(cloze.answer))
        if not terms or terms <= answer or answer <= terms or terms & left or row in others:
            return False
        if not any(map(str.isdigit, label)) and fuzz.ratio(label.lower(), cloze.answer.lower()) >= SAME_SPELLING:
            return False
        letters, initials = ([make(each) for each in (label, cloze.answer)] for make in (_letters, initials_of))
        if any(_may_be_short_for(*each) for each in (letters, (letters[0], initials[1]), (initials[0], letters[1]))):
            return False
        return not self._near_to(row) & {*others, cloze.row}

    def _near_to(self, row: int) -> set[int | None]:
        """The rows that facts or chunks join with it."""
        if row not in self._near:
            keys, describer = np.array(self._catalogue.members[row], dtype=np.uint64), self._material.describer
            mentions = typed_mentions_of(self._material.snapshot.graph.segments, keys)
            chunks = np.unique(np.array([each.chunk for each in mentions], dtype=np.int64))
            stated = {end.row for fact in describer.facts.of_entities(keys) for end in fact.ends}
            self._near[row] = stated | {*describer.co_mentioned(row, chunks)}
        return self._near[row]


def asked(cloze: Cloze) -> str:
    """Of a sentence that begins with what is missing and a copula `Which of these is …?`; else with a blank."""
    before, after = cloze.sentence.text[: cloze.start], cloze.sentence.text[cloze.end :]
    if _ASKS.fullmatch(before) and _COPULA.match(after):
        return f"Which of these{after.rstrip('.!')}?"
    return _ARTICLE.sub(r"\1(n) ", before) + BLANK + after


def _letters(label: str) -> str:
    return label.replace(".", "").upper()


def _may_be_short_for(one: str, other: str) -> bool:
    """Whether the one begins with the other, as USA and US, and neither is a letter alone."""
    return min(len(one), len(other)) > 1 and (one.startswith(other) or other.startswith(one))


def _as_first(label: str) -> str:
    return label[:1].upper() + label[1:]


def _shape(label: str, kind: str) -> tuple[object, ...]:
    """What options have in common: written as a name or not, one or several; of literals and ids the pattern."""
    if kind in LITERAL_TYPES:
        return (_LETTERS.sub("a", _DIGIT.sub("0", label)),)
    if kind == "identifier":
        return (_LETTERS.sub("a", _NUMBER.sub("0", label)),)
    is_several = label.endswith("s") and not label.endswith(("ss", "us", "is"))
    return is_name(label, kind), label[:1].isupper(), is_several
