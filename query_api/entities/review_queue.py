"""What waits for people: entities that may be one, as candidate pairs kept up to date, and conflicts between
statements; and what was decided.

Candidates are looked for when they are asked for, and then only for entities that came or changed since: a pair is
found when either of its two is looked at.
"""

import asyncio
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from indexer.errors import EncoderFailure
from indexer.resolution.candidates import CandidateIndex, CandidatePair, NamedEntity
from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.conflicts import Conflict
from query_api.entities.entity_facts import Fact
from query_api.index.curation_follower import CollectionEdits
from query_api.index.search_snapshot import QueryEncoder, Snapshot
from query_api.operations.jobs import Explanation, Job, Jobs
from schemas.choices import ReviewState
from schemas.edits_api import Review, ReviewedEntity
from schemas.entities import StatementDetail
from schemas.graph_edits import DecisionEdit, decision_id
from schemas.ids import Position

ANSWER_SECONDS = 10.0
EARLIER_PAIRS = 10_000
MOST_ENCODED, ENCODED_AT_ONCE = 5_000, 32
STATES: dict[str, ReviewState] = {"accept": "accepted", "reject": "rejected", "split": "split"}


class NotComputed(Exception):
    """The candidates of a large collection are still being looked for; asked again, there will be more of them."""


class ReviewKey(NamedTuple):
    """The order of reviews: open ones by score and by how often the rarer is mentioned, then decided ones, newest
    first."""

    decided: int
    rank: float
    mentions: int
    id: str


class Candidates(NamedTuple):
    """Pairs of entities that may be one, and conflicts, by the ids of decisions about them; `details` describes facts.
    `earlier` are pairs of a while ago, which somebody may still be looking at: a decision elsewhere changed which
    names speak for the entities."""

    entities: Mapping[str, NamedEntity]
    pairs: Mapping[str, CandidatePair]
    earlier: Mapping[str, CandidatePair]
    conflicts: Mapping[str, Conflict] = {}
    details: Callable[[Sequence[Fact]], list[StatementDetail]] = lambda _: []

    def find(self, identifier: str) -> tuple[list[str], str | None] | None:
        """The entities that a decision would be about, and what is stated of them."""
        if (pair := self.pairs.get(identifier) or self.earlier.get(identifier)) is not None:
            return [pair.first, pair.second], None
        conflict = self.conflicts.get(identifier)
        return None if conflict is None else ([each.id for each in conflict.entities], conflict.about)


class CandidatePairs:
    """The pairs of one collection's entities, kept up to date. Not thread-safe; what it gives out does not change."""

    def __init__(self) -> None:
        self._entities: dict[str, NamedEntity] = {}
        self._index = CandidateIndex()
        self._pairs: dict[str, CandidatePair] = {}
        self._earlier: LRUCache[str, CandidatePair] = LRUCache(EARLIER_PAIRS)
        self._of: dict[str, set[str]] = defaultdict(set)

    def update(
        self, entities: Iterable[NamedEntity], stopped: threading.Event, encoder: QueryEncoder | None = None
    ) -> Candidates:
        """Look for pairs of the entities that are new or have another name or type; returns early once `stopped`. The
        names of the first MOST_ENCODED are compared by meaning, too, if there is an encoder when they come."""
        before, self._entities = self._entities, {each.id: each for each in entities}
        for gone in before.keys() - self._entities.keys():
            self._remove(gone)
        changed = [
            each
            for each in self._entities.values()
            if (known := before.get(each.id)) is None or known._replace(mentions=each.mentions) != each
        ]
        vectors: dict[str, NDArray[np.float32]] = {}
        salient = set(islice(self._entities, MOST_ENCODED))
        named = [each for each in changed if each.id in salient]
        with suppress(EncoderFailure):
            for start in range(0, len(named), ENCODED_AT_ONCE):
                if encoder is None or stopped.is_set():
                    break
                block = named[start : start + ENCODED_AT_ONCE]
                encoded = encoder.encode_queries([each.name for each in block])
                vectors |= zip((each.id for each in block), encoded, strict=True)
        for each in changed:
            self._remove(each.id)
            self._index.add(each, vectors.get(each.id))
        for each in changed:
            if stopped.is_set():
                break
            for pair in self._index.candidates(each.id):
                self._add(pair)
        return Candidates(self._entities, dict(self._pairs), dict(self._earlier))

    def _add(self, pair: CandidatePair) -> None:
        identifier = decision_id([pair.first, pair.second])
        self._pairs[identifier] = pair
        self._of[pair.first].add(identifier)
        self._of[pair.second].add(identifier)

    def _remove(self, entity: str) -> None:
        self._index.remove(entity)
        for identifier in self._of.pop(entity, set()):
            pair = self._earlier[identifier] = self._pairs.pop(identifier)
            self._of[pair.second if pair.first == entity else pair.first].discard(identifier)


class Reviews:
    """The candidates of each collection that somebody asked about. Used on the event loop; looks for pairs in a thread,
    one collection at a time."""

    def __init__(
        self,
        catalogue_of: Callable[[Snapshot], EntityCatalogue],
        encoder: Callable[[], QueryEncoder | None] = lambda: None,
    ) -> None:
        """`catalogue_of` may take a while, and runs in a thread; of the same snapshot it gives the same one."""
        self.catalogue_of = catalogue_of
        self._encoder = encoder
        self._pairs: dict[str, CandidatePairs] = {}
        self._found: dict[str, tuple[weakref.ref[EntityCatalogue], Candidates]] = {}
        self._jobs: Jobs[Job] = Jobs("reviews", _explained)
        self._one_at_a_time = threading.Lock()
        self._stopped = threading.Event()

    async def candidates(
        self,
        catalogue: EntityCatalogue,
        collection: str,
        completed: Callable[[Candidates], Candidates] = lambda found: found,
    ) -> Candidates:
        """Those of a collection as of the catalogue, or of one just before it; `completed` adds the conflicts, in a
        thread. Raises NotComputed where looking for them takes long."""
        known = self._found.get(collection)
        if known is not None and known[0]() is catalogue:
            return known[1]
        job = self._jobs.get(collection)
        if job is None or job.state != "running":
            job = self._jobs.begin(Job(id=collection), lambda _: self._update(catalogue, collection, completed))
        if not await job.ended(ANSWER_SECONDS):
            raise NotComputed("Candidates are being looked for, which takes a while in a large collection.")
        if job.error is not None:
            raise job.error
        return self._found[collection][1]

    async def stop(self) -> None:
        self._stopped.set()
        await self._jobs.stop(cancel=False)

    async def _update(
        self, catalogue: EntityCatalogue, collection: str, completed: Callable[[Candidates], Candidates]
    ) -> None:
        pairs = self._pairs.setdefault(collection, CandidatePairs())

        def update() -> Candidates:
            with self._one_at_a_time:
                return completed(pairs.update(catalogue.named(collection), self._stopped, self._encoder()))

        self._found[collection] = weakref.ref(catalogue), await asyncio.to_thread(update)


def _explained(error: Exception) -> Explanation:
    return Explanation(str(error), foreseen=True)  # the caller gets the error itself


def current_id(decision: DecisionEdit, catalogue: EntityCatalogue, collection: str) -> str:
    """The id that a decision about the same has now, by the names that speak for its entities now."""
    ends = ((catalogue.find(each, collection), each) for each in decision.entities)
    return decision_id([each if found is None else found.id for found, each in ends], decision.about)


def undecided(
    identifiers: Iterable[str], catalogue: EntityCatalogue, collection: str, edits: CollectionEdits
) -> list[str]:
    """Those about which nobody decided: neither by their own names, nor by other names of the same entities."""
    decided = {
        current_id(decision, catalogue, collection)
        for decision, _ in edits.decisions.values()
        if decision.decision == "reject"
    }
    return [each for each in identifiers if each not in decided and each not in edits.decisions]


def conflict_reviews(
    found: Candidates, catalogue: EntityCatalogue, collection: str, edits: CollectionEdits
) -> Iterator[tuple[ReviewKey, Review]]:
    """Open and decided; of those open last where one statement only says more than another."""
    decided = {current_id(each.edit, catalogue, collection): known for known, each in edits.decisions.items()}
    for identifier, of in found.conflicts.items():
        review = Review(
            id=decided.get(identifier, identifier), collection=collection, kind=of.kind, state="open", about=of.about,
            entities=of.entities, score=of.score, reason=of.reason,
        )  # fmt: skip
        if identifier in decided:
            edit, at = edits.decisions[review.id]
            made = {"state": STATES[edit.decision], "by": edit.by, "position": str(Position(0, at))}
            yield ReviewKey(1, -at, 0, review.id), review.model_copy(update=made)
        elif of.kind != "duplicate":
            rank = 0.0 if of.kind == "enhancement" else -of.score
            yield ReviewKey(0, rank, -min(each.mentions for each in of.entities), identifier), review


def open_reviews(
    found: Candidates, catalogue: EntityCatalogue, collection: str, edits: CollectionEdits
) -> Iterator[tuple[ReviewKey, Review]]:
    """The pairs about which nobody decided."""
    for identifier in undecided(found.pairs, catalogue, collection, edits):
        pair = found.pairs[identifier]
        shown = [
            ReviewedEntity(id=each.id, name=each.name, type=each.type, mentions=each.mentions)
            for each in (found.entities[pair.first], found.entities[pair.second])
        ]
        key = ReviewKey(0, -pair.score, -min(each.mentions for each in shown), identifier)
        yield key, Review(
            id=identifier, collection=collection, state="open", entities=shown, score=round(pair.score, 3),
            reason=pair.reason,
        )  # fmt: skip


def decided_reviews(
    collection: str, edits: CollectionEdits, names: dict[str, ReviewedEntity]
) -> Iterator[tuple[ReviewKey, Review]]:
    """Decisions about entities, and merges, in a collection; `names` has the entities that are there."""
    overruled = edits.groups().overruled

    def review(identifier: str, state: ReviewState, entities: list[str], offset: int, by: str | None) -> Review:
        return Review(
            id=identifier,
            collection=collection,
            state=state,
            entities=[names.get(each) or ReviewedEntity(id=each, name="", type="", mentions=0) for each in entities],
            by=by,
            position=str(Position(0, offset)),
            overruled=offset in overruled,
        )

    for identifier, (decision, at) in edits.decisions.items():
        if decision.about is None:
            made = review(identifier, STATES[decision.decision], decision.entities, at, decision.by)
            yield ReviewKey(1, -at, 0, identifier), made
    for identifier, (merge, at) in edits.merges.items():
        made = review(identifier, "merged", merge.entities, at, merge.by)
        yield ReviewKey(1, -at, 0, identifier), made.model_copy(update={"name": merge.name})
