"""A small course: documents of towns, of a kitchen and of hostile text, and what a study set is made of there."""

from collections.abc import Sequence

from query_api.entities.catalogue import EntityCatalogues
from query_api.entities.description import EntityDescriber
from query_api.index.curation_follower import Curation
from query_api.study.material import StudyMaterial
from schemas.ids import DocumentKey
from tests.support.fakes.text_stores import Page, made_edge, made_node, world

COLLECTION = "course"
TYPES = dict.fromkeys(("Lisbon", "Porto", "Braga", "Faro", "Evora", "Portugal", "Tagus"), "place") | {
    "Ada Lovelace": "person",
    "Alan Turing": "person",
    "Grace Hopper": "person",
    "Emmy Noether": "person",
    "Barbara Liskov": "person",
    "1815": "time",
    "1912": "time",
    "1906": "time",
    "1882": "time",
    "Bletchley Park": "organisation",
    "yeast": "concept",
    "dough": "concept",
    "bread": "concept",
    "oven": "concept",
}
TEXTS = {
    "lisbon": "Lisbon is the capital of Portugal and lies on the river Tagus. It is old. "
    "This town has seven hills and many trams.",
    "porto": "Porto is a harbour in the north with six bridges and a famous wine.",
    "braga": "Braga is an old seat of archbishops with a long stair to a church.",
    "faro": "Faro is a fishing harbour in the south beside a lagoon of salt.",
    "evora": "Evora is a walled seat of kings among cork oaks and old stones.",
    "ada": "Ada Lovelace was born in London in 1815 and wrote the first program.",
    "alan": "Alan Turing worked at Bletchley Park during the war and was born in 1912.",
    "grace": "Grace Hopper was born in New York in 1906 and wrote the first compiler.",
    "emmy": "Emmy Noether was born in Erlangen in 1882 and proved a theorem on symmetry.",
    "barbara": "Barbara Liskov designed a language with abstract types at a university.",
    "kitchen": "A dough requires yeast and warm water. Bakers may leave dough in the oven for 40 minutes each day. "
    "Then bread requires dough.",
}
FACTS = {
    "lisbon": [("Lisbon", "is_a", "capital"), ("Lisbon", "capital_of", "Portugal")],
    "alan": [("Alan Turing", "works_for", "Bletchley Park")],
    "kitchen": [("dough", "requires", "yeast"), ("bread", "requires", "dough")],
}


def page(name: str, text: str, facts: Sequence[tuple[str, str, str]] = ()) -> Page:
    names = [each for each in TYPES if each in text]
    return Page(name, name.title(), [[text]], names, facts, collection=COLLECTION, types=TYPES)


def course(*more: Page) -> list[Page]:
    return [*(page(name, text, FACTS.get(name, ())) for name, text in TEXTS.items()), *more]


def curriculum() -> list[Page]:
    """Nodes and edges that people made."""
    nodes = [made_node(each, each.title(), collection=COLLECTION) for each in ("sets", "maps", "limits")]
    edges = [
        made_edge("sets", "prerequisite_of", "maps", collection=COLLECTION),
        made_edge("limits", "requires", "maps", collection=COLLECTION),
    ]
    return [*nodes, *edges]


def material_of(pages: Sequence[Page], document: str | None = None, entity: str | None = None) -> StudyMaterial:
    snapshot, *_ = world(pages)
    catalogue = EntityCatalogues().of(snapshot.graph, Curation())
    describer = EntityDescriber(snapshot.graph, catalogue, snapshot.text.chunks, snapshot.text.documents)
    return StudyMaterial(
        snapshot,
        catalogue,
        describer,
        COLLECTION,
        None if document is None else snapshot.graph.document(DocumentKey(COLLECTION, document)),
        None if entity is None else catalogue.find(entity, COLLECTION),
    )
