"""Documents that come and go, and people's edits before, between and after: one graph, however they are interleaved."""

import random

from query_api.entities.catalogue import EntityCatalogues
from query_api.graph_export import GraphExport, json_lines
from query_api.index.curation_follower import Curation, PlacedEvent, applied
from query_api.index.graph.view import GraphView
from schemas.graph_edits import (
    AnyEdit,
    DecisionEdit,
    EditKind,
    EntityEdit,
    GraphEdit,
    MergeEdit,
    decision_id,
)
from schemas.ids import DocumentKey, entity_id
from tests.support.fakes.text_stores import made_edge, made_node
from tests.unit.query_api.entities.organisation import COLLECTION, TEXTS, pages

BEACON, HARBOR, KAFKA, MARIA, PETREL, THE_PETREL = (
    entity_id(COLLECTION, name)
    for name in ("beacon", "harbor", "kafka", "okafor maria", "team petrel", "the team petrel")
)
EDITS: list[tuple[EditKind, str, AnyEdit | None]] = [
    ("merge", "m1", MergeEdit(entities=[BEACON, HARBOR, KAFKA])),
    ("decision", decision_id([BEACON, KAFKA]), DecisionEdit(decision="reject", entities=[BEACON, KAFKA])),
    ("decision", decision_id([THE_PETREL]), DecisionEdit(decision="split", entities=[THE_PETREL])),
    ("entity", MARIA, EntityEdit(name="Maria O.", type="person")),
    ("merge", "m1", None),  # after the rejection, which stays
    ("merge", "m2", MergeEdit(entities=[HARBOR, BEACON], name="The Platform")),
]
MADE = [
    made_node("runbook", "Runbook 2", "How to.", collection=COLLECTION),
    made_edge("runbook", "describes", BEACON, name="e1", collection=COLLECTION),
    made_edge(MARIA, "knows", "company/harbor", weight=0.5, name="e2", collection=COLLECTION),
]
GONE = ["more", "teams", "edge:e1"]


PAGES = [*pages(list(TEXTS)), *MADE]


def graph_after(steps: list[str], chance: random.Random) -> bytes:
    """The exported graph after these steps, each `edit`, `+document` or `-document`."""
    by_id = {page.id: page for page in PAGES}
    view, curation, offset = GraphView.empty(), Curation(), 0
    for position, step in enumerate(steps):
        if step == "edit":
            curation = applied(curation, [PlacedEvent(offset, GraphEdit(COLLECTION, *EDITS[offset]))])
            offset += 1
        else:
            made = by_id[step[1:]].contribution() if step[0] == "+" else None
            view = view.with_changes([(DocumentKey(COLLECTION, step[1:]), made)], position)
        if chance.random() < 0.2:
            EntityCatalogues().of(view, curation)  # looked at between
    catalogue = EntityCatalogues().of(view, curation)
    lines = b"".join(json_lines(GraphExport(view, catalogue, COLLECTION, lambda _: {}))).splitlines()
    return b"\n".join(sorted(lines))


def test_documents_added_and_deleted_among_edits_leave_what_never_adding_them_leaves() -> None:
    chance = random.Random(5)
    kept = [page.id for page in PAGES if page.id not in GONE]
    wanted = graph_after([*(f"+{name}" for name in kept), *["edit"] * len(EDITS)], chance)
    assert b'"label": "The Platform"' in wanted
    assert b'"label": "Maria O."' in wanted
    assert b'"label": "Runbook 2"' in wanted
    assert b'"knows"' in wanted
    assert b"describes" not in wanted
    for _ in range(10):
        steps = [f"+{page.id}" for page in PAGES] + ["edit"] * len(EDITS)
        chance.shuffle(steps)
        for name in GONE:
            steps.insert(chance.randrange(steps.index(f"+{name}") + 1, len(steps) + 1), f"-{name}")
        assert graph_after(steps, chance) == wanted, steps
