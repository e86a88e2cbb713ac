"""Statements at random, to be judged by people."""

from collections.abc import Iterator
from itertools import chain

import numpy as np

from query_api.index.graph.edges import Statement
from query_api.index.graph.view import GraphView
from schemas.ids import CANARY_COLLECTION

BLOCK = 200  # documents read at a time
MOST_DRAWN_FROM = 20_000  # statements; of a larger graph, those of documents at random


def sample_statements(
    view: GraphView, collection: str | None, predicate: str | None, size: int, seed: int
) -> list[Statement]:
    """So many statements of live documents at random, of a collection and with a predicate, or of all for None; the
    same for the same seed and graph. Up to MOST_DRAWN_FROM, each is as likely."""
    random = np.random.default_rng(seed)
    drawn_from: list[Statement] = []
    for statements in _by_documents(view, collection, random):
        drawn_from += [each for each in statements if predicate is None or each.predicate == predicate]
        if len(drawn_from) >= MOST_DRAWN_FROM:
            break
    drawn_from.sort(key=lambda each: each.key)
    return [drawn_from[at] for at in random.permutation(len(drawn_from))[:size].tolist()]


def _by_documents(view: GraphView, collection: str | None, random: np.random.Generator) -> Iterator[list[Statement]]:
    documents = random.permutation(view.live_documents())
    for start in range(0, len(documents), BLOCK):
        of_block = [
            document
            for document in documents[start : start + BLOCK].tolist()
            if _is_in(view.document_key(document).collection, collection)
        ]
        passages = chain.from_iterable(map(view.passages_of_document, of_block))
        yield view.statements_in(np.fromiter(passages, dtype=np.int64))


def _is_in(collection: str, wanted: str | None) -> bool:
    return collection == wanted if wanted is not None else collection != CANARY_COLLECTION
