"""The channels that read the text stores: nearest chunks, passages by BM25, and documents by what a question says of
their fields.

Equal scores stand in the order of their ids, so the same snapshot gives the same list. The structured channel:

1. Recognise what the question asks of documents' own fields.
2. Add up, for each document, the weights of what it has.
3. Take the best documents, each by its passage that fits the question's words best.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.index.snapshot import Candidate
from query_api.index.text.phrases import Fit
from query_api.index.text.segments import Scope
from query_api.index.text.snapshot import TextSnapshot
from query_api.query.field_constraints import Constraint, Recognised, recognise
from schemas.ids import DocumentKey


def vector_channel(text: TextSnapshot, vector: NDArray[np.float32], limit: int, scope: Scope) -> list[Candidate]:
    """The `limit` nearest chunks, all of them, best first; `vector` is (dim,) float32, L2-normalised."""
    found = text.vector_search(vector, limit, scope)
    return [Candidate(chunk.passage_id, chunk.score, chunk.key, chunk.chunk_id) for chunk in found]


def keyword_channel(text: TextSnapshot, query: str, limit: int, scope: Scope) -> list[Candidate]:
    """The `limit` passages with the highest BM25, best first."""
    found = text.keyword_search(query, limit, scope)
    return [Candidate(passage.passage_id, passage.score, passage.key) for passage in found]


LEAST_SHARE = 0.5  # of what was asked, that a candidate has
MOST_ALIKE = 2_000  # documents with one score; what more of them share decides nothing
PASSAGES_A_DOCUMENT = 4
LOOKED_AT = 256  # passages, to see whether words are used elsewhere
SILENT_BELOW, SURE_FROM = 0.5, 0.8  # shares of the question's words that are covered
NAMED_BY_ID = 0.1
SHARE_OF_FIT = np.array([1.0, 1.0, 0.5, 0.5])  # by Fit: what leaves the choice open, or is nearly it, has half of it


class Structured(NamedTuple):
    """What the channel found, best first; how far it may decide beside other channels, in [0, 1]; what each passage's
    document has of what was asked, as `field=words of the question`."""

    candidates: Sequence[Candidate]
    conclusiveness: float
    matches: dict[str, tuple[str, ...]]


NOTHING_ASKED = Structured((), 0.0, {})


def recognised_fields(text: TextSnapshot, question: str, scope: Scope) -> Recognised:
    """What a question asks of the fields of the scope's documents. Blocks: for a thread."""

    def is_common(said: str, rows: NDArray[np.int64]) -> bool:
        return _is_common(text, said, rows, scope)

    return recognise(question, text.fields, text.fields.live(scope), is_common)


def _is_common(text: TextSnapshot, said: str, rows: NDArray[np.int64], scope: Scope) -> bool:
    """Whether more other documents hold all these words in one passage than these are."""
    own = set(text.fields.keys(rows))
    found = text.keyword_search(said, LOOKED_AT + PASSAGES_A_DOCUMENT * len(own), scope)
    held = text.compare_words(said, [passage.passage_id for passage in found], scope.collection).held
    using = {passage.key for passage, of_passage in zip(found, held, strict=True) if of_passage.all()}
    return len(using - own) > len(own)


def structured_channel(
    text: TextSnapshot, question: str, limit: int, scope: Scope, known: Recognised | None = None
) -> Structured:
    """At most `limit` documents. Silent for a question that names nothing. `known` is what `recognised_fields` gave for
    the same question. Blocks: for a thread."""
    documents = text.fields
    recognised = recognised_fields(text, question, scope) if known is None else known  # 1
    if not recognised.constraints:
        return NOTHING_ASKED
    rows, scores = _best(*_scores(recognised.constraints), limit)  # 2
    if not len(rows):
        return NOTHING_ASKED
    keys = documents.keys(rows)
    score_of = dict(zip(keys, scores.tolist(), strict=True))
    members = dict(zip(keys, _members(recognised.constraints, rows).tolist(), strict=True))
    fitting: dict[DocumentKey, tuple[str, float]] = {}  # 3
    for passage in text.keyword_search(question, PASSAGES_A_DOCUMENT * max(limit, len(keys)), scope.within(keys)):
        fitting.setdefault(passage.key, (passage.passage_id, passage.score))
    leads = text.leads([key for key in keys if key not in fitting])
    placed = {
        key: fitting[key] if key in fitting else (leads[key], 0.0) for key in keys if key in fitting or key in leads
    }
    ordered = sorted(placed, key=lambda key: (-score_of[key], members[key], -placed[key][1], key))[:limit]
    row_of = dict(zip(keys, rows.tolist(), strict=True))
    matches = {
        placed[key][0]: tuple(c.label for c in recognised.constraints if _has(c.rows, row_of[key])) for key in ordered
    }
    candidates = [Candidate(placed[key][0], round(score_of[key], 6), key) for key in ordered]
    return Structured(candidates, conclusiveness(recognised), matches)


def conclusiveness(recognised: Recognised) -> float:
    """How far what was recognised is all that was asked: 0 up to half of the telling words, 1 from .8 on.

    A question that names a document by its id is about that document at least a little.
    """
    share = (recognised.covered - SILENT_BELOW) / (SURE_FROM - SILENT_BELOW)
    by_id = any("document" in constraint.fields for constraint in recognised.constraints)
    return round(min(1.0, max(share, NAMED_BY_ID if by_id else 0.0)), 6)


def _scores(constraints: Sequence[Constraint]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows that have anything of what is asked, ascending, and (n_rows,) Σ weight of what each has / Σ weight of
    what is asked, of which a value that leaves it open has half. Being one of the documents named, by id or title, is
    one thing, however many are named."""
    total = sum(constraint.weight for constraint in constraints if not constraint.identity)
    rows = np.unique(np.concatenate([constraint.rows for constraint in constraints]))
    scores = np.zeros(len(rows), dtype=np.float64)
    named = np.zeros(len(rows), dtype=np.float64)
    for constraint in constraints:
        places = rows.searchsorted(constraint.rows)
        if constraint.identity:
            named[places] = np.maximum(named[places], constraint.weight * SHARE_OF_FIT[constraint.fits])
        else:
            scores[places] += constraint.weight * SHARE_OF_FIT[constraint.fits]
    identity = max((constraint.weight for constraint in constraints if constraint.identity), default=0.0)
    return rows, np.round((scores + named) / (total + identity), 9)


def _members(constraints: Sequence[Constraint], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n_rows,) how much of what each has is but one of a list; what equals the value asked for comes before it."""
    members = np.zeros(len(rows), dtype=np.int64)
    for constraint in constraints:
        members += np.isin(rows, constraint.rows[constraint.fits != Fit.WHOLE])
    return members


def _best(
    rows: NDArray[np.int64], scores: NDArray[np.float64], limit: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows with the highest scores, and these: whole groups of equal ones until there are `limit`."""
    chosen = np.zeros(0, dtype=np.int64)
    for score in sorted(set(scores[scores >= LEAST_SHARE].tolist()), reverse=True):
        places = np.flatnonzero(scores == score)
        if len(places) > MOST_ALIKE or len(chosen) >= limit:
            break
        chosen = np.concatenate([chosen, places])
    return rows[chosen], scores[chosen]


def _has(rows: NDArray[np.int64], row: int) -> bool:
    at = int(np.searchsorted(rows, row))
    return at < len(rows) and int(rows[at]) == row
