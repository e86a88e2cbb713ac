"""The entities of a graph: names that are one are one entity, with a type by vote and a label.

A catalogue is a function of one view of the graph and of what people decided: two views of equal content have equal
ones. Names with equal resolution keys and agreeing types are one (`indexer.resolution.keys`), and what people merged.
"""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, permutations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indexer.extraction.entity_mentions import MIN_TYPE_CONFIDENCE
from indexer.resolution.candidates import NamedEntity
from indexer.resolution.keys import KINDS_OF_THING, UNTYPED, resolution_key
from indexer.resolution.own_names import qualified_name
from query_api.index.curation_follower import Curation
from query_api.index.graph.edges import Numbers
from query_api.index.graph.graph_segments import ViewSegment
from query_api.index.graph.identifiers import MISSING, Keys, find, key_of
from query_api.index.graph.typed_mentions import TypedEntities, typed_entities
from query_api.index.graph.view import GraphView
from schemas.graph_delta import ENTITY_TYPES, LITERAL_TYPES
from schemas.ids import COMPUTED_ID, bare_name, entity_id
from schemas.predicates import ALIAS

_DOUBTED_TYPES = ("person", "organisation", "place")  # the others are decided by form
LEAST_VOTES, MOST_OF = 0.25, 2 / 3  # of the mentions, and of those with another type than `thing`
REUSED = 10.0
_BRACKETED = re.compile(r"\s*[(\[][^()\[\]]*[)\]]$")
_AGREEING = dict.fromkeys(KINDS_OF_THING | UNTYPED, "thing")  # types that agree with each other


class Entity(NamedTuple):
    """`id` and `name` are those of the member that is mentioned most; `members` are the keys of all, it first."""

    id: str
    collection: str
    name: str
    label: str
    type: str
    confidence: float
    salience: float
    mentions: int
    members: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class EntityCatalogue:
    """Entities in columns, the most salient first, then by name and id.

    `weights` are their mentions, each with its confidence, by which `salience` goes. `members` are the
    keys of the names that each is made of; `groups` has the row of every such key, which `keys` holds in ascending
    order.
    """

    collections: pa.Array
    names: pa.Array
    labels: pa.Array
    types: NDArray[np.uint8]
    confidences: NDArray[np.float64]
    mentions: NDArray[np.int64]
    weights: NDArray[np.float64]
    members: Sequence[tuple[int, ...]]
    keys: Keys
    groups: NDArray[np.int64]
    chosen_types: Mapping[int, str] = field(default_factory=dict)  # that people gave, by row
    view: GraphView | None = None  # what it is the catalogue of

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, row: int) -> Entity:
        collection, name = self.collections[row].as_py(), self.names[row].as_py()
        return Entity(
            entity_id(collection, name),
            collection,
            name,
            self.labels[row].as_py(),
            self.type_of(row),
            round(float(self.confidences[row]), 3),
            round(float(salience(self.weights[row])), 3),
            int(self.mentions[row]),
            self.members[row],
        )

    def type_of(self, row: int) -> str:
        return self.chosen_types.get(row) or ENTITY_TYPES[self.types[row]]

    def row_of(self, key: int) -> int | None:
        """The row of the entity that the name with this key belongs to."""
        row = int(self.rows_of(np.array([key], dtype=np.uint64))[0])
        return None if row == MISSING else row

    def rows_of(self, keys: Keys) -> Numbers:
        """(n_keys,) `row_of` of each, MISSING for what is not the key of an entity's name."""
        found = find(self.keys, keys)
        known = np.flatnonzero(found != MISSING)
        rows = np.full(len(keys), MISSING, dtype=np.int64)
        rows[known] = self.groups[found[known]]
        return rows

    def ends_of(self, part: ViewSegment, statements: Numbers) -> tuple[Numbers, Numbers]:
        """The rows of the subject and of the object of each of these; MISSING where that is not an entity."""
        which, edges, entities = part.segment.roles.leaving(statements)
        rows = self.rows_of(part.segment.entity_keys[entities])
        ends = np.full((2, len(statements)), MISSING, dtype=np.int64)
        for end, name in zip(ends, ("subject", "object"), strict=True):
            of_role = np.flatnonzero(part.segment.role_names.among([name])[edges])[::-1]  # of several the first
            end[which[of_role]] = rows[of_role]
        return ends[0], ends[1]

    def of_key(self, key: int) -> Entity | None:
        row = self.row_of(key)
        return None if row is None else self[row]

    def keys_of(self, key: int) -> Keys:
        """Those of all names that are one with the name with this key."""
        row = self.row_of(key)
        return np.array([key] if row is None else self.members[row], dtype=np.uint64)

    def find(self, identifier: str, collection: str) -> Entity | None:
        """By the id of one of its names, or by a name in the collection."""
        forms = qualified_name(identifier), bare_name(identifier), resolution_key(identifier, "concept")
        keys = [key_of(entity_id(collection, form)) for form in filter(None, forms)]
        if COMPUTED_ID.fullmatch(identifier):
            keys.insert(0, key_of(identifier))
        return next(filter(None, map(self.of_key, keys)), None)

    def rows(
        self, *, collection: str | None, prefix: str, entity_type: str | None, min_salience: float = 0.0
    ) -> NDArray[np.int64]:
        """The rows of entities with a word of the name or of the label that begins with `prefix`. Literals, such as
        dates, only where their type is given."""
        keep = ~self._is_literal() if entity_type is None else self._has_type(entity_type)
        keep &= salience(self.weights) >= min_salience
        if collection is not None:
            keep &= self._is_in(collection)
        wanted = bare_name(prefix)
        if wanted:
            keep &= begins(self.names, wanted, words=True) | begins(self.labels, wanted, words=True)
        elif prefix.strip():
            keep[:] = False
        return np.flatnonzero(keep)

    def rows_in(self, collection: str) -> NDArray[np.int64]:
        """Those of a collection, with literals."""
        return np.flatnonzero(self._is_in(collection))

    def _is_in(self, collection: str) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = pc.equal(self.collections, collection).to_numpy(zero_copy_only=False)
        return found

    def sample(self, rows: NDArray[np.int64], size: int, seed: int) -> NDArray[np.int64]:
        """So many of the rows at random, each as likely; the same for the same seed and content."""
        return np.random.default_rng(seed).permutation(rows)[:size]

    def after(self, rows: NDArray[np.int64], weight: float, name: str, key: int) -> NDArray[np.int64]:
        """Those of the rows that follow where an entity with these would be."""
        first = int(np.searchsorted(-self.weights[rows], -weight, "left"))
        for at in range(first, len(rows)):
            row = int(rows[at])
            if (-float(self.weights[row]), self.names[row].as_py(), self.members[row][0]) > (-weight, name, key):
                return rows[at:]
        return rows[len(rows) :]

    def _is_literal(self) -> NDArray[np.bool_]:
        literal = np.zeros(len(self), dtype=bool)
        for entity_type in LITERAL_TYPES:
            literal |= self._has_type(entity_type)
        return literal

    def _has_type(self, entity_type: str) -> NDArray[np.bool_]:
        has = np.zeros(len(self), dtype=bool)
        if entity_type in ENTITY_TYPES:
            has = self.types == ENTITY_TYPES.index(entity_type)
        for row, chosen in self.chosen_types.items():
            has[row] = chosen == entity_type
        return has

    def named(self, collection: str) -> Iterator[NamedEntity]:
        """Each of a collection as one to resolve, but literals: two dates that differ in a digit are two."""
        same = defaultdict(set)
        for one, other in chain.from_iterable(map(permutations, self._stated_to_be_one())):
            same[one].add(self[other].id)
        for row in np.flatnonzero(~self._is_literal() & self._is_in(collection)).tolist():
            found = self[row]
            yield NamedEntity(
                found.id, found.collection, found.label, found.type, found.mentions, frozenset(same.get(row, ()))
            )

    def _stated_to_be_one(self) -> Iterator[tuple[int, int]]:
        """The rows that a document says are one: in a statement, or as names of what it is about."""
        view = self.view or GraphView.empty()
        stated = [
            np.stack(self.ends_of(part, part.statements_in(predicates=[ALIAS])), axis=1) for part in view.segments
        ]
        about = view.about_of(view.live_documents())
        names = self.rows_of(about.entity[about.weight >= 1])
        documents = about.document[about.weight >= 1]
        titled = np.stack((names[1:], names[:-1]), axis=1)[documents[1:] == documents[:-1]]
        rows = np.concatenate([*stated, titled])
        rows = rows[(rows != MISSING).all(axis=1)]
        for pair in rows[rows[:, 0] != rows[:, 1]].tolist():
            if len({bare_name(self.labels[row].as_py()) for row in pair}) == 2:  # not distinguished by brackets
                yield pair[0], pair[1]


def salience(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """How sure it is that the documents are about entities whose mentions have these sums of confidences."""
    return -np.expm1(-weights)


def begins(texts: pa.Array, prefix: str, *, words: bool = False) -> NDArray[np.bool_]:
    """(n_texts,) bool: the text, or with `words` any word of it, begins with the prefix, in any case."""
    found = pc.starts_with(texts, prefix, ignore_case=True)
    if words:
        found = pc.or_(found, pc.match_substring(texts, f" {prefix}", ignore_case=True))
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


class EntityCatalogues:
    """The catalogue of the newest view that was asked for. Thread-safe.

    What a segment holds is counted once, and again when documents of it are deleted; a name's resolution key is
    computed once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._of: tuple[GraphView, Curation] | None = None
        self._catalogue: EntityCatalogue | None = None
        self._parts: list[tuple[ViewSegment, TypedEntities]] = []
        self._keys: ResolutionKeys = {}
        self._old_at = 0.0

    def of(self, view: GraphView, curation: Curation, *, may_be_older: bool = False) -> EntityCatalogue:
        """That of the view; where it `may_be_older`, one that is at most REUSED times as old as it took to build, so
        that a large graph that changes all the time is not counted all the time."""
        with self._lock:
            now = self._clock()
            is_same = self._of is not None and self._of[0] is view and self._of[1] is curation
            if self._catalogue is None or not (is_same or (may_be_older and now < self._old_at)):
                catalogue, self._keys = build_catalogue(self._counted(view), curation, self._keys)
                self._catalogue = replace(catalogue, view=view)
                self._of = view, curation
                built = self._clock()
                self._old_at = built + REUSED * (built - now)
            return self._catalogue

    def _counted(self, view: GraphView) -> list[TypedEntities]:
        counted = []
        for part in view.segments:
            known = (found for each, found in self._parts if _is_same(each, part))
            counted.append((part, next(known, None) or typed_entities(part)))
        self._parts = counted
        return [found for _, found in counted]


def _is_same(one: ViewSegment, other: ViewSegment) -> bool:
    return one.segment is other.segment and one.deleted is other.deleted


ResolutionKeys = dict[tuple[str, str], str]
"""{(label, type): resolution key}"""


def build_catalogue(
    parts: Sequence[TypedEntities], curation: Curation, known: Mapping[tuple[str, str], str]
) -> tuple[EntityCatalogue, ResolutionKeys]:
    """The catalogue of what the segments of a view hold, and the resolution keys of its names; `known` are those of an
    earlier one."""
    keys, where = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
    count = len(keys)
    votes = np.zeros((count, len(ENTITY_TYPES)))
    np.add.at(votes, where, np.concatenate([part.votes for part in parts]))
    mentions = np.zeros(count, dtype=np.int64)
    np.add.at(mentions, where, np.concatenate([part.mentions for part in parts]))
    first = np.full(count, -1, dtype=np.int64)
    first[where[::-1]] = np.arange(len(where))[::-1]
    rows = pa.array(first)
    collections = pa.concat_arrays([part.collections for part in parts]).take(rows)
    names = pa.concat_arrays([part.names for part in parts]).take(rows)
    types = [ENTITY_TYPES[number] for number in _elected(votes, mentions).tolist()]
    named = list(zip(collections.to_pylist(), names.to_pylist(), strict=True))
    shown, labelled = _distinguished(named, _labels(parts, where).to_pylist(), types)
    labels = pa.array(shown, pa.string())
    resolution = {each: known[each] if each in known else resolution_key(*each) for each in labelled}
    groups = _groups(keys, named, labelled, resolution, curation)
    return _catalogue(keys, collections, names, labels, votes, mentions, groups, curation), resolution


def _distinguished(
    named: Sequence[tuple[str, str]], labels: list[str], types: Sequence[str]
) -> tuple[list[str], list[tuple[str, str]]]:
    """The labels of names, each (collection, name), and the label and type by which each has its resolution key.

    Brackets in a title distinguish things where there are several of a name (`Mercury (planet)`, `Mercury (element)`);
    those of a single one say nothing: it is what others call `Mercury`.
    """
    labelled = list(zip(labels, types, strict=True))
    qualified: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, label in enumerate(labels):
        if label.endswith((")", "]")) and (name := bare_name(label)) != named[row][1]:
            qualified[named[row][0], name].append(row)
    plain = {each: row for row, each in enumerate(named) if each in qualified}
    for each, rows in qualified.items():
        for row in rows if len(rows) > 1 else ():
            labelled[row] = named[row][1], types[row]
        if len(rows) == 1:
            labelled[rows[0]] = labelled[plain.get(each, rows[0])]
            labels[rows[0]] = _BRACKETED.sub("", labels[rows[0]])
    return labels, labelled


def _elected(votes: NDArray[np.float64], mentions: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The types with most votes; `thing` for a person, place or organisation where the documents agree too little. The
    votes for `thing` are of documents that do not know."""
    types: NDArray[np.uint8] = votes.argmax(axis=1).astype(np.uint8)
    best, known = votes.max(axis=1, initial=0.0), votes.sum(axis=1) - votes[:, ENTITY_TYPES.index("thing")]
    agreed = (best >= MIN_TYPE_CONFIDENCE * mentions) | ((best >= LEAST_VOTES * mentions) & (best >= MOST_OF * known))
    doubtful = np.isin(types, [ENTITY_TYPES.index(each) for each in _DOUBTED_TYPES]) & ~agreed
    types[doubtful] = ENTITY_TYPES.index("thing")
    return types


def _labels(parts: Sequence[TypedEntities], where: NDArray[np.int64]) -> pa.Array:
    """The commonest surface of each name over all segments; the first in the alphabet of equally common ones."""
    surfaces = pa.concat_arrays([part.surfaces for part in parts])
    table = pa.table(
        {"entity": where, "surface": surfaces, "times": np.concatenate([part.surface_counts for part in parts])}
    )
    totals = table.group_by(["entity", "surface"]).aggregate([("times", "sum")])
    ordered = totals.sort_by([("entity", "ascending"), ("times_sum", "descending"), ("surface", "ascending")])
    first = np.unique(ordered["entity"].to_numpy(), return_index=True)[1]
    return ordered["surface"].take(pa.array(first)).combine_chunks()


def _groups(
    keys: Keys,
    named: Sequence[tuple[str, str]],
    labelled: Sequence[tuple[str, str]],
    resolution: ResolutionKeys,
    curation: Curation,
) -> NDArray[np.int64]:
    """For each name, with its label and type, the lowest number of a name that is the same entity."""
    equal: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for row, each in enumerate(labelled):
        if key := resolution[each]:
            equal[named[row][0], _AGREEING.get(each[1], each[1]), key].append(row)
    ids_of: dict[str, list[list[str]]] = defaultdict(list)
    for (collection, _, _), rows in equal.items():
        if len(rows) > 1:
            ids_of[collection].append([entity_id(*named[row]) for row in rows])
    groups = np.arange(len(keys))
    for collection in sorted({*ids_of, *curation.by_collection}):
        for members in set(curation.of(collection).groups(ids_of.get(collection, ())).members.values()):
            found = find(keys, np.array([key_of(each) for each in members], dtype=np.uint64))
            known = found[found != MISSING]
            if len(known):
                groups[known] = known.min()
    return groups


def _catalogue(
    keys: Keys,
    collections: pa.Array,
    names: pa.Array,
    labels: pa.Array,
    votes: NDArray[np.float64],
    mentions: NDArray[np.int64],
    groups: NDArray[np.int64],
    curation: Curation,
) -> EntityCatalogue:
    """Sum up the names of each entity; the one that is mentioned most speaks for it."""
    order = np.lexsort((keys, -mentions, groups))
    heads = np.flatnonzero(np.r_[True, groups[order][1:] != groups[order][:-1]]) if len(order) else order
    head_rows = order[heads]
    numbers = np.cumsum(np.r_[0, groups[order][1:] != groups[order][:-1]]) if len(order) else order
    of_entity = np.empty(len(keys), dtype=np.int64)
    of_entity[order] = numbers
    total_votes = np.zeros((len(heads), votes.shape[1]))
    np.add.at(total_votes, of_entity, votes)
    total_mentions = np.bincount(of_entity, mentions, len(heads)).astype(np.int64)
    members = [tuple(keys[part].tolist()) for part in np.split(order, heads[1:])] if len(heads) else []
    by_name = names.take(pa.array(head_rows))
    weights = np.round(total_votes.sum(axis=1), 6)
    ranked = pa.table(
        {"weight": weights, "name": by_name, "key": keys[head_rows], "row": np.arange(len(heads))}
    ).sort_by([("weight", "descending"), ("name", "ascending"), ("key", "ascending")])
    shown = ranked["row"].to_numpy()
    place = np.empty(len(heads), dtype=np.int64)
    place[shown] = np.arange(len(heads))
    best = total_votes[shown].max(axis=1, initial=0.0)
    catalogue = EntityCatalogue(
        collections=collections.take(pa.array(head_rows[shown])),
        names=by_name.take(pa.array(shown)),
        labels=labels.take(pa.array(head_rows[shown])),
        types=_elected(total_votes, total_mentions)[shown],
        confidences=best / np.maximum(total_mentions[shown], 1),
        mentions=total_mentions[shown],
        weights=weights[shown],
        members=[members[row] for row in shown.tolist()],
        keys=keys,
        groups=place[of_entity],
    )
    return _as_people_say(catalogue, curation)


def _as_people_say(catalogue: EntityCatalogue, curation: Curation) -> EntityCatalogue:
    """With the names and types that people gave."""
    labels: dict[int, str] = {}
    types: dict[int, str] = {}
    for collection, edits in curation.by_collection.items():
        named = {*edits.entities, *(each for merge, _ in edits.merges.values() for each in merge.entities)}
        rows = {row for each in named if (row := catalogue.row_of(key_of(each))) is not None}
        for row in rows:
            if catalogue.collections[row].as_py() != collection:
                continue
            ids = _ids_of(catalogue.members[row], named)
            if label := edits.name_of(ids):
                labels[row] = label
            if entity_type := edits.type_of(ids):
                types[row] = entity_type
    if not labels and not types:
        return catalogue
    shown = catalogue.labels.to_pylist()
    for row, label in labels.items():
        shown[row] = label
    return replace(catalogue, labels=pa.array(shown, pa.string()), chosen_types=types)


def _ids_of(members: Sequence[int], named: set[str]) -> list[str]:
    """The ids among those named that belong to these keys."""
    keys = set(members)
    return [each for each in named if key_of(each) in keys]
