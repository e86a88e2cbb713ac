"""Entities listed: names that are one, types by vote, labels by use; whatever the order of arrival."""

from itertools import permutations

import msgspec

from query_api.entities.catalogue import EntityCatalogue, EntityCatalogues
from query_api.index.curation_follower import Curation, PlacedEvent, fold
from query_api.index.graph.view import GraphView
from schemas.graph_edits import DecisionEdit, EntityEdit, GraphEdit, MergeEdit, decision_id
from schemas.ids import DocumentKey, entity_id, normalise_name
from schemas.predicates import ALIAS
from tests.support.fakes.text_stores import Page
from tests.unit.query_api.entities.organisation import COLLECTION, TEXTS, catalogue_of, pages, view_of


def listed(catalogue: EntityCatalogue) -> list[tuple[str, str, int, int]]:
    """(label, type, mentions, names) in their order."""
    entities = [catalogue[row] for row in range(len(catalogue))]
    return [(each.label, each.type, each.mentions, len(each.members)) for each in entities]


def an_id(name: str) -> str:
    return entity_id(COLLECTION, normalise_name(name))


def said(*edits: MergeEdit | DecisionEdit | EntityEdit) -> Curation:
    events = []
    for offset, edit in enumerate(edits):
        if isinstance(edit, EntityEdit):
            event = GraphEdit(COLLECTION, "entity", an_id("Beacon"), edit)
        elif isinstance(edit, MergeEdit):
            event = GraphEdit(COLLECTION, "merge", f"m{offset}", edit)
        else:
            event = GraphEdit(COLLECTION, "decision", decision_id(list(edit.entities)), edit)
        events.append(PlacedEvent(offset, event))
    return fold(events)


def test_names_that_are_one_are_one_entity_shown_as_it_is_written_most() -> None:
    assert listed(catalogue_of(view_of())) == [
        ("Beacon", "product", 4, 1),
        ("Team Petrel", "organisation", 4, 2),  # "The Team Petrel" once more
        ("Kafka", "product", 3, 1),
        ("Harbor", "product", 2, 1),
        ("Maria Okafor", "person", 2, 2),
        ("3 May 2024", "time", 1, 1),
        ("Lisbon", "place", 1, 1),
    ]


def test_the_order_of_arrival_and_what_was_deleted_do_not_show() -> None:
    wanted = listed(catalogue_of(view_of(["teams", "beacon", "harbor"])))
    for order in permutations(TEXTS):
        view = GraphView.empty()
        for position, page in enumerate(pages(order)):
            view = view.with_changes([(page.key, page.contribution())], position)
        view = view.with_changes([(DocumentKey(COLLECTION, "more"), None)], len(TEXTS))
        assert listed(catalogue_of(view)) == wanted


def test_entities_are_found_by_a_word_of_the_name_by_type_and_by_any_of_their_names() -> None:
    catalogue = catalogue_of(view_of())

    def found(prefix: str, entity_type: str | None = None, collection: str | None = COLLECTION) -> list[str]:
        rows = catalogue.rows(collection=collection, prefix=prefix, entity_type=entity_type)
        return [catalogue[row].label for row in rows.tolist()]

    assert found("pet") == ["Team Petrel"]
    assert found("OKA") == ["Maria Okafor"]
    assert found("", "person") == ["Maria Okafor"]
    assert found("b", "person") == []
    assert found("beacon", collection="elsewhere") == []
    assert found("--") == []
    assert len(found("", collection=None)) == 6
    assert found("", "time") == ["3 May 2024"]
    by_other_name = catalogue.find("Okafor, Maria", COLLECTION)
    assert by_other_name is not None
    assert catalogue.find(an_id("maria okafor"), "whatever") == by_other_name
    assert catalogue.find("nobody", COLLECTION) is None
    assert catalogue.find("f" * 32, COLLECTION) is None


def test_pages_follow_each_other_without_a_gap() -> None:
    catalogue = catalogue_of(view_of())
    rows = catalogue.rows(collection=None, prefix="", entity_type=None)
    assert len(rows) == 6
    for at in range(len(rows)):
        last, weight = catalogue[int(rows[at])], float(catalogue.weights[rows[at]])
        following = catalogue.after(rows, weight, last.name, last.members[0])
        assert following.tolist() == rows[at + 1 :].tolist()


def test_what_little_speaks_for_is_left_out_by_its_salience() -> None:
    catalogue = catalogue_of(view_of())
    saliences = [catalogue[row].salience for row in catalogue.rows(collection=None, prefix="", entity_type=None)]
    assert saliences == sorted(saliences, reverse=True)
    least = saliences[2]
    shown = catalogue.rows(collection=None, prefix="", entity_type=None, min_salience=least - 0.001)
    assert [catalogue[row].salience for row in shown] == [each for each in saliences if each >= least]


def test_people_merge_split_rename_and_retype() -> None:
    view = view_of()
    merged = catalogue_of(view, said(MergeEdit(entities=[an_id("Beacon"), an_id("Harbor")], name="Beacon Harbor")))
    assert listed(merged)[0] == ("Beacon Harbor", "product", 6, 2)
    apart = catalogue_of(view, said(DecisionEdit(decision="split", entities=[an_id("The Team Petrel")])))
    assert {("Team Petrel", 3), ("The Team Petrel", 1)} <= {
        (label, mentions) for label, _, mentions, _ in listed(apart)
    }
    renamed = catalogue_of(view, said(EntityEdit(name="Beacon service", type="service")))
    assert listed(renamed)[0] == ("Beacon service", "service", 4, 1)
    rows = renamed.rows(collection=None, prefix="", entity_type="service")
    assert [renamed[row].label for row in rows.tolist()] == ["Beacon service"]


def test_a_graph_without_entities_has_an_empty_catalogue() -> None:
    assert len(catalogue_of(GraphView.empty())) == 0


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    catalogue = catalogue_of(view_of())
    rows = catalogue.rows(collection=None, prefix="", entity_type=None)
    assert catalogue.sample(rows, 3, 1).tolist() == catalogue.sample(rows, 3, 1).tolist()
    assert sorted(catalogue.sample(rows, 100, 2).tolist()) == sorted(rows.tolist())


def test_a_catalogue_is_reused_for_a_while_where_it_may_be_older() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0  # building takes a second
        return now[0]

    catalogues = EntityCatalogues(clock)
    first = catalogues.of(view_of(["teams"]), Curation())
    newer = view_of()
    assert catalogues.of(newer, Curation(), may_be_older=True) is first
    assert len(catalogues.of(newer, Curation())) > len(first)
    second = catalogues.of(newer, Curation(), may_be_older=True)
    now[0] += 100.0
    assert catalogues.of(view_of(["teams"]), Curation(), may_be_older=True) is not second


def test_a_type_that_documents_agree_on_too_little_is_not_shown() -> None:
    pages = [
        Page(name, name, [["Heron"]], ["Heron"], collection=COLLECTION, types={"Heron": kind})
        for name, kind in (("one", "person"), ("two", "place"), ("three", "organisation"), ("four", "thing"))
    ]

    def type_of(names: int) -> str:
        catalogue = catalogue_of(GraphView.from_contributions([page.contribution() for page in pages[:names]], 0))
        return catalogue[0].type

    assert type_of(1) == "person"
    assert type_of(4) == "thing"  # a quarter each


def test_documents_that_do_not_know_a_type_leave_it_to_the_others() -> None:
    kinds = ["person", "person", "person", "thing", "thing", "place"]
    pages = [
        Page(str(at), str(at), [["Heron"]], ["Heron"], collection=COLLECTION, types={"Heron": kind})
        for at, kind in enumerate(kinds)
    ]
    assert catalogue_of(GraphView.from_contributions([page.contribution() for page in pages], 0))[0].type == "person"


def test_alias_that_names_only_one_thing_is_left_out() -> None:
    page = Page("a", "A", [["Tern"]], ["Tern"], facts=[("Tern", ALIAS, "Sterna")], types={"Tern": "concept"})
    made = page.contribution()
    stated = [msgspec.structs.replace(each, roles=each.roles[:1]) for each in made.statements]
    others = Page("b", "B", [["Tern"]], ["Tern"], facts=[("Tern", ALIAS, "Sterna")]).contribution()
    view = GraphView.from_contributions([msgspec.structs.replace(made, statements=stated), others], 0)
    assert [each.name for each in EntityCatalogues().of(view, Curation()).named(page.collection)] == ["Tern"]
