"""What people decide about the graph and chose for collections: the curation topic, folded and followed.

The state is a function of the newest record of each key, and of nothing else. The fold takes records in any order,
some of them twice, and what compaction removed changes nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from indexer.resolution.groups import Decision, Groups, Verdict, resolve_groups
from kafka_client.async_clients import LocateBroker
from kafka_client.unreadable_batches import Skip
from query_api.index.follower import FoldedTopic, FollowedRecord
from schemas.curation import CurationEvent, LinkingChoice, LinkingEvent, decode_curation
from schemas.errors import MalformedEvent
from schemas.graph_edits import (
    AnyEdit,
    DecisionEdit,
    EditKind,
    EntityEdit,
    GraphChoice,
    GraphEdit,
    GraphSettingsEvent,
    MergeEdit,
)
from schemas.ids import Position, digest, id_key, normalise_name
from schemas.orders import OrderEvent, Repair, Replay

Edit_co = TypeVar("Edit_co", bound=AnyEdit, covariant=True)


class Placed(NamedTuple, Generic[Edit_co]):
    """An edit, and the offset of its record on the curation topic."""

    edit: Edit_co
    offset: int


@dataclass(frozen=True)
class CollectionEdits:
    """What is in one collection, by id."""

    merges: Mapping[str, Placed[MergeEdit]] = field(default_factory=dict)
    decisions: Mapping[str, Placed[DecisionEdit]] = field(default_factory=dict)
    entities: Mapping[str, Placed[EntityEdit]] = field(default_factory=dict)

    def groups(self, equal: Iterable[Sequence[str]] = ()) -> Groups:
        """Which entities are one: by equal keys, and as people decided (`indexer.resolution.groups`)."""
        merged = (Decision(at, "same", tuple(merge.entities)) for merge, at in self.merges.values())
        decided = (
            Decision(at, _VERDICTS[edit.decision], tuple(edit.entities))
            for edit, at in self.decisions.values()
            if edit.about is None
        )
        return resolve_groups(equal, [*merged, *decided])

    def name_of(self, members: Iterable[str]) -> str | None:
        """How people call the one that these entities are: by the newest renaming of one of them, or merge of some;
        None where nobody decided."""
        together = set(members)
        decided = [(at, edit.name) for edit, at in self._of_entities(together) if edit.name]
        merges = (merge for merge in self.merges.values() if together.issuperset(merge.edit.entities))
        decided += [(at, edit.name) for edit, at in merges if edit.name]
        return max(decided)[1] if decided else None

    def type_of(self, members: Iterable[str]) -> str | None:
        """The type people gave one of these entities last; None where nobody did."""
        decided = [(at, edit.type) for edit, at in self._of_entities(members) if edit.type]
        return max(decided)[1] if decided else None

    def _of_entities(self, members: Iterable[str]) -> list[Placed[EntityEdit]]:
        return [self.entities[each] for each in members if each in self.entities]


_VERDICTS: dict[str, Verdict] = {"accept": "same", "reject": "different", "split": "apart"}
NO_EDITS = CollectionEdits()


@dataclass(frozen=True)
class Curation:
    """What people decided about the graph of each collection, and what they allow in it."""

    by_collection: Mapping[str, CollectionEdits] = field(default_factory=dict)
    allowed: Mapping[str, GraphChoice] = field(default_factory=dict)

    def of(self, collection: str) -> CollectionEdits:
        return self.by_collection.get(collection, NO_EDITS)

    @cached_property
    def aliases(self) -> "Aliases":
        """By what names questions may mean entities, as people merged and renamed them."""
        merged: dict[int, tuple[int, ...]] = {}
        renamed: dict[tuple[str, str], set[int]] = {}
        for collection, edits in self.by_collection.items():
            for identifier, members in edits.groups().members.items():
                merged[id_key(identifier)] = tuple(map(id_key, members))
            names = [(edit.name, [identifier]) for identifier, (edit, _) in edits.entities.items()]
            names += [(merge.name, merge.entities) for merge, _ in edits.merges.values()]
            for name, identifiers in names:
                if name:
                    renamed.setdefault((collection, normalise_name(name)), set()).update(map(id_key, identifiers))
        return Aliases(merged, {name: tuple(sorted(keys)) for name, keys in renamed.items()})

    @cached_property
    def aliases_digest(self) -> str:
        """Equal where people's names mean the same."""
        merged, renamed = self.aliases
        return digest(repr(sorted(merged.items())), repr(sorted(renamed.items())))


class Aliases(NamedTuple):
    """`merged` has the keys of all entities that are one with each; `renamed` those that people call by a name,
    normalised, in a collection."""

    merged: Mapping[int, tuple[int, ...]]
    renamed: Mapping[tuple[str, str], tuple[int, ...]]

    def widened(
        self, known: Mapping[str, Sequence[int]], names: Iterable[str], collection: str | None
    ) -> dict[str, list[int]]:
        """{name: keys} with the entities that people call by these names, and those that are one with them; keys
        ascending. `known` as it is where there is nothing of them."""
        found = {name: set(keys) for name, keys in known.items()}
        for (where, name), keys in self.renamed.items():
            if collection in (None, where) and name in names:
                found.setdefault(name, set()).update(keys)
        return {
            name: sorted({member for key in keys for member in self.merged.get(key, (key,))})
            for name, keys in found.items()
        }


NO_ALIASES = Aliases({}, {})


class PlacedEvent(NamedTuple):
    """An event about a graph and the offset of its record."""

    offset: int
    event: GraphEdit | GraphSettingsEvent


class NewestRecord(NamedTuple):
    """What the newest record of a key says, and where it is; None where there is none."""

    event: CurationEvent | None = None
    position: Position = Position(0, -1)


Event = TypeVar("Event", bound=CurationEvent)


def fold(events: Iterable[PlacedEvent]) -> Curation:
    """The state after these events: the newest of each key counts."""
    newest: dict[Key, PlacedEvent] = {}
    for placed in events:
        key = _key(placed.event)
        if key not in newest or newest[key].offset < placed.offset:
            newest[key] = placed
    return applied(Curation(), newest.values())


def applied(state: Curation, newest: Iterable[PlacedEvent]) -> Curation:
    """The state with these events, each of another key and newer than what the state has of it. What they do not touch
    is shared."""
    allowed = dict(state.allowed)
    edits: dict[tuple[str, EditKind], list[tuple[str, Placed[AnyEdit] | None]]] = defaultdict(list)
    for offset, event in newest:
        if isinstance(event, GraphEdit):
            edit = None if event.edit is None else Placed(event.edit, offset)
            edits[event.collection, event.kind].append((event.id, edit))
        elif event.choice is not None:
            allowed[event.collection] = event.choice
        else:
            allowed.pop(event.collection, None)
    by_collection = dict(state.by_collection)
    for (collection, kind), changes in edits.items():
        before = by_collection.get(collection, NO_EDITS)
        after: dict[str, Any] = {FIELDS[kind]: _changed(getattr(before, FIELDS[kind]), changes)}
        by_collection[collection] = replace(before, **after)
    changed = {name: each for name, each in by_collection.items() if each != NO_EDITS}
    return Curation(changed, allowed)


def _changed(
    before: Mapping[str, Placed[AnyEdit]], changes: Iterable[tuple[str, Placed[AnyEdit] | None]]
) -> Mapping[str, Placed[AnyEdit]]:
    after = dict(before)
    for identifier, edit in changes:
        after.pop(identifier, None)
        if edit is not None:
            after[identifier] = edit
    return after


Key = tuple[str, ...]
FIELDS: dict[EditKind, str] = {"merge": "merges", "decision": "decisions", "entity": "entities"}


def _key(event: GraphEdit | GraphSettingsEvent) -> Key:
    return (event.collection, event.kind, event.id) if isinstance(event, GraphEdit) else (event.collection,)


class CurationFollower(FoldedTopic):
    """Follows the topic, so that searches, edits and settings need not read it.

    `linking` is how the newest record of each collection has it linked, as far as it was read: empty until the log is
    reached, kept while it is away. `changed` is called when that or the edits of a graph change, and
    `repaired` with the name of a generation that was repaired since the topic was first reached.
    """

    def __init__(
        self,
        topic: str,
        locate_broker: LocateBroker,
        changed: Callable[[], None],
        repaired: Callable[[str], None],
        skip: Skip,
    ) -> None:
        super().__init__(topic, locate_broker, skip)
        self.linking: Mapping[str, LinkingChoice] = {}
        self.written = -1
        """The offset of the last record that this service wrote itself."""
        self._newest: dict[bytes, NewestRecord] = {}
        self._offsets: dict[Key, int] = {}
        self._state = Curation()
        self._unapplied: dict[Key, PlacedEvent] = {}
        self._changed = changed
        self._repaired = repaired

    @property
    def state(self) -> Curation:
        """What was read so far: the same object until something is decided."""
        if self._unapplied:
            self._state = applied(self._state, self._unapplied.values())
            self._unapplied = {}
        return self._state

    def newest(self, key: bytes) -> NewestRecord:
        """What the topic says of a setting or an order, as far as it was read."""
        return self._newest.get(key, NewestRecord())

    def events(self, of: type[Event]) -> list[Event]:
        """The newest of every setting or order of this type, in the order of the log."""
        found = [(each.position, each.event) for each in self._newest.values() if isinstance(each.event, of)]
        return [event for _, event in sorted(found, key=itemgetter(0))]

    def _forget(self) -> None:
        self.linking, self._state, self.written = {}, Curation(), -1
        self._newest, self._offsets, self._unapplied = {}, {}, {}
        self._changed()

    async def _take(self, records: Sequence[FollowedRecord]) -> None:
        edited = [self._take_record(record) for record in records]
        linking = {each.collection: each.choice for each in self.events(LinkingEvent) if each.choice is not None}
        self._reach(records[-1].offset)
        if linking != self.linking or (any(edited) and self.was_reached):
            self.linking = linking
            self._changed()

    def _take_record(self, record: FollowedRecord) -> bool:
        """Whether it is an edit that was not read before. What the worker refuses as malformed is skipped, as there."""
        try:
            event = decode_curation(record.key, record.value)
        except MalformedEvent:
            return False
        if (rewritten := _rewritten(event)) is not None and record.offset >= (self._first_end or 0):
            self._repaired(rewritten)
        if record.key is not None and not isinstance(event, GraphEdit | None):
            held = self._newest.get(record.key)
            if held is None or held.position.offset <= record.offset:
                self._newest[record.key] = NewestRecord(event, Position(0, record.offset))
        return isinstance(event, GraphEdit | GraphSettingsEvent) and self._add(PlacedEvent(record.offset, event))

    def _pass(self, positions: Mapping[int, int]) -> None:
        before = self.reached
        super()._pass(positions)
        if self.reached > before and self._unapplied:
            self._changed()

    def _add(self, placed: PlacedEvent) -> bool:
        """False for a record that was read before: after a reconnection some come again."""
        key = _key(placed.event)
        if self._offsets.get(key, -1) >= placed.offset:
            return False
        self._offsets[key] = placed.offset
        self._unapplied[key] = placed
        return True


def _rewritten(event: CurationEvent | None) -> str | None:
    """The generation of which rows were written again."""
    order = event.order if isinstance(event, OrderEvent) else None
    if isinstance(order, Repair | Replay) and order.state == "done":
        return order.generation if isinstance(order, Repair) or (order.changed and not order.dry_run) else None
    return None
