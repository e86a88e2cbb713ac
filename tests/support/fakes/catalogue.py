"""A catalogue of entities in memory."""

from collections.abc import Iterable, Iterator

from indexer.resolution.candidates import NamedEntity
from schemas.ids import entity_id, normalise_name


class NamedEntities:
    """A catalogue of what it is given: each entity has one name."""

    def __init__(self, entities: Iterable[NamedEntity]) -> None:
        self._by_id = {each.id: each for each in entities}

    def named(self, collection: str) -> Iterator[NamedEntity]:
        yield from (each for each in self._by_id.values() if each.collection == collection)

    def find(self, identifier: str, collection: str) -> NamedEntity | None:
        return self._by_id.get(identifier) or self._by_id.get(entity_id(collection, normalise_name(identifier)))
