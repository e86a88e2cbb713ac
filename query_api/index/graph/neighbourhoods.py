"""What lies next to entities: their names, who is about them and who mentions them, each entity looked up once."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from query_api.index.graph.columns import Keys
from query_api.index.graph.parts import Part, Parts
from query_api.index.graph.rows import About, Mentions, Numbers, Places, joined, rows_of

Located = Iterable[tuple[Part, Numbers, Numbers]]  # as `Parts.knowing` gives it


class Near(NamedTuple):
    """An entity's normalised name; in how many passages it is mentioned; the documents that are about it, each with
    its alias weight; and the (chunk, passage) of each mention, where these were asked for."""

    name: str
    frequency: int
    about: Sequence[tuple[int, float]]
    mentions: Sequence[tuple[int, int]] = ()


def near(parts: Parts, entities: Sequence[int], fewest: int, most: int) -> dict[int, Near]:
    """Of each entity that a live document names; mentions of those that `fewest` to `most` passages mention."""
    keys = np.array(entities, dtype=np.uint64)
    located = list(parts.knowing(keys))
    found = names(located)
    abouts: list[list[tuple[int, float]]] = [[] for _ in entities]
    of_about = about(located, keys)
    for at, document, weight in rows_of(of_about.asked, of_about.document, of_about.weight):
        abouts[at].append((document, weight))
    counts = frequencies(located, len(keys))
    few = (counts >= fewest) & (counts <= most)
    of_each: list[list[tuple[int, int]]] = [[] for _ in entities]
    shared = places([(part, rows[few[rows]], local[few[rows]]) for part, rows, local in located], keys)
    for at, chunk, passage in rows_of(shared.asked, shared.chunk, shared.passage):
        of_each[at].append((chunk, passage))
    return {
        entity: Near(found[entity][1], count, of_entity, mentions_of_it)
        for entity, count, of_entity, mentions_of_it in zip(entities, counts.tolist(), abouts, of_each, strict=True)
        if entity in found
    }


def named(located: Located) -> set[int]:
    """The keys of those entities that a live document names."""
    return {
        key
        for part, _, local in located
        for at, key in rows_of(local, part.segment.entity_keys[local])
        if not part.n_dead or part.names(at)
    }


def names(located: Located) -> dict[int, tuple[str, str]]:
    """{key: (collection, normalised name)} of those entities that a live document names."""
    found: dict[int, tuple[str, str]] = {}
    for part, _, local in located:
        called = zip(part.segment.entity_keys[local].tolist(), part.segment.called(local), strict=True)
        for at, (key, name) in zip(local.tolist(), called, strict=True):
            if key not in found and (not part.n_dead or part.names(at)):
                found[key] = name
    return found


def frequencies(located: Located, n_entities: int) -> Numbers:
    """(n_entities,) in how many live passages each is mentioned."""
    counts = np.zeros(n_entities, dtype=np.int64)
    for part, rows, local in located:
        counts[rows] += part.segment.passage_frequencies[local]
        if part.n_dead:
            which, _, passages = part.naming(local)
            gone = ~part.alive(passages)
            lost = np.unique(np.stack((rows[which[gone]], passages[gone])), axis=1)
            np.subtract.at(counts, lost[0], 1)
    return counts


def about(located: Located, entities: Keys) -> About:
    """The documents that are about these entities."""
    found: list[About] = []
    for part, rows, local in located:
        which, edges, documents = part.segment.about.entering(local)
        keep = ~part.dead[documents] if part.n_dead else slice(None)
        found.append(
            About(
                rows[which][keep],
                (documents + part.documents)[keep],
                entities[rows[which]][keep],
                part.segment.about_weights[edges[keep]],
            )
        )
    return About(*joined(found, About._fields))


def mentions(located: Located, entities: Keys) -> Mentions:
    """Where these entities are mentioned."""
    found = [
        Mentions(*places, part.segment.times(edges), part.segment.first_sentences(edges))
        for part, edges, places in _mentioning(located, entities)
    ]
    return Mentions(*joined(found, Mentions._fields))


def places(located: Located, entities: Keys) -> Places:
    """Where these entities are mentioned, without what stands beside the mentions."""
    return Places(*joined([places for *_, places in _mentioning(located, entities)], Places._fields))


def _mentioning(located: Located, entities: Keys) -> Iterator[tuple[Part, Numbers, Places]]:
    """By part: the edges to these entities from live chunks, by their numbers in its segment, and where they are."""
    for part, rows, local in located:
        which, edges, chunks = part.segment.mentions.leaving(local)
        passages = part.segment.passages_of(chunks)
        keep = part.alive(passages) if part.n_dead else slice(None)
        asked = rows[which[keep]]
        yield (
            part,
            edges[keep],
            Places(asked, chunks[keep] + part.chunks, passages[keep] + part.passages, entities[asked]),
        )
