"""A few documents of a company, its entities, and readers of them."""

from collections.abc import Iterable, Sequence

from indexer.read.rows import ChunkRow
from indexer.schema import DocumentRow
from query_api.entities.catalogue import EntityCatalogue, EntityCatalogues
from query_api.entities.description import EntityDescriber
from query_api.entities.entity_paths import PathEnd
from query_api.index.curation_follower import Curation
from query_api.index.graph.view import GraphView
from schemas.ids import DocumentKey
from tests.support.fakes.text_stores import Page

COLLECTION = "company"
NEW_YEAR_MS, DAY_MS = 1_735_689_600_000, 86_400_000
TYPES = {
    "Team Petrel": "organisation",
    "The Team Petrel": "organisation",
    "Beacon": "product",
    "Harbor": "product",
    "Kafka": "product",
    "Maria Okafor": "person",
    "Okafor, Maria": "person",
    "Lisbon": "place",
    "3 May 2024": "time",
}
TEXTS = {
    "teams": "Team Petrel owns Beacon. Maria Okafor leads Team Petrel.",
    "beacon": "Beacon is a notification service. Beacon requires Kafka.",
    "harbor": "Harbor depends on Kafka. Okafor, Maria wrote Harbor in Lisbon.",
    "more": "The Team Petrel said more on 3 May 2024. Beacon requires Kafka.",
}
FACTS = {
    "teams": [("Team Petrel", "owns", "Beacon"), ("Maria Okafor", "leads", "Team Petrel")],
    "beacon": [("Beacon", "is_a", "notification service"), ("Beacon", "depends_on", "Kafka")],
    "harbor": [("Harbor", "depends_on", "Kafka")],
    "more": [("Beacon", "depends_on", "Kafka")],
}


def pages(names: Sequence[str] = tuple(TEXTS)) -> list[Page]:
    return [
        Page(
            name,
            name.title(),
            [[TEXTS[name]]],
            [each for each in TYPES if each in TEXTS[name]],
            facts=FACTS[name],
            collection=COLLECTION,
            types=TYPES,
        )
        for name in names
    ]


def view_of(names: Sequence[str] = tuple(TEXTS), made: Sequence[Page] = ()) -> GraphView:
    """The graph of these documents, and of what people `made`."""
    return GraphView.from_contributions([page.contribution() for page in [*pages(names), *made]], 0)


def catalogue_of(view: GraphView, curation: Curation | None = None) -> EntityCatalogue:
    return EntityCatalogues().of(view, curation or Curation())


def end_of(catalogue: EntityCatalogue, name: str) -> PathEnd:
    entity = catalogue.find(name, COLLECTION)
    assert entity is not None
    row = catalogue.row_of(entity.members[0])
    assert row is not None
    return "entity", row


def read_chunks(ids: Iterable[str]) -> dict[str, ChunkRow]:
    wanted = set(ids)
    return {
        identifier: ChunkRow(
            id=identifier,
            key=page.key,
            revision="1",
            ordinal=0,
            passage_id=page.passage_ids()[at],
            section=(),
            start=0,
            end=len(text),
            text=text,
        )
        for page in pages()
        for identifier, at, text in page.chunks()
        if identifier in wanted
    }


def read_documents(keys: Iterable[DocumentKey]) -> dict[DocumentKey, DocumentRow]:
    """Each a day younger than the one before, from 1 January 2025, at its number as the offset."""
    rows = {
        page.key: DocumentRow(page.key, 1, 0, number, NEW_YEAR_MS + number * DAY_MS)
        for number, page in enumerate(pages())
    }
    return {key: rows[key] for key in keys if key in rows}


def describer_of(view: GraphView, curation: Curation | None = None) -> EntityDescriber:
    return EntityDescriber(view, catalogue_of(view, curation), read_chunks, read_documents)
