"""The entities that the chunk of a hit mentions, and what it states of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from query_api.index.graph.edges import Statement
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.typed_mentions import TypedMention, typed_mentions_in
from query_api.index.graph.view import GraphView
from query_api.query.evidence_sentences import sentence_of_fact
from schemas.entities import EntityRef
from schemas.hits import Hit, HitStatement
from schemas.ids import entity_id, normalise_name

MOST_OF_A_HIT = 10  # entities, and statements


def with_mentioned(view: GraphView, hits: Sequence[Hit], texts: Mapping[str, str]) -> list[Hit]:
    """The hits, each with the entities its chunk mentions, surest and most frequent first, and its statements, surest
    first; those of which the path goes by an end before all. Entities are named as documents write them. `texts` are
    those of the chunks, by id."""
    numbers = view.chunks([hit.chunk_id for hit in hits])
    known = np.flatnonzero(numbers != MISSING)
    mentions: dict[int, list[TypedMention]] = defaultdict(list)
    for mention in typed_mentions_in(view.segments, numbers[known]):
        mentions[mention.chunk].append(mention)
    statements: dict[int, list[Statement]] = defaultdict(list)
    for statement in view.statements_in(np.unique([view.passage_of_chunk(at) for at in numbers[known].tolist()])):
        statements[statement.chunk].append(statement)
    names = view.entity_names([mention.entity for of_chunk in mentions.values() for mention in of_chunk])
    found = []
    for hit, chunk in zip(hits, numbers.tolist(), strict=True):
        on_path = {normalise_name(end) for edge in hit.path for end in (edge.source, edge.target)}
        entities = _entities(mentions.get(chunk, []), names, on_path)
        stated = _statements(statements.get(chunk, []), texts.get(hit.chunk_id, ""), on_path)
        found.append(hit.model_copy(update={"entities": entities, "statements": stated}))
    return found


def _entities(
    mentions: Sequence[TypedMention], names: Mapping[int, tuple[str, str]], on_path: set[str]
) -> list[EntityRef]:
    def order(mention: TypedMention) -> tuple[bool, float, str]:
        return names[mention.entity][1] not in on_path, -mention.confidence * mention.times, mention.surface

    return [
        EntityRef(id=entity_id(*names[mention.entity]), label=mention.surface, type=mention.type)
        for mention in sorted(mentions, key=order)[:MOST_OF_A_HIT]
    ]


def _statements(statements: Sequence[Statement], text: str, on_path: set[str]) -> list[HitStatement]:
    found: list[tuple[bool, float, HitStatement]] = []
    for statement in statements:
        ends = {role.name: role.surface for role in statement.roles}
        subject, target = ends.get("subject", ""), ends.get("object", "")
        if subject and target:
            names = normalise_name(subject), normalise_name(target)
            sentence = sentence_of_fact(text, statement.predicate, *names, is_stated=statement.sentence >= 0)
            leads = not on_path.isdisjoint(names)
            fact = HitStatement(subject=subject, predicate=statement.predicate, object=target, sentence=sentence)
            found.append((not leads, -statement.confidence, fact))
    return [fact for *_, fact in sorted(found, key=lambda each: each[:2])[:MOST_OF_A_HIT]]
