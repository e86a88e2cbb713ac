"""What a person may ask about next: entities of an answer's cited passages, and what statements join these with.

The score of an entity is how often the cited passages mention it and state something of it, a neighbour's that of one
mention; divided by the logarithm of how many passages mention it at all, so that what is everywhere comes last.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from query_api.index.graph.identifiers import MISSING, Keys
from query_api.index.graph.typed_mentions import typed_mentions_in_passages
from query_api.index.graph.view import GraphView
from schemas.answers import MOST_CONCEPTS, Citation, RelatedConcept
from schemas.graph_delta import LITERAL_TYPES
from schemas.ids import entity_id, normalise_name

MOST_EXPANDED = 8  # entities of the passages whose neighbours are looked for
MOST_MENTIONS = 200  # of one whose neighbours are: more is a hub, which is joined with everything


def related_concepts(view: GraphView, question: str, citations: Sequence[Citation]) -> list[RelatedConcept]:
    """Best first, MOST_CONCEPTS at most, without dates and what the question names. A pure function."""
    passages = view.passages(list(dict.fromkeys(each.passage_id for each in citations)))
    passages = passages[passages != MISSING]
    found: Counter[int] = Counter()
    types: dict[int, str] = {}
    surfaces: dict[int, str] = {}
    literal: set[int] = set()
    for mention in typed_mentions_in_passages(view.segments, passages):
        if mention.type in LITERAL_TYPES:
            literal.add(mention.entity)
        found[mention.entity] += mention.times
        types.setdefault(mention.entity, mention.type)
        surfaces.setdefault(mention.entity, mention.surface)
    stated = [role for statement in view.statements_in(passages) for role in statement.roles]
    found.update(role.entity for role in stated)
    for statement in view.statements_with(_expanded(view, found)):
        for role in statement.roles:
            found.setdefault(role.entity, 1)
            stated.append(role)
    names = view.entity_names([entity for entity in found if entity not in literal])
    labels = view.labels(
        {key: name for key, (_, name) in names.items()} | {r.entity: r.surface for r in stated} | surfaces
    )
    asked = set(normalise_name(question).split())
    often = view.passage_frequencies(np.array(list(names), dtype=np.uint64)).tolist()
    scores = {key: found[key] / np.log2(2 + count) for key, count in zip(names, often, strict=True)}
    concepts: dict[str, RelatedConcept] = {}
    for key in sorted(scores, key=lambda key: (-scores[key], names[key])):
        collection, name = names[key]
        if not asked.issuperset(name.split()):
            shown = RelatedConcept(id=entity_id(collection, name), name=labels[key], type=types.get(key))
            concepts.setdefault(normalise_name(shown.name), shown)
    return list(concepts.values())[:MOST_CONCEPTS]


def _expanded(view: GraphView, found: Counter[int]) -> Keys:
    entities = np.array([entity for entity, _ in found.most_common(MOST_EXPANDED)], dtype=np.uint64)
    return entities[view.passage_frequencies(entities) <= MOST_MENTIONS]
