"""Which titles and entities a question names: the longest match of its words against the names of the graph."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from indexer.resolution.own_names import full_names
from query_api.index.curation_follower import NO_ALIASES, Aliases
from query_api.index.graph.edges import rows_of
from query_api.index.graph.view import GraphView
from query_api.query.analysis import MIN_SINGLE_WORD_LETTERS, Question, Span, normalise_text
from schemas.hits import NamedInQuestion
from schemas.ids import entity_id
from schemas.predicates import ALIAS

UNMARKED = 0.4  # words like "place of birth" are a title somewhere, and mean what they say everywhere else
MAX_TARGETS = 10  # a name that more documents share identifies none
MAX_SHOWN = 5  # entities of one name
SURE_WORDS = 3  # of a name that is as sure as a longer one


class QueryLink(NamedTuple):
    """A name in the question: `surface` as written there, `strength` in (0, 1]; `document` is about that entity."""

    surface: str
    entity: int
    document: int
    strength: float


class NamedEntity(NamedTuple):
    """An entity in the question that is not a document's title, but mentioned somewhere."""

    surface: str
    entity: int


def strength(alias_weight: float, words: int, targets: int) -> float:
    """alias weight x min(1, .4 + .2 x words in the mention) / targets^.25: a longer name is a surer one, a shared
    name a less sure one."""
    return alias_weight * min(1.0, 0.4 + 0.2 * words) / math.sqrt(math.sqrt(targets))


Link = TypeVar("Link", QueryLink, NamedEntity)


class LinkedNames(NamedTuple):
    """What a question names: titles, and entities that are not titles; longest names first. `given` where the caller
    gave them."""

    links: list[QueryLink]
    entities: list[NamedEntity]
    given: bool = False


def link_names(
    question: Question,
    view: GraphView,
    collection: str | None,
    given: Sequence[str] | None = None,
    aliases: Aliases = NO_ALIASES,
) -> LinkedNames:
    """The titles and, where no title matches, the entities that the question names; longest names first, no word used
    twice. Where names are `given`, these instead, with the strength of a long one. By `aliases` a name also means what
    people say is one with it, or called so."""
    surfaces = {normalise_text(name): name for name in reversed(given or ())}
    surfaces.pop("", None)
    spans = question.spans() if given is None else [Span(0, 0, name, marked=True) for name in surfaces]
    names = {span.name for span in spans}
    written = view.entities_named(sorted(names), collection)
    known = _with_persons(view, written, [span.name for span in spans if span.marked], collection)
    if aliases.merged or aliases.renamed:
        known = aliases.widened(known, names, collection)
    # One of the fewest letters is linked only where people or documents know it as a name.
    short = [name for name in written if len(name) == MIN_SINGLE_WORD_LETTERS and given is None]
    for name in (each for each in short if known[each] == written[each] and not _is_stated(view, written[each])):
        del known[name]
    titles = _titles(view, known)
    links: list[QueryLink] = []
    entities: list[NamedEntity] = []
    for span in _named_spans(spans, titles):
        surface = surfaces.get(span.name) or " ".join(question.words[span.first : span.last])
        found, words = titles[span.name], span.last - span.first or SURE_WORDS
        for key, document, weight in found:
            link_strength = strength(weight, words, len(found)) * (1.0 if span.marked else UNMARKED)
            links.append(QueryLink(surface, key, document, link_strength))
        if not found:
            entities += [NamedEntity(surface, key) for key in known[span.name]]
    return LinkedNames(links, entities, given is not None)


def _with_persons(
    view: GraphView, known: Mapping[str, Sequence[int]], names: Sequence[str], collection: str | None
) -> dict[str, list[int]]:
    """{name: keys}, of a first or a family name with the person whom it fits, where it fits only one and is nothing
    else."""
    words = sorted({name for name in names if " " not in name})
    found = view.persons_with(words) if words else {}
    persons = {key: name for key, (where, name) in found.items() if collection in (None, where)}
    whole = full_names([*words, *persons.values()])
    meant = {word: whole[word] for word in words if word in whole and word not in persons.values()}
    more = {word: [key for key, name in persons.items() if name == person] for word, person in meant.items()}
    return {name: [*known.get(name, ()), *more.get(name, ())] for name in (*known, *more)}


def _is_stated(view: GraphView, entities: Sequence[int]) -> bool:
    """Whether a document has one of these as its name, or states what else it is called."""
    keys = np.array(entities, dtype=np.uint64)
    return bool((view.about(keys).weight >= 1).any()) or any(
        each.predicate == ALIAS for each in view.statements_with(keys)
    )


def _titles(view: GraphView, known: Mapping[str, Sequence[int]]) -> dict[str, list[tuple[int, int, float]]]:
    """{name: entity, document and alias weight of each document that is about one of its entities}."""
    documents = documents_about(view, set[int]().union(*known.values()))
    return {name: [(key, *target) for key in keys for target in documents.get(key, ())] for name, keys in known.items()}


def _named_spans(spans: Sequence[Span], titles: Mapping[str, Sequence[object]]) -> Iterator[Span]:
    """Those of a name that is known, titles before all others, without those that share a word with one before."""
    titled = [span for span in spans if 0 < len(titles.get(span.name, ())) <= MAX_TARGETS]
    used: set[int] = set()
    for span in [*titled, *(span for span in spans if titles.get(span.name) == [])]:
        places = range(span.first, span.last)
        if used.isdisjoint(places):
            used.update(places)
            yield span


def documents_about(view: GraphView, entities: Iterable[int]) -> dict[int, list[tuple[int, float]]]:
    """{entity: the documents that are about it, each with its alias weight}; one look at the graph."""
    about = view.about(np.array(sorted(entities), dtype=np.uint64))
    found: dict[int, list[tuple[int, float]]] = {}
    for key, document, weight in rows_of(about.entity, about.document, about.weight):
        found.setdefault(key, []).append((document, weight))
    return found


def shown_names(names: LinkedNames, view: GraphView) -> tuple[NamedInQuestion, ...]:
    """The names for a person to read, at most MAX_SHOWN of each: a name may mean an entity in each of thousands of
    collections. What the graph no longer holds is left out."""
    links, other_links = _shown(names.links)
    entities, other_entities = _shown(names.entities)
    names_of = view.entity_names([link.entity for link in links] + [each.entity for each in entities])

    def named(words: str, entity: int, **document: Any) -> NamedInQuestion:
        collection, name = names_of[entity]
        node = entity_id(collection, name)
        return NamedInQuestion(words=words, name=name, collection=collection, node=node, **document)

    def of_title(link: QueryLink) -> NamedInQuestion:
        key, title = view.document_key(link.document), view.title(link.document)
        strength, others = round(link.strength, 3), other_links.get(link, 0)
        return named(
            link.surface, link.entity, document_id=key.document_id, title=title, strength=strength, others=others
        )

    titles = [of_title(link) for link in links if link.entity in names_of]
    without = [
        named(each.surface, each.entity, others=other_entities.get(each, 0))
        for each in entities
        if each.entity in names_of
    ]
    return (*titles, *without)


def _shown(found: Sequence[Link]) -> tuple[list[Link], dict[Link, int]]:
    """The first MAX_SHOWN of each surface; and of the last shown of a surface, how many more there are."""
    of_surface: dict[str, list[Link]] = {}
    for each in found:
        of_surface.setdefault(each.surface, []).append(each)
    kept = [each for of_name in of_surface.values() for each in of_name[:MAX_SHOWN]]
    return kept, {
        of_name[MAX_SHOWN - 1]: len(of_name) - MAX_SHOWN for of_name in of_surface.values() if len(of_name) > MAX_SHOWN
    }
