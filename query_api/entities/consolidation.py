"""Consolidation: entities that documents treat together, though no chunk mentions both.

A view of the mentions that are there now, so that a deleted document leaves nothing of it behind.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from query_api.entities.catalogue import EntityCatalogue
from query_api.index.graph.typed_mentions import typed_mentions_in_passages
from query_api.index.graph.view import GraphView
from schemas.graph_delta import LITERAL_TYPES

MAX_DOCUMENTS = 50
MOST_OF_A_DOCUMENT = 50


class Consolidated(NamedTuple):
    """An entity, by its row in the catalogue, and the documents that treat it too."""

    row: int
    documents: tuple[int, ...]


def consolidated(
    view: GraphView, catalogue: EntityCatalogue, documents: Sequence[int], apart_from: Collection[int]
) -> list[Consolidated]:
    """The entities that the first of these documents mention, of each document those that it mentions most; without
    literals, such as dates, and the rows in `apart_from`. By the number of documents, those of frequent entities
    counting less (the square root of their mentions)."""
    passages = chain.from_iterable(map(view.passages_of_document, documents[:MAX_DOCUMENTS]))
    times: dict[int, Counter[int]] = defaultdict(Counter)
    for mention in typed_mentions_in_passages(view.segments, np.fromiter(passages, dtype=np.int64)):
        row = catalogue.row_of(mention.entity)
        if row is not None and row not in apart_from and mention.type not in LITERAL_TYPES:
            times[mention.document][row] += mention.times
    treated: dict[int, list[int]] = defaultdict(list)
    for document in sorted(times):
        ranked = sorted(times[document].items(), key=lambda each: (-each[1], each[0]))
        for row, _ in ranked[:MOST_OF_A_DOCUMENT]:
            treated[row].append(document)

    def weight(row: int) -> tuple[float, int]:
        return -len(treated[row]) / float(np.sqrt(catalogue.mentions[row])), row

    return [Consolidated(row, tuple(treated[row])) for row in sorted(treated, key=weight)]
