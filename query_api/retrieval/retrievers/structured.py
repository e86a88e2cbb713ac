"""The structured channel: documents by what a question asks of their fields.

1. Recognise the constraints that the question puts on documents' own fields.
2. Sum up, for each document, the weights of those that it meets.
3. Take the best documents, each by its passage that fits the question's words best.

Equal scores are ordered by id, so the same snapshot gives the same list. The vector and the keyword channel are
`TextSnapshot.vector_search` and `keyword_search`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.index.text.field_index import Fit
from query_api.index.text.text_segments import Candidate, Scope
from query_api.index.text.text_snapshot import TextSnapshot
from query_api.query.field_constraints import Constraint, Recognised, recognise
from schemas.ids import DocumentKey

MIN_SHARE = 0.5  # of the constraints' weight, that a candidate meets
MOST_TIED = 2_000  # documents with one score; what more of them share decides nothing
PASSAGES_A_DOCUMENT = 4
COMMON_PASSAGES = 256  # searched to see whether words are used elsewhere
SILENT_BELOW, SURE_FROM = 0.5, 0.8  # shares of the question's words that are covered
NAMED_BY_ID = 0.1
SHARE_OF_FIT = np.array([1.0, 1.0, 0.5, 0.5])  # by Fit: half for what leaves the choice open, or is nearly it


class Structured(NamedTuple):
    """What the channel found, best first; its weight beside other channels, in [0, 1]; the constraints that
    each passage's document meets, as `field=words of the question`."""

    candidates: Sequence[Candidate]
    conclusiveness: float
    matches: dict[str, tuple[str, ...]]


NO_CONSTRAINTS = Structured((), 0.0, {})


def recognised_fields(text: TextSnapshot, question: str, scope: Scope) -> Recognised:
    """What a question asks of the fields of the scope's documents. Blocks."""

    def is_common(words: str, rows: NDArray[np.int64]) -> bool:
        return _is_common(text, words, rows, scope)

    return recognise(question, text.fields, text.fields.live(scope), is_common)


def _is_common(text: TextSnapshot, words: str, rows: NDArray[np.int64], scope: Scope) -> bool:
    """Whether more other documents hold all these words in one passage than these are."""
    own = set(text.fields.keys(rows))
    found = text.keyword_search(words, COMMON_PASSAGES + PASSAGES_A_DOCUMENT * len(own), scope)
    matches = text.compare_words(words, [each.passage_id for each in found], scope.collection).term_matches
    holding = {each.key for each, of_passage in zip(found, matches, strict=True) if of_passage.all()}
    return len(holding - own) > len(own)


def structured_search(
    text: TextSnapshot, question: str, limit: int, scope: Scope, known: Recognised | None = None
) -> Structured:
    """At most `limit` documents; none for a question without constraints. `known` is what `recognised_fields` gave for
    the same question. Blocks."""
    documents = text.fields
    recognised = recognised_fields(text, question, scope) if known is None else known  # 1
    if not recognised.constraints:
        return NO_CONSTRAINTS
    rows, scores = _best(*_constraint_scores(recognised.constraints), limit)  # 2
    if not len(rows):
        return NO_CONSTRAINTS
    keys = documents.keys(rows)
    score_of = dict(zip(keys, scores.tolist(), strict=True))
    partial = dict(zip(keys, _partial_match_counts(recognised.constraints, rows).tolist(), strict=True))
    fitting: dict[DocumentKey, tuple[str, float]] = {}  # 3
    for passage in text.keyword_search(question, PASSAGES_A_DOCUMENT * max(limit, len(keys)), scope.within(keys)):
        fitting.setdefault(passage.key, (passage.passage_id, passage.score))
    leads = text.leads([key for key in keys if key not in fitting])
    passage_of = {key: (lead, 0.0) for key, lead in leads.items()} | fitting
    ordered = sorted(
        (key for key in keys if key in passage_of),
        key=lambda key: (-score_of[key], partial[key], -passage_of[key][1], key),
    )[:limit]
    row_of = dict(zip(keys, rows.tolist(), strict=True))
    matches = {
        passage_of[key][0]: tuple(c.label for c in recognised.constraints if _contains(c.rows, row_of[key]))
        for key in ordered
    }
    candidates = [Candidate(passage_of[key][0], round(score_of[key], 6), key) for key in ordered]
    return Structured(candidates, conclusiveness(recognised), matches)


def conclusiveness(recognised: Recognised) -> float:
    """How much of the question was recognised: 0 up to half of the content words, 1 from .8 on.

    A question that names a document by its id is about that document at least a little.
    """
    share = (recognised.covered - SILENT_BELOW) / (SURE_FROM - SILENT_BELOW)
    by_id = any("document" in constraint.fields for constraint in recognised.constraints)
    return round(min(1.0, max(share, NAMED_BY_ID if by_id else 0.0)), 6)


def _constraint_scores(constraints: Sequence[Constraint]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows that meet any constraint, ascending, and (n_rows,) Σ weight of those met / Σ weight of all; half for a
    value that leaves it open. Being one of the documents named, by id or title, is one constraint, however many are
    named."""
    total = sum(constraint.weight for constraint in constraints if not constraint.identity)
    rows = np.unique(np.concatenate([constraint.rows for constraint in constraints]))
    scores = np.zeros(len(rows), dtype=np.float64)
    named = np.zeros(len(rows), dtype=np.float64)
    for constraint in constraints:
        at = rows.searchsorted(constraint.rows)
        if constraint.identity:
            named[at] = np.maximum(named[at], constraint.weight * SHARE_OF_FIT[constraint.fits])
        else:
            scores[at] += constraint.weight * SHARE_OF_FIT[constraint.fits]
    identity = max((constraint.weight for constraint in constraints if constraint.identity), default=0.0)
    return rows, np.round((scores + named) / (total + identity), 9)


def _partial_match_counts(constraints: Sequence[Constraint], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n_rows,) how many constraints each meets by one value of a list only."""
    counts = np.zeros(len(rows), dtype=np.int64)
    for constraint in constraints:
        counts += np.isin(rows, constraint.rows[constraint.fits != Fit.WHOLE])
    return counts


def _best(
    rows: NDArray[np.int64], scores: NDArray[np.float64], limit: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows with the highest scores, and these: whole groups of equal ones until there are `limit`."""
    chosen = np.zeros(0, dtype=np.int64)
    for score in sorted(set(scores[scores >= MIN_SHARE].tolist()), reverse=True):
        tied = np.flatnonzero(scores == score)
        if len(tied) > MOST_TIED or len(chosen) >= limit:
            break
        chosen = np.concatenate([chosen, tied])
    return rows[chosen], scores[chosen]


def _contains(rows: NDArray[np.int64], row: int) -> bool:
    at = int(np.searchsorted(rows, row))
    return at < len(rows) and int(rows[at]) == row
