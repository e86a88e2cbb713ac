"""Edges of the graph that raise a passage, term by term: each is a small function of the view and the seeds.

Every term is in [0, 1] and gives its reason, so that a hit can show its path. A seed is a passage that the question
leads to directly, of weight w in (0, 1]; an entity's value v is .3 + .7 x the share of the question's weight in the
best sentence of the seed that names it.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.builder import CHUNK_EDGE_KINDS
from query_api.index.graph.edges import Neighbourhood, Statement, rows_of
from query_api.index.graph.hand_made_relations import End, has_relations
from query_api.index.graph.view import GraphView
from query_api.query.analysis import Question
from query_api.query.entity_linking import MAX_TARGETS, QueryLink, documents_about
from query_api.retrieval.retrievers.relation_walks import (
    EntryPassages,
    RelationStep,
    Relevance,
    chunks_of,
    entities_at,
    passages_at,
    walk_relations,
)
from schemas.choices import Edge
from schemas.errors import MalformedFilter
from schemas.search import SearchRequest

KINDS: frozenset[str] = frozenset(get_args(Edge))
WITH_PREDICATE = ("statement", "relation")
MAX_NAMED = 40


def check_edges(request: SearchRequest, view: GraphView) -> None:
    """Raises MalformedFilter for what is neither a kind of edge that the method follows nor a predicate that the graph
    holds."""
    kinds = KINDS if request.graph_method == "expansion" else KINDS.difference(CHUNK_EDGE_KINDS)
    if kinds.issuperset(request.edges):
        return
    predicates = view.predicates()
    unknown = next((name for name in request.edges if name not in kinds and name not in predicates), None)
    if unknown in KINDS:
        raise MalformedFilter(
            f"{unknown!r} is followed by graph_method=expansion alone: ask for that, or leave it out."
        )
    if unknown is not None:
        more = f" and {len(predicates) - MAX_NAMED} more" if len(predicates) > MAX_NAMED else ""
        raise MalformedFilter(
            f"{unknown[:80]!r} is neither a kind of edge nor a predicate: `edges` takes {', '.join(get_args(Edge))}; "
            f"of relations and of statements {', '.join(predicates[:MAX_NAMED]) or 'none yet'}{more}."
        )


def edge_kind_enabled(kind: str, edges: Collection[str]) -> bool:
    """Whether edges of a kind are looked up, all kinds where `edges` is empty. Statements and relations always: one of
    `edges` may be a predicate, `related_to` both."""
    return not edges or kind in edges or kind in WITH_PREDICATE


def edge_enabled(kind: str, predicate: str, edges: Collection[str]) -> bool:
    """Whether one edge is followed; `predicate` is that of a statement or relation."""
    return not edges or kind in edges or (kind in WITH_PREDICATE and predicate in edges)


MIN_SHARED, MAX_SHARED = 2, 40  # passages an entity must be in to join two of them, and not to join everything
SPECIFIC_MENTIONS = 10  # passages; a title that more of them mention is the less specific
LEAD_SHARE, OTHER_SHARE = 0.7, 0.5
RELATION_HOPS = 2  # of the method `hop`; walks make steps of one
NO_NEIGHBOURS = Neighbourhood("", 0, ())


class Sentence(NamedTuple):
    """A sentence of a seed: `share` is what it covers of the question, `names` the normalised names it holds, the
    longest of those that overlap."""

    text: str
    normalised: str
    share: float
    names: tuple[str, ...]


class MentionedEntity(NamedTuple):
    """An entity that a seed mentions: its name, the chunk that mentions it first, its value v."""

    name: str
    chunk: int
    value: float


@dataclass(frozen=True)
class Seed:
    """A passage that the question leads to. `link` is the name that leads there; None where its text does.

    A passage that an earlier seed leads to is a seed of further steps: `reached` says how. `near` are the
    neighbourhoods of its entities that are known already. `over` are the relations that lead to it from what the
    question names, where that has no passage.
    """

    passage: int
    document: int
    weight: float
    link: QueryLink | None
    sentences: tuple[Sentence, ...]
    entities: Mapping[int, MentionedEntity]
    reached: "Reason | None" = None
    near: Mapping[int, Neighbourhood] = field(default_factory=dict)
    over: tuple[RelationStep, ...] = ()

    def best_sentences(self, count: int) -> list[Sentence]:
        return sorted(self.sentences, key=lambda sentence: -sentence.share)[:count]


class Reason(NamedTuple):
    """Why a passage was reached: by which term, from which seed, over which entity and chunk.

    `origin` is the index of the seed, or of the query link or entity for terms that need no seed. `chunk` carries
    the evidence: in the seed for `mentions` and `links_to`, in the passage itself for the ways back; -1 for none.
    `inverse` when the statement says something about the seed's entity rather than of it. `over` are the relations that
    lead here, one after the other.
    """

    term: str
    origin: int
    entity: int = 0
    chunk: int = -1
    predicate: str = ""
    inverse: bool = False
    over: tuple[RelationStep, ...] = ()


class Activation(NamedTuple):
    """A passage, how strongly a term reaches it, and why."""

    passage: int
    score: float
    reason: Reason


def strongest(activations: Iterable[Activation]) -> dict[int, Activation]:
    """{passage: its strongest activation}; of equal ones the one that was reached first."""
    best: dict[int, Activation] = {}
    for activation in activations:
        known = best.get(activation.passage)
        if known is None or activation.score > known.score:
            best[activation.passage] = activation
    return best


def entry_passages(view: GraphView, prior: Mapping[int, float]) -> EntryPassages:
    """A document's passage that fits the question best gets 1, its lead .7, others that fit .5.

    `prior` is how well passages fit the question by their text. A document none of whose passages fits is entered by
    its lead, with 1.
    """
    fitting: dict[int, list[int]] = {}
    documents = view.documents_of_passages(np.array(list(prior), dtype=np.int64))
    for passage, document in zip(prior, documents.tolist(), strict=True):
        fitting.setdefault(document, []).append(passage)

    def of_document(document: int) -> list[tuple[int, float]]:
        passages = view.passages_of_document(document)
        if not len(passages):
            return []
        ordered = sorted(fitting.get(document, ()), key=lambda passage: (-prior[passage], passage))
        if not ordered:
            return [(passages[0], 1.0)]
        shares = dict.fromkeys(ordered, OTHER_SHARE)
        shares[passages[0]] = LEAD_SHARE
        shares[ordered[0]] = 1.0
        return list(shares.items())

    return of_document


def first_mentions(view: GraphView, passages: Sequence[int]) -> dict[int, dict[int, int]]:
    """{passage: {entity it mentions: the first chunk that does}}."""
    first_chunks: dict[int, dict[int, int]] = {passage: {} for passage in passages}
    mentions = view.mention_edges_in(np.array(passages, dtype=np.int64))
    for passage, entity, chunk in rows_of(mentions.passage, mentions.entity, mentions.chunk):
        first_chunks[passage].setdefault(entity, chunk)
    return first_chunks


def named(
    view: GraphView, links: Sequence[QueryLink], entries: EntryPassages, edges: Collection[str] = ()
) -> Iterator[Activation]:
    """Passages of the documents whose titles the question names: strength x entry share; of a document without any,
    those that relations lead to from there."""
    without: list[tuple[int, QueryLink]] = []
    for at, link in enumerate(links):
        entered = entries(link.document)
        if not entered:
            without.append((at, link))
        for passage, share in entered:
            yield Activation(passage, link.strength * share, Reason("names", at, link.entity))
    if without:
        starts = [{End("document", link.document): link.strength} for _, link in without]
        reached = walk_relations(view, starts, _relations_in(edges), RELATION_HOPS)
        for each in passages_at(view, reached, entries):
            at, link = without[each.reached.origin]
            yield Activation(each.passage, each.strength, Reason("names", at, link.entity, over=each.reached.steps))


def related(
    view: GraphView,
    seeds: Sequence[Seed],
    entries: EntryPassages,
    edges: Collection[str],
    hops: int,
    question: Question | None = None,
    prior: Mapping[int, float] | None = None,
) -> Iterator[Activation]:
    """What relations join with a seed's document, its chunks, or an entity that it is about or mentions, so many hops
    away: see `relation_walks`. `prior` is how well passages fit the question by their text."""
    if not seeds or not has_relations(view.segments):
        return
    starts = [
        {
            **entities_at(view, seed.document, {key: each.value for key, each in seed.entities.items()}),
            **chunks_of(view, seed.passage),
            End("document", seed.document): 1.0,
        }
        for seed in seeds
    ]
    documents = [seed.document for seed in seeds]
    relevance = None if question is None else Relevance.of(view, question, documents, prior or {})
    reached = walk_relations(view, starts, _relations_in(edges), hops, relevance)
    for each in passages_at(view, reached, entries):
        walked, last = each.reached, each.reached.steps[-1]
        if each.passage != seeds[walked.origin].passage:
            reason = Reason(
                "relation", walked.origin, each.entity, each.chunk, last.predicate, last.inverse, walked.steps
            )
            yield Activation(each.passage, seeds[walked.origin].weight * each.strength, reason)


def _relations_in(edges: Collection[str]) -> Callable[[str], bool]:
    return lambda predicate: edge_enabled("relation", predicate, edges)


def seed_activations(seeds: Sequence[Seed]) -> Iterator[Activation]:
    """The seeds themselves: w."""
    for at, seed in enumerate(seeds):
        yield Activation(seed.passage, seed.weight, Reason("matches", at))


class SeedEntities(NamedTuple):
    """The entities of all seeds: each once, ascending, with the indices of the seeds that mention it and its
    neighbourhood."""

    entities: list[int]
    holders: list[list[int]]
    near: list[Neighbourhood]


def seed_entities(view: GraphView, seeds: Sequence[Seed]) -> SeedEntities:
    """The neighbourhoods that the seeds do not know are looked up in one batch."""
    entities = sorted({entity for seed in seeds for entity in seed.entities})
    known = {entity: near for seed in seeds for entity, near in seed.near.items()}
    known |= neighbourhoods(view, [entity for entity in entities if entity not in known])
    holders = [[at for at, seed in enumerate(seeds) if entity in seed.entities] for entity in entities]
    return SeedEntities(entities, holders, [known.get(entity, NO_NEIGHBOURS) for entity in entities])


def neighbourhoods(view: GraphView, entities: Sequence[int]) -> dict[int, Neighbourhood]:
    """The neighbourhoods of entities, as far as a seed leads on over them."""
    return view.neighbourhoods(entities, MIN_SHARED, MAX_SHARED) if entities else {}


def title_mentions(
    seeds: Sequence[Seed], entities: SeedEntities, entries: EntryPassages
) -> tuple[list[Activation], list[Activation]]:
    """Documents whose titles a seed mentions, as (w x edge, w x edge x v).

    The edge is alias weight / sqrt(targets) x min(1, (10 / df)^.25): a mention of a country that everything mentions
    says little of where to go on.
    """
    plain: list[Activation] = []
    specific: list[Activation] = []
    shares = inverse_frequency(np.array([near.frequency for near in entities.near])).tolist()
    for entity, holders, near, specificity in zip(*entities, shares, strict=True):
        if len(near.about) > MAX_TARGETS:
            continue
        for document, weight in near.about:
            entered = entries(document)
            for at in holders:
                seed = seeds[at]
                if document == seed.document:
                    continue
                mentioned = seed.entities[entity]
                edge = seed.weight * weight / math.sqrt(len(near.about)) * specificity
                reason = Reason("mentions", at, entity, mentioned.chunk)
                for passage, share in entered:
                    plain.append(Activation(passage, edge * share, reason))
                    specific.append(Activation(passage, edge * share * mentioned.value, reason))
    return plain, specific


def inverse_frequency(frequencies: NDArray[np.int64]) -> NDArray[np.float64]:
    """min(1, (10 / df)^.25) for names in so many passages each."""
    return np.minimum(1.0, (SPECIFIC_MENTIONS / np.maximum(frequencies, 1)) ** 0.25)


def mentioned_by(view: GraphView, seeds: Sequence[Seed]) -> Iterator[Activation]:
    """Passages that mention the title of a seed's document: w x alias weight / sqrt(df)."""
    about = view.about_of(_documents(seeds))
    frequencies = view.passage_frequencies(about.entity)
    few = np.flatnonzero(frequencies <= MAX_SHARED)
    mentions = view.mention_edges_of(about.entity[few])
    for query_index, chunk, passage, entity in rows_of(
        mentions.query_index, mentions.chunk, mentions.passage, mentions.entity
    ):
        row = int(few[query_index])
        at = int(about.query_index[row])
        if view.document_of_passage(passage) != seeds[at].document:
            edge = float(about.weight[row]) / math.sqrt(frequencies[row])
            yield Activation(passage, seeds[at].weight * edge, Reason("mentioned_by", at, entity, chunk))


def shared(seeds: Sequence[Seed], entities: SeedEntities) -> Iterator[Activation]:
    """Passages that share an entity with a seed: w x v / sqrt(df), for entities in 2 to 40 passages."""
    for entity, holders, near in zip(*entities, strict=True):
        scale = 1 / math.sqrt(max(near.frequency, 1))
        for chunk, passage in near.mentions:
            for at in holders:
                seed = seeds[at]
                if passage != seed.passage:
                    score = seed.weight * seed.entities[entity].value * scale
                    yield Activation(passage, score, Reason("shares", at, entity, chunk))


def linked(view: GraphView, seeds: Sequence[Seed], entries: EntryPassages) -> Iterator[Activation]:
    """Documents that a seed links to, and passages that link to a seed's document: w x weight / sqrt(links)."""
    passages = np.array([seed.passage for seed in seeds], dtype=np.int64)
    outward = view.links_from(passages)
    fan_out = np.bincount(outward.query_index, minlength=len(seeds))
    for at, chunk, document, weight in rows_of(outward.query_index, outward.chunk, outward.document, outward.weight):
        if document != seeds[at].document:
            for passage, share in entries(document):
                score = seeds[at].weight * weight * share / math.sqrt(fan_out[at])
                yield Activation(passage, score, Reason("links_to", at, chunk=chunk))
    inward = view.links_to(_documents(seeds))
    fan_in = np.bincount(inward.query_index, minlength=len(seeds))
    for at, chunk, passage, weight in rows_of(inward.query_index, inward.chunk, inward.passage, inward.weight):
        if fan_in[at] <= MAX_SHARED and view.document_of_passage(passage) != seeds[at].document:
            score = seeds[at].weight * weight / math.sqrt(fan_in[at])
            yield Activation(passage, score, Reason("linked_from", at, chunk=chunk))


class _Stated(NamedTuple):
    """A statement of an entity that a seed's document is about: the index of the seed, how many statements that entity
    is in, the other ends, and whether the entity is the subject."""

    fact: Statement
    at: int
    fan: int
    others: list[int]
    of_seed: bool


def _stated_by(view: GraphView, seeds: Sequence[Seed]) -> list[_Stated]:
    """Those that lead anywhere. An entity in more than 40 statements counts only with those that its own document
    makes."""
    about = view.about_of(_documents(seeds))
    whole = about.weight >= 1
    facts = view.statements_with(about.entity[whole])
    origin = about.query_index[whole].tolist()
    fans = np.bincount(np.array([fact.query_index for fact in facts], dtype=np.int64), minlength=len(origin)).tolist()
    own: list[set[int]] = [set() for _ in seeds]
    for at, entity in zip(origin, about.entity[whole].tolist(), strict=True):
        own[at].add(entity)
    stated = []
    for fact in facts:
        at, fan = origin[fact.query_index], fans[fact.query_index]
        others = sorted(_ends(fact) - own[at])
        if others and (fan <= MAX_SHARED or view.document_of_passage(fact.passage) == seeds[at].document):
            of_seed = any(role.name == "subject" and role.entity in own[at] for role in fact.roles)
            stated.append(_Stated(fact, at, fan, others, of_seed))
    return stated


def stated(
    view: GraphView, seeds: Sequence[Seed], entries: EntryPassages, strength: Callable[[str], float]
) -> Iterator[Activation]:
    """Over statements about a seed's document: the passage that states one, and documents about its other part.

    Score w x confidence x `strength` of the predicate / sqrt(statements of the entity).
    """
    found = _stated_by(view, seeds)
    targets_of = documents_about(view, {entity for each in found for entity in each.others})
    for fact, at, fan, others, of_seed in found:
        seed = seeds[at]
        edge = seed.weight * fact.confidence * strength(fact.predicate)
        reason = Reason("states", at, others[0], fact.chunk, fact.predicate, not of_seed)
        if fact.passage != seed.passage:
            yield Activation(fact.passage, edge / math.sqrt(min(fan, MAX_SHARED)), reason)
        targets = [(entity, *target) for entity in others for target in targets_of.get(entity, ())]
        if len(targets) <= MAX_TARGETS:
            for entity, document, weight in targets:
                for passage, share in entries(document) if document != seed.document else ():
                    score = edge * weight * share / math.sqrt(len(targets))
                    yield Activation(passage, score, reason._replace(entity=entity))


def _ends(fact: Statement) -> set[int]:
    """Subject and object: a fact's time or place leads to no other document."""
    return {role.entity for role in fact.roles if role.name in ("subject", "object")}


def _documents(seeds: Sequence[Seed]) -> NDArray[np.int64]:
    return np.array([seed.document for seed in seeds], dtype=np.int64)
