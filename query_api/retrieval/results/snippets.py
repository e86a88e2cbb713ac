"""What a hit shows of its passage: whole sentences around the chunk that matched, with the question's words and the
sentence that answers marked in them.

A chunk begins with words of the one before it, and a sentence that is longer than a chunk is cut: neither is shown.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from indexer.chunking.sentences import sentence_spans
from indexer.text_analysis import words_with_terms
from schemas.hits import TextSpan


class Snippet(NamedTuple):
    """`passage[start:end]` is shown; the marks count characters from `start`."""

    start: int
    end: int
    highlights: list[TextSpan]
    answer: TextSpan | None

    @property
    def matched_at(self) -> int:
        """Where in the passage the match stands: the answer, else what is shown."""
        return self.start + (self.answer.start if self.answer else 0)


def snippet_of(passage: str, start: int, end: int, idf: Mapping[int, float]) -> Snippet:
    """The snippet of the chunk `passage[start:end]`; `idf` is {term of the question: its weight}.

    The answer is the sentence whose distinct terms weigh most, the first of equal ones; None where no sentence holds a
    term that weighs anything. A sentence that begins before the chunk, and is less than half of it, is left out unless
    it answers.
    """
    sentences = _sentences(passage, start, end) or [(start, end)]
    words = list(words_with_terms(passage, sentences[0][0], sentences[-1][1], idf))
    weights = []
    for begin, finish in sentences:
        held = {term for first, _, terms in words if begin <= first < finish for term in terms}
        weights.append(math.fsum(idf.get(term, 0.0) for term in held))
    best = max(range(len(sentences)), key=lambda at: weights[at])
    answer = sentences[best] if weights[best] > 0 else None
    carried_over = sentences[0][0] < start and sentences[0][1] - start < (end - start) / 2
    begin = sentences[1][0] if carried_over and sentences[0] != answer and len(sentences) > 1 else sentences[0][0]
    return Snippet(
        begin,
        sentences[-1][1],
        [TextSpan(start=first - begin, end=last - begin) for first, last, _ in words if first >= begin],
        answer and TextSpan(start=answer[0] - begin, end=answer[1] - begin),
    )


def _sentences(passage: str, start: int, end: int) -> list[tuple[int, int]]:
    """The sentences, whole, of which the chunk holds something. Lines are looked at whole: no sentence crosses one."""
    line_end = passage.find("\n", end)
    found = sentence_spans(passage, passage.rfind("\n", 0, start) + 1, len(passage) if line_end < 0 else line_end)
    return [(first, last) for first, last in found if last > start and first < end]
