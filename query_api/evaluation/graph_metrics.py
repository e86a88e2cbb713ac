"""The measures of an extracted graph: mentions, entities, relations. Arithmetic alone.

- Mentions: precision, recall and F1 over all documents together (micro), by exact span, with and without the type
  (Tjong Kim Sang and De Meulder 2003, "Introduction to the CoNLL-2003 Shared Task", section 4).
- Entities: B-cubed over mentions (Bagga and Baldwin 1998, "Algorithms for Scoring Coreference Chains", section 4).
- Relations: the share of labelled pairs that the graph joins; of typed ones precision, recall and F1.
- Communities: normalised mutual information with categories (Danon et al. 2005, "Comparing Community Structure
  Identification", section 3).
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]
"""Two labelled entities of a document by their numbers, the lower one first."""


class Agreement(NamedTuple):
    """How many were found, are labelled, and are both."""

    right: int = 0
    found: int = 0
    labelled: int = 0

    @classmethod
    def of(cls, found: Collection[Hashable], labelled: Collection[Hashable]) -> "Agreement":
        """Each counts once, however often it is named."""
        kept, wanted = set(found), set(labelled)
        return cls(len(kept & wanted), len(kept), len(wanted))

    def plus(self, other: "Agreement") -> "Agreement":
        return Agreement(self.right + other.right, self.found + other.found, self.labelled + other.labelled)

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.labelled if self.labelled else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.found + self.labelled) if self.found + self.labelled else 0.0

    def figures(self) -> dict[str, float | int]:
        return {
            "precision": round(self.precision, 6),
            "recall": round(self.recall, 6),
            "f1": round(self.f1, 6),
            "right": self.right,
            "found": self.found,
            "labelled": self.labelled,
        }


NOTHING = Agreement()


def agreement_by(
    found: Iterable[tuple[Hashable, str]], labelled: Iterable[tuple[Hashable, str]]
) -> dict[str, Agreement]:
    """{type: agreement} of (span, type), by type."""
    found, labelled = set(found), set(labelled)
    kinds = sorted({kind for _, kind in found | labelled})
    return {
        kind: Agreement.of([each for each in found if each[1] == kind], [each for each in labelled if each[1] == kind])
        for kind in kinds
    }


@dataclass
class BCubed:
    """Sums over mentions; `precision` and `recall` are means over them, 0 where there is none."""

    mentions: int = 0
    precision_sum: float = 0.0
    recall_sum: float = 0.0

    def add(self, found: Sequence[Hashable], labelled: Sequence[Hashable]) -> None:
        """One document: for each mention the entity that it was given, and the one it is labelled with.

        A mention's precision is the share of its found entity's mentions that have its label, its recall the share of
        its labelled entity's mentions that were given its entity.
        """
        together = Counter(zip(found, labelled, strict=True))
        given, wanted = Counter(found), Counter(labelled)
        for (entity, label), count in together.items():
            self.mentions += count
            self.precision_sum += count * count / given[entity]
            self.recall_sum += count * count / wanted[label]

    @property
    def precision(self) -> float:
        return self.precision_sum / self.mentions if self.mentions else 0.0

    @property
    def recall(self) -> float:
        return self.recall_sum / self.mentions if self.mentions else 0.0

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def figures(self) -> dict[str, float | int]:
        return {
            "precision": round(self.precision, 6),
            "recall": round(self.recall, 6),
            "f1": round(self.f1, 6),
            "mentions": self.mentions,
        }


@dataclass(frozen=True)
class DocumentGraph:
    """What a document's graph says of its labelled entities, by their numbers.

    `chunks` are those in which the graph has a mention of it; `joined` are pairs with a statement; `about` are the
    entities that the whole document is about.
    """

    chunks: Mapping[int, Collection[int]]
    joined: Collection[Pair] = field(default_factory=frozenset)
    about: Collection[int] = field(default_factory=frozenset)

    def joins(self, pair: Pair) -> bool:
        """Whether there is a statement between the two, or an edge: named in one chunk, or one of them is what the
        document is about and the other is mentioned."""
        first, second = pair
        if pair in self.joined:
            return True
        if not set(self.chunks.get(first, ())).isdisjoint(self.chunks.get(second, ())):
            return True
        return any(
            one in self.about and (other in self.about or bool(self.chunks.get(other)))
            for one, other in (pair, (second, first))
        )


def recalled_pairs(graph: DocumentGraph, labelled: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """(pairs that the graph joins, labelled pairs); direction and kind of the relation do not count."""
    pairs = {(min(pair), max(pair)) for pair in labelled if pair[0] != pair[1]}
    return sum(graph.joins(pair) for pair in pairs), len(pairs)


def mutual_information(one: NDArray[Any], other: NDArray[Any]) -> float:
    """From 0 to 1, of two labellings of the same things, (n,) each: normalised by the mean of both entropies; 1 where
    both have one label for all, 0 for no things."""
    if not len(one):
        return 0.0
    one, other = (np.unique(labels, return_inverse=True)[1] for labels in (one, other))
    shared = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(shared, (one, other), 1 / len(one))
    of_one, of_other = shared.sum(axis=1), shared.sum(axis=0)
    there = shared > 0
    information = float((shared[there] * np.log(shared[there] / np.outer(of_one, of_other)[there])).sum())
    entropies = -float((of_one * np.log(of_one)).sum()) - float((of_other * np.log(of_other)).sum())
    return 2 * information / entropies if entropies else 1.0
