"""What a person may ask about next: entities of an answer's cited passages, and what statements join these with.

The score of an entity is how often the cited passages mention it and state something of it, a neighbour's that of one
mention; divided by the logarithm of how many passages mention it at all, so that what is everywhere comes last; and
double where a document is called so. What is no document's title is left out unless its mentions say what it is.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.typed_mentions import typed_mentions_in_passages
from query_api.index.graph.view import GraphView
from schemas.answers import MOST_CONCEPTS, Citation, RelatedConcept
from schemas.graph_delta import LITERAL_TYPES
from schemas.ids import entity_id, normalise_name

VAGUE = LITERAL_TYPES | {"identifier", "thing"}
MOST_EXPANDED = 8  # entities of the passages, each the title of a document, whose neighbours are looked for
MOST_MENTIONS = 200  # of one whose neighbours are: more is a hub, which is joined with everything


def related_concepts(view: GraphView, question: str, citations: Sequence[Citation]) -> list[RelatedConcept]:
    """Best first, MOST_CONCEPTS at most, without dates and what the question names. A pure function."""
    passages = view.passages(list(dict.fromkeys(each.passage_id for each in citations)))
    passages = passages[passages != MISSING]
    found: Counter[int] = Counter()
    types: dict[int, str] = {}
    surfaces: dict[int, str] = {}
    for mention in typed_mentions_in_passages(view.segments, passages):
        found[mention.entity] += mention.times
        types.setdefault(mention.entity, mention.type)
        surfaces.setdefault(mention.entity, mention.surface)
    stated = [role for statement in view.statements_in(passages) for role in statement.roles]
    found.update(role.entity for role in stated)
    known = set(found)
    titled = _titled(view, known)
    central = np.array([each for each, _ in found.most_common() if each in titled], dtype=np.uint64)
    central = central[view.passage_frequencies(central) <= MOST_MENTIONS][:MOST_EXPANDED]
    beside = [role for statement in view.statements_with(central) for role in statement.roles]
    stated += [role for role in beside if role.entity not in found]
    found.update({role.entity: 1 for role in beside if role.entity not in found})
    titled |= _titled(view, found.keys() - known)
    names = view.entity_names([each for each in found if each in titled or types.get(each, "thing") not in VAGUE])
    labels = view.labels(
        {key: name for key, (_, name) in names.items()} | {r.entity: r.surface for r in stated} | surfaces
    )
    asked = set(normalise_name(question).split())
    often = view.passage_frequencies(np.array(list(names), dtype=np.uint64)).tolist()
    weights = {key: found[key] * (1 + (key in titled)) for key in names}
    scores = {key: weights[key] / math.log2(2 + count) for key, count in zip(names, often, strict=True)}
    concepts: dict[str, RelatedConcept] = {}
    for key in sorted(scores, key=lambda key: (-scores[key], names[key])):
        if len(concepts) == MOST_CONCEPTS:
            break
        collection, name = names[key]
        if not asked.issuperset(name.split()):
            shown = RelatedConcept(id=entity_id(collection, name), name=labels[key], type=types.get(key))
            concepts.setdefault(normalise_name(shown.name), shown)
    return list(concepts.values())


def _titled(view: GraphView, entities: Iterable[int]) -> set[int]:
    """Those that a document is called."""
    return set(view.about(np.array(list(entities), dtype=np.uint64)).entity.tolist())
