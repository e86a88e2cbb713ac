"""A question that was made, with what answers it and why."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from query_api.evaluation.synthetic.reading import IndexedDocument
from query_api.evaluation.synthetic.vocabulary import Vocabulary


class Step(msgspec.Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """An edge of a gold path, from document id to document id; `evidence` is the sentence or the field it rests on."""

    source: str
    edge: str
    target: str
    evidence: str


class Made(msgspec.Struct, frozen=True):
    """`gold` is {document id: grade}; `path` is what a reader has to follow, empty where one document is enough."""

    kind: str
    text: str
    gold: Mapping[str, int]
    path: tuple[Step, ...] = ()


class Material(msgspec.Struct, frozen=True):
    """What questions are made of: the documents, by id, and the words they have."""

    documents: Sequence[IndexedDocument]
    vocabulary: Vocabulary
    by_id: Mapping[str, IndexedDocument]


Maker = Callable[[Material, random.Random], Iterator[Made]]
"""Makes questions of its kind, in an order that chance decides, until there are no more."""
