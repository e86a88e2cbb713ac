"""What labelled questions say about answers: which sentences hold the answer, and which are needed for it.

The `metadata` of a question may have `answer` (and `answer_aliases`), `supporting_facts` ([title, number of the
sentence]), `decomposition` (an answer for each hop's document) and `evidence` ({document: its rationale sentences}), as
HotpotQA, 2WikiMultiHopQA, MuSiQue and SciFact have them. Numbers of sentences count from 0.
"""

import re
from collections.abc import Collection
from typing import Any, NamedTuple

from query_api.evaluation.datasets import Question

_PUNCTUATION = re.compile(r"[^\w\s]")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
YES_OR_NO = frozenset({"yes", "no"})


def plain(text: str) -> str:
    """Lower case, without punctuation, articles and double blanks, as SQuAD's script compares answers (Rajpurkar et al.
    2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text")."""
    return " ".join(_ARTICLES.sub(" ", _PUNCTUATION.sub("", text.lower())).split())


class AnswerLabels(NamedTuple):
    """The labels of one question: plain strings that answer it; the sentences that are known to be needed, by title and
    by document; the answers of hops by document; the documents that are relevant; the answer as it is written."""

    answers: tuple[str, ...]
    by_title: frozenset[tuple[str, int]]
    by_document: frozenset[tuple[str, int]]
    hops: dict[str, str]
    relevant: frozenset[str]
    expected: str = ""

    @classmethod
    def of(cls, question: Question, relevant: Collection[str]) -> "AnswerLabels":
        metadata: dict[str, Any] = question.metadata or {}
        given = [metadata.get("answer") or "", *metadata.get("answer_aliases", ())]
        answers = tuple(text for text in map(plain, given) if text and text not in YES_OR_NO)
        evidence = metadata.get("evidence") or {}
        return cls(
            answers,
            frozenset((title, place) for title, place in metadata.get("supporting_facts", ())),
            frozenset((document, place) for document, each in evidence.items() for place in each["sentences"]),
            {hop["doc"]: plain(hop["answer"]) for hop in metadata.get("decomposition", ())},
            frozenset(relevant),
            str(given[0]),
        )

    @property
    def needed(self) -> int:
        """How many sentences are known to be needed."""
        return len(self.by_title) or len(self.by_document) or len(self.hops)

    def answer_in(self, text: str) -> bool:
        """Whether a text holds an answer as whole words."""
        words = f" {plain(text)} "
        return any(f" {answer} " in words for answer in self.answers)

    def supports(self, document_id: str, title: str, place: int, text: str) -> bool:
        """Whether a sentence is needed for the answer."""
        hop = self.hops.get(document_id)
        if hop and f" {hop} " in f" {plain(text)} ":
            return True
        return (title, place) in self.by_title or (document_id, place) in self.by_document
