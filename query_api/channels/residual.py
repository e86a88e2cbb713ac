"""The residual hop: what the question still asks once a parent is read, put to the keyword index.

It reaches passages about something between question and answer that no title names.
"""

from collections.abc import Sequence

from query_api.channels.parents import best_scores
from query_api.channels.question import Question
from query_api.channels.terms import Parent, Reach, Reason
from query_api.graph.identifiers import MISSING
from query_api.graph.view import GraphView
from query_api.ranking import relative_to_best
from query_api.reading.snapshot import Candidate

BEST_SENTENCES = 2
MAX_NAMES = 12
SHARPEN_ABOVE = 25


def residual_query(question: Question, parent: Parent) -> str:
    """What the question asks that the parent does not hold, and the names in the parent's two best sentences that the
    question does not hold; empty without such a name."""
    held = question.stems_in(" ".join(sentence.text for sentence in parent.sentences))
    open_words = [question.word_of_stem[stem] for stem in question.stems if stem not in held]
    names = dict.fromkeys(
        name
        for sentence in parent.best_sentences(BEST_SENTENCES)
        for name in sentence.names
        if not question.names(name)
    )
    return " ".join([*open_words, *list(names)[:MAX_NAMES]]) if names else ""


def residual_reaches(
    view: GraphView, parents: Sequence[Parent], hops: Sequence[Sequence[Candidate]]
) -> tuple[list[Reach], list[Reach]]:
    """What the hops found, as (plain, sharpened): w x score relative to the hop's best, and the same for its head."""
    plain: list[Reach] = []
    sharp: list[Reach] = []
    for at, (parent, found) in enumerate(zip(parents, hops, strict=True)):
        scores = relative_to_best(best_scores(found))
        heads = sharpened(list(scores.values()))
        for number, score, head in zip(view.passages(list(scores)).tolist(), scores.values(), heads, strict=True):
            if number not in (MISSING, parent.passage):
                plain.append(Reach(number, parent.weight * score, Reason("continues", at)))
                sharp.append(Reach(number, parent.weight * head, Reason("continues", at)))
    return plain, sharp


def sharpened(scores: Sequence[float]) -> list[float]:
    """Falling scores with a best of 1, stretched so that the 25th becomes 0: (s - s25) / (1 - s25), at least 0."""
    if len(scores) < SHARPEN_ABOVE:
        return list(scores)
    floor = scores[SHARPEN_ABOVE - 1]
    return [max(0.0, score - floor) / (1 - floor) if floor < 1 else 0.0 for score in scores]
