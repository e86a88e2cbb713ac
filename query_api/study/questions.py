"""Multiple-choice questions: a cloze item, and siblings of what is missing that the graph does not say it of too.

Distractors are of the same type, kind, length and frequency, as Mitkov and Ha (2003, "Computer-Aided Generation of
Multiple-Choice Tests") take neighbours in a hierarchy.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from indexer.text_analysis import query_terms
from query_api.entities.catalogue import LITERAL_TYPES
from query_api.entities.description import DEFINING
from query_api.index.graph.typed_mentions import typed_mentions_of
from query_api.study.cloze import Cloze, initials_of, is_name
from query_api.study.material import StudyMaterial
from schemas.ids import digest

OPTIONS = 4
A_CONCEPT = 2
TRIED = 60  # siblings, the likest first
LEAST_SPECIFIC = 5  # content words of a question in which no other name is
BLANK = "_____"

_ASKS = re.compile(r"(?:(?:The|An?) )?$")
_COPULA = re.compile(r" (?:is|are|was|were) ")
_ARTICLE = re.compile(r"\b([Aa])n? $")
_DIGIT, _LETTERS = re.compile(r"\d"), re.compile(r"[^\W\d_]+")


class Question(NamedTuple):
    """The options in their order; the first is not the answer more often than others."""

    cloze: Cloze
    text: str
    options: list[str]
    answer: str


class QuestionMaker:
    """Makes questions of one collection."""

    def __init__(self, material: StudyMaterial) -> None:
        self._material = material
        self._catalogue = material.catalogue
        self._siblings: dict[str, list[int]] = {}

    def question(self, cloze: Cloze) -> Question | None:
        """None where too few options would be wrong for certain, or too much is asked for at once."""
        if cloze.row is None:
            return None
        others = self._other_names(cloze)
        left = query_terms(cloze.with_blank(" "))
        if not others and len(set(left)) < LEAST_SPECIFIC:
            return None
        wrong: list[str] = []
        for row in self._likest(cloze):
            label = self._shown(self._catalogue.labels[row].as_py(), cloze)
            if label not in wrong and self._is_wrong(row, label, cloze, others):
                wrong.append(label)
            if len(wrong) == OPTIONS - 1:
                answer = self._shown(cloze.answer, cloze)
                order = sorted([answer, *wrong], key=lambda option: digest(cloze.sentence.text, option))
                return Question(cloze, asked(cloze), order, answer)
        return None

    def _shown(self, label: str, cloze: Cloze) -> str:
        return label[:1].upper() + label[1:] if cloze.start == 0 else label

    def _likest(self, cloze: Cloze) -> Iterator[int]:
        """The rows of siblings: of the same kind first, then by how alike their names and frequencies are."""
        catalogue, own = self._catalogue, cloze.row
        kind = catalogue.type_of(own)
        if kind not in self._siblings:
            rows = catalogue.rows(collection=self._material.collection, prefix="", entity_type=kind)
            self._siblings[kind] = rows.tolist()
        rows = [row for row in self._siblings[kind] if row != own]
        labels = catalogue.labels.take(np.array(rows, dtype=np.int64)).to_pylist()
        shape, words = _shape(cloze.answer, kind), len(cloze.answer.split())
        frequent, kinds = np.log1p(catalogue.mentions), self.kinds

        def unlike(at: int) -> tuple[float, str]:
            row, label = rows[at], labels[at]
            far = abs(frequent[row] - frequent[own]) + 0.5 * abs(len(label.split()) - words)
            far -= 2 * len(kinds[row] & kinds[own])
            return far, digest(cloze.sentence.text, label)

        alike = [at for at, label in enumerate(labels) if _shape(label, kind) == shape]
        return (rows[at] for at in sorted(alike, key=unlike)[:TRIED])

    @cached_property
    def kinds(self) -> dict[int, frozenset[int]]:
        """What each entity of the collection is, by the stems of what statements say it is."""
        found: dict[int, set[int]] = defaultdict(set)
        for statement in self._material.snapshot.graph.statements_of(self._material.collection, [DEFINING]):
            ends = {part.name: part for part in statement.roles}
            if {"subject", "object"} <= ends.keys():
                row = self._catalogue.row_of(ends["subject"].entity)
                if row is not None:
                    found[row].update(query_terms(ends["object"].surface))
        return defaultdict(frozenset, {row: frozenset(terms) for row, terms in found.items()})

    def _other_names(self, cloze: Cloze) -> set[int]:
        """The rows of the other entities that the sentence names."""
        text = cloze.with_blank(" ")
        rows = {
            self._catalogue.row_of(each.entity)
            for each in cloze.sentence.mentions
            if each.type not in LITERAL_TYPES and is_name(each.surface, each.type) and each.surface in text
        }
        return {row for row in rows if row is not None} - {cloze.row}

    def _is_wrong(self, row: int, label: str, cloze: Cloze, others: set[int]) -> bool:
        """Whether nothing suggests that it would be right too: it is not another name of the answer, not in the
        sentence, and neither stated of, nor mentioned in a chunk with, what the sentence names."""
        catalogue, terms = self._catalogue, set(query_terms(label))
        answer, left = set(query_terms(cloze.answer)), set(query_terms(cloze.with_blank(" ")))
        if not terms or terms <= answer or answer <= terms or terms & left:
            return False
        if initials_of(label) == cloze.answer.upper() or initials_of(cloze.answer) == label.upper():
            return False
        if left <= self.kinds[row] | {0} or row in others:
            return False
        near = {end.row for fact in self._facts_of(row) for end in fact.ends} | {
            found for chunk in self._chunks_of(row) for found in chunk
        }
        return not near & (others | {cloze.row})

    def _facts_of(self, row: int):
        return self._material.describer.facts.of_entities(np.array(self._catalogue.members[row], dtype=np.uint64))

    def _chunks_of(self, row: int):
        graph = self._material.snapshot.graph
        keys = np.array(self._catalogue.members[row], dtype=np.uint64)
        chunks = np.unique([each.chunk for each in typed_mentions_of(graph.segments, keys)])
        co = self._material.describer.co_mentioned(row, chunks)
        yield list(co)


def asked(cloze: Cloze) -> str:
    """Of a sentence that begins with what is missing and a copula `Which of these is …?`; else with a blank."""
    text = cloze.sentence.text
    if _ASKS.match(text[: cloze.start]) and cloze.start < 5 and _COPULA.match(text[cloze.end :]):
        return f"Which of these{text[cloze.end :].rstrip('.!')}?"
    return _ARTICLE.sub(r"\1(n) ", text[: cloze.start]) + BLANK + text[cloze.end :]


def _shape(label: str, kind: str) -> tuple[object, ...]:
    """What options have in common: written as a name or not, one or several, digits and letters in the same order."""
    if kind in LITERAL_TYPES:
        return (_LETTERS.sub("a", _DIGIT.sub("0", label)),)
    last = label.split()[-1] if label.split() else ""
    is_several = last.endswith("s") and not last.endswith(("ss", "us", "is"))
    return is_name(label, kind), is_several, any(map(str.isdigit, label)), label.isupper()
