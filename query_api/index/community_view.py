"""The newest published communities, in memory."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indexer.graph.tables import id_keys, spelled
from indexer.read.community_reader import CommunityManifest, CommunityTables
from query_api.index.graph.edges import Numbers
from query_api.index.graph.identifiers import Keys
from schemas.choices import CommunityLevel
from schemas.communities import CommunityMember, CommunityName, CommunitySentence, CommunitySummary

LEVELS: tuple[CommunityLevel, ...] = ("coarse", "medium", "fine")
CENTRAL_MEMBERS = 20
OTHER_MEMBER = 0.5


class Place(NamedTuple):
    """Position of a community in lists: by collection, level from coarse to fine, the largest first."""

    collection: str
    level: int
    smaller: int
    id: str


class Page(NamedTuple):
    """Communities of a page, whether more follow, and how many all pages have."""

    communities: list[CommunitySummary]
    has_more: bool
    total: int


class CommunityView:
    """Immutable, for any thread."""

    def __init__(self, manifest: CommunityManifest, tables: CommunityTables) -> None:
        communities = tables.communities
        self.name = manifest.name
        self.graph_position = manifest.graph_position
        self.made_at_ms = manifest.made_at_ms
        self._communities = communities
        self._members = tables.members
        self._ids: list[str] = communities["id"].to_pylist()
        self._row_of = {identifier: row for row, identifier in enumerate(self._ids)}
        self._parents: list[int] = communities["parent"].to_pylist()
        self._places = [
            Place(collection, LEVELS.index(level), -size, identifier)
            for collection, level, size, identifier in zip(
                communities["collection"].to_pylist(),
                communities["level"].to_pylist(),
                communities["size"].to_pylist(),
                self._ids,
                strict=True,
            )
        ]
        self._order = sorted(range(len(self._places)), key=self._places.__getitem__)
        of = tables.members["community"].to_numpy()
        cited = communities["summary"].combine_chunks()
        texts = pc.struct_field(pc.list_flatten(cited), "text")
        self._sentences = pa.table({"community": pc.list_parent_indices(cited), "text": texts})
        self._first_members = np.searchsorted(of, np.arange(len(self._ids) + 1))  # they are adjacent

    def __len__(self) -> int:
        return len(self._ids)

    def page(
        self, collection: str | None, level: CommunityLevel | None, words: str | None, after: Place | None, limit: int
    ) -> Page:
        """The first `limit` after a place; with `words` those that have each word in the title or in a member's
        label."""
        named = None if not words else self._named(words)
        rows = [
            row
            for row in self._order
            if (collection is None or self._places[row].collection == collection)
            and (level is None or LEVELS[self._places[row].level] == level)
            and (named is None or row in named)
        ]
        following = [row for row in rows if after is None or self._places[row] > after]
        return Page(list(self.summaries(following[:limit])), len(following) > limit, len(rows))

    def summaries(self, rows: Sequence[int]) -> Iterator[CommunitySummary]:
        for row, stored in zip(rows, self._communities.take(pa.array(rows, pa.int64())).to_pylist(), strict=True):
            yield CommunitySummary(**_fields(stored), parent=self._id(self._parents[row]))

    def place(self, identifier: str) -> Place:
        return self._places[self._row_of[identifier]]

    def row(self, identifier: str) -> int | None:
        return self._row_of.get(identifier)

    def parent(self, row: int) -> CommunityName | None:
        parent = self._parents[row]
        return None if parent < 0 else self._name(parent)

    def children(self, row: int) -> list[CommunityName]:
        """The largest first."""
        return [self._name(child) for child in self._order if self._parents[child] == row]

    def rows(self, collection: str | None, *levels: CommunityLevel) -> list[int]:
        """Of these levels, in the order of lists."""
        return [
            row
            for row in self._order
            if LEVELS[self._places[row].level] in levels
            and (collection is None or self._places[row].collection == collection)
        ]

    def of_entities(self, keys: Keys, level: CommunityLevel) -> Numbers:
        """(n_keys,) the row of the community that each entity is a member of at this level, or at the next coarser one
        that is listed (one is listed once where levels agree); -1 for none."""
        known, rows = self._rows_of_entities[level]
        if not len(known):
            return np.full(len(keys), -1)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[at] == keys, rows[at], -1)

    @cached_property
    def _rows_of_entities(self) -> dict[CommunityLevel, tuple[Keys, Numbers]]:
        """By level, the keys of the entities, ascending, and the rows of their communities there or coarser."""
        keys = id_keys(self._members["id"])
        rows = self._members["community"].to_numpy().astype(np.int64)
        level_of = np.array([place.level for place in self._places], dtype=np.int64)
        found: dict[CommunityLevel, tuple[Keys, Numbers]] = {}
        for number, level in enumerate(LEVELS):
            members = np.flatnonzero(level_of[rows] <= number)
            finest_first = members[np.lexsort((-level_of[rows[members]], keys[members]))]
            known, first = np.unique(keys[finest_first], return_index=True)
            found[level] = known, rows[finest_first[first]]
        return found

    def holds_word(self, stem: str) -> dict[int, float]:
        """{row: how much a word that begins so says of it}: 1 in its title or a name of its most central members, half
        in another member's or in its summary; without those that do not hold it."""
        begins = rf"(?:^|[^\pL\pN]){re.escape(stem)}"
        labels = pc.match_substring_regex(self._members["label"], begins, ignore_case=True)
        titles = pc.match_substring_regex(self._communities["title"], begins, ignore_case=True)
        members = np.flatnonzero(labels.to_numpy())
        communities = self._members["community"].to_numpy()[members]
        is_central = members - self._first_members[communities] < CENTRAL_MEMBERS
        sentences = pc.match_substring_regex(self._sentences["text"], begins, ignore_case=True)
        cited = self._sentences["community"].filter(sentences).to_pylist()
        held = dict.fromkeys([*cited, *communities.tolist()], OTHER_MEMBER)
        held |= dict.fromkeys(communities[is_central].tolist(), 1.0)
        return held | dict.fromkeys(np.flatnonzero(titles.to_numpy()).tolist(), 1.0)

    def members(self, row: int) -> list[CommunityMember]:
        """The most central first."""
        first, last = self._first_members[row], self._first_members[row + 1]
        part = self._members.slice(int(first), int(last - first)).combine_chunks()
        ids = [each for chunk in part["id"].chunks for each in spelled(chunk).to_pylist()]
        columns = (part[name].to_pylist() for name in ("label", "type", "strength"))
        return [
            CommunityMember(id=identifier, label=label, type=kind, strength=round(strength, 4))
            for identifier, label, kind, strength in zip(ids, *columns, strict=True)
        ]

    def _named(self, words: str) -> set[int]:
        found: set[int] | None = None
        for word in words.split():
            titles = pc.match_substring(self._communities["title"], word, ignore_case=True)
            labels = pc.match_substring(self._members["label"], word, ignore_case=True)
            rows = set(np.flatnonzero(titles.to_numpy()).tolist())
            rows |= set(self._members["community"].filter(labels).to_pylist())
            found = rows if found is None else found & rows
        return found or set()

    def _name(self, row: int) -> CommunityName:
        stored = self._communities.slice(row, 1).to_pylist()[0]
        return CommunityName(**{name: stored[name] for name in ("id", "level", "title", "size")})

    def _id(self, row: int) -> str | None:
        return None if row < 0 else self._ids[row]


def _fields(stored: dict[str, Any]) -> dict[str, Any]:
    named = {name: stored[name] for name in ("id", "collection", "level", "title", "type", "size")}
    return named | {"summary": [CommunitySentence(**sentence) for sentence in stored["summary"]]}
