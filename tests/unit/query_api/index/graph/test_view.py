"""The graph in memory: an overlay shows exactly what a graph built from scratch shows, whatever came in which order."""

from itertools import permutations

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from query_api.index.graph.identifiers import entity_key_of
from query_api.index.graph.view import GraphView
from schemas.graph_delta import DENIAL, AboutEdge, ChunkNode, Contribution, LinkEdge, MentionEdge, SectionNode
from schemas.ids import DocumentKey, chunk_id, passage_id, section_id
from tests.support.fakes.text_stores import Page
from tests.support.oracles.graph_views import Batch, everything, histories
from tests.unit.query_api.encyclopedia import encyclopedia


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories())
def test_base_and_overlay_show_what_a_graph_built_from_scratch_shows(
    history: tuple[list[Contribution], list[Batch]],
) -> None:
    base, batches = history
    state = {DocumentKey(one.collection, one.document_id): one for one in base}
    view = GraphView.from_contributions(base, 0)
    before = everything(view)
    first = view
    for position, batch in enumerate(batches, 1):
        view = view.with_changes(batch, position)
        for key, contribution in batch:
            state.pop(key, None)
            if contribution is not None:
                state[key] = contribution
    scratch = everything(GraphView.from_contributions(state.values(), 0))
    assert everything(view) == scratch
    assert everything(first) == before, "a view that others read must not change"
    assert view.position == len(batches)


def document(identifier: str, *names: str, title: str = "Untitled") -> Contribution:
    key = DocumentKey("a", identifier)
    return Contribution(
        collection="a",
        document_id=identifier,
        revision="1",
        title=title,
        sections=[SectionNode(section_id(key, [], 0), "", 0, -1)],
        chunks=[ChunkNode(chunk_id(key, [], "text", 0), passage_id(key, [], "text", 0), 0, 0)],
        about=[AboutEdge(title.casefold(), title, 1.0)],
        mentions=[MentionEdge(0, name, name, "thing", 1, [0]) for name in names],
        statements=[],
        edges=[],
        links=[],
    )


def test_many_single_changes_leave_few_segments_and_the_same_base() -> None:
    view = GraphView.from_contributions([document(f"base {n}", "x") for n in range(50)], 0)
    base = view._segments[0].segment
    for number in range(100):
        change = document(f"d{number}", "x")
        view = view.with_changes([(DocumentKey("a", f"d{number}"), change)], number + 1)
    assert view._segments[0].segment is base
    assert len(view._segments) <= 9
    assert view.n_documents == 150
    assert view.passage_frequencies(np.array([entity_key_of("a", "x")], dtype=np.uint64)).tolist() == [150]


def test_a_mention_finds_its_title_whichever_came_first() -> None:
    mention = GraphView.from_contributions([document("early", "the late one")], 0)
    entity = entity_key_of("a", "the late one")
    assert len(mention.about(np.array([entity], dtype=np.uint64)).document) == 0
    both = mention.with_changes([(DocumentKey("a", "late"), document("late", title="The Late One"))], 1)
    about = both.about(np.array([entity], dtype=np.uint64))
    assert [both.title(number) for number in about.document.tolist()] == ["The Late One"]
    assert both.labels({entity: "the late one"}) == {entity: "The Late One"}


def test_a_name_is_gone_with_the_last_document_that_names_it() -> None:
    view = GraphView.from_contributions([document("one", "rare name")], 0)
    assert view.entity("a", "rare name") is not None
    assert view.entity("b", "rare name") is None
    gone = view.with_changes([(DocumentKey("a", "one"), None)], 1)
    assert gone.entity("a", "rare name") is None
    assert gone.entities_named(["rare name"]) == {}
    assert gone.document(DocumentKey("a", "one")) is None


def test_memory_counts_each_edge_once() -> None:
    names = [f"name {number}" for number in range(200)]
    view = GraphView.from_contributions([document(f"d{n}", *names[n % 100 : n % 100 + 60]) for n in range(300)], 0)
    memory = view.memory()
    assert memory.edges == 300 * (60 + 1 + 2), "mentions, the title, chunk to passage to document"
    assert memory.bytes_per_edge == memory.bytes / memory.edges
    assert memory.bytes_per_edge <= 12
    assert sum(sum(part.segment.memory().values()) for part in view.segments) == memory.bytes - 300, (
        "all but a byte a document: whether it is deleted"
    )


def test_an_edge_of_an_encyclopedia_takes_24_bytes_at_most() -> None:
    memory = GraphView.from_contributions(encyclopedia(400), 0).memory()
    assert memory.edges > 30_000
    assert memory.bytes_per_edge <= 24


def test_a_large_graph_reads_as_it_was_built() -> None:
    documents = [
        document(f"d{n}", *(f"name {m % 7_000}" for m in range(n, n + 12)), title=f"T {n}") for n in range(6_000)
    ]
    view = GraphView.from_contributions(documents, 0)
    entities = [entity_key_of("a", f"name {n}") for n in range(0, 6_012, 50)]
    assert view.entity_names(entities) == {key: ("a", f"name {50 * at}") for at, key in enumerate(entities)}
    numbers = {view.document(DocumentKey("a", f"d{n}")): f"T {n}" for n in range(0, 6_000, 100)}
    assert {number: view.title(number) for number in numbers if number is not None} == numbers
    key = np.array([entity_key_of("a", "name 100")], dtype=np.uint64)
    passages = view.mention_edges_of(key).passage
    naming = [view.document_key(number).document_id for number in view.documents_of_passages(passages).tolist()]
    assert sorted(naming) == sorted(f"d{n}" for n in range(89, 101))
    fewer = view.with_changes([(DocumentKey("a", f"d{n}"), None) for n in range(89, 100)], 1)
    assert fewer.passage_frequencies(key).tolist() == [1]


def test_an_empty_view_answers_with_nothing() -> None:
    view = GraphView.empty()
    assert view.position == -1
    assert view.memory().edges == 0
    assert view.document(DocumentKey("a", "x")) is None
    assert view.entities_named(["x"]) == {}
    assert everything(view) == everything(GraphView.from_contributions([], 5))


def test_ids_that_are_no_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="32 hex digits"):
        GraphView.empty().chunks(["chunk-1"])


def test_documents_that_are_there_and_those_of_passages_are_told_across_base_and_overlay() -> None:
    view = GraphView.from_contributions([document(name, "x") for name in "abc"], 0)
    view = view.with_changes([(DocumentKey("a", "b"), None), (DocumentKey("a", "d"), document("d", "x"))], 1)
    live = view.live_documents()
    assert {view.document_key(number).document_id for number in live.tolist()} == {"a", "c", "d"}
    passages = np.array([view.passages_of_document(number)[0] for number in reversed(live.tolist())])
    assert view.documents_of_passages(passages).tolist() == live.tolist()[::-1]
    assert GraphView.empty().live_documents().tolist() == []


def linking(identifier: str, *targets: str) -> Contribution:
    links = [LinkEdge(0, "a", target, 1.0) for target in targets]
    return msgspec.structs.replace(document(identifier), links=links)


@pytest.mark.parametrize(
    ("there", "target", "found"),
    [
        (["guide/setup.md"], "guide/setup.html", "guide/setup.md"),
        (["guide/setup.md"], "guide/setup", "guide/setup.md"),
        (["guide/setup.md"], "Guide/Setup/", "guide/setup.md"),
        (["guide/setup.html"], "guide/setup.md", "guide/setup.html"),
        (["guide/index.md"], "guide", "guide/index.md"),
        (["guide/README.md"], "guide/index.html", "guide/README.md"),
        (["guide/setup.md", "guide/setup.html"], "guide/setup.html", "guide/setup.html"),
        (["guide/setup.html", "guide/setup.md"], "guide/setup", "guide/setup.md"),
        (["guide/setup/index.md", "guide/setup.md"], "guide/setup.html", "guide/setup.md"),
        (["guide/setup.md"], "guide/setup.png", None),
        (["guide/setup.py"], "guide/setup.html", None),
        (["guide/setup.md"], "setup.md", None),
        (["guide/setup.mdx"], "guide/setup", "guide/setup.mdx"),
        (["R\u00e9sum\u00e9.md"], "Re\u0301sume\u0301.md", "R\u00e9sum\u00e9.md"),
        (["U\u0308bung.md"], "\u00fcbung", "U\u0308bung.md"),
        (["low/deep/Pump.md"], "wiki:pump", "low/deep/Pump.md"),
        (["low/deep/Pump.md", "far/Pump.md"], "wiki:Pump.md", "far/Pump.md"),
        (["low/Pump station.md"], "wiki:Pump", None),
    ],
)
def test_a_link_leads_to_the_document_that_is_there_in_whatever_order_they_come(
    there: list[str], target: str, found: str | None
) -> None:
    """Both ways, and to nothing once it is gone."""
    for order in permutations(["from.md", *there]):
        view = GraphView.empty()
        for position, identifier in enumerate(order):
            change = linking(identifier, target) if identifier == "from.md" else linking(identifier)
            view = view.with_changes([(DocumentKey("a", identifier), change)], position)
        assert linked(view) == ({("from.md", found)} if found else set()), order
    if found:
        gone = view.with_changes([(DocumentKey("a", found), None)], 9)
        assert found not in {end for link in linked(gone) for end in link}


def linked(view: GraphView) -> set[tuple[str, str]]:
    """(from, to) of all links, found from both ends."""
    documents = view.live_documents()
    passages = np.array([passage for each in documents.tolist() for passage in view.passages_of_document(each)])
    both = [
        {
            (view.document_key(view.document_of_passage(passage)).document_id, view.document_key(to).document_id)
            for passage, to in zip(links.passage.tolist(), links.document.tolist(), strict=True)
        }
        for links in (view.links_from(passages), view.links_to(documents))
    ]
    assert both[0] == both[1]
    return both[0]


def test_what_is_only_an_entity_joins_no_passages() -> None:
    typed = [MentionEdge(0, "ann", "Ann", "", 1, [0], "person", 0.9), MentionEdge(0, "x", "x", "thing", 1, [0])]
    view = GraphView.from_contributions([msgspec.structs.replace(document("one"), mentions=typed)], 0)
    entities = np.array([entity_key_of("a", "ann"), entity_key_of("a", "x")], dtype=np.uint64)
    assert view.passage_frequencies(entities).tolist() == [0, 1]
    assert view.entity("a", "ann") is not None


def test_denial_is_read_apart_from_statements() -> None:
    stated = Page("a", "A", [["x"]], facts=[("Ada", "uses", "Engine"), ("Ada", "uses", "Loom")]).contribution()
    denied = msgspec.structs.replace(stated.statements[0], extractor=DENIAL)
    made = msgspec.structs.replace(stated, statements=[denied, stated.statements[1]])
    view = GraphView.from_contributions([made], 0)
    ada = np.array([entity_key_of("wiki", "ada")], dtype=np.uint64)
    expected = [role.name for role in stated.statements[1].roles]
    for found in (view.statements_with(ada), view.statements_in(np.arange(1))):
        assert [[role.surface.casefold() for role in each.roles] for each in found] == [expected]
    (part,) = view.segments
    numbers = part.statements_in("wiki", denied=True)
    assert [each.extractor for each in part.statements(np.zeros_like(numbers), numbers, denied=True)] == [DENIAL]
    assert (len(numbers), len(part.statements_in("wiki")), len(part.statements_in("other"))) == (1, 1, 0)


def test_document_that_explains_a_concept_is_not_named_by_it() -> None:
    about = [AboutEdge("tides", "Tides", 1.0), AboutEdge("sluice", "sluice", 0.6)]
    view = GraphView.from_contributions([msgspec.structs.replace(document("one", "sluice"), about=about)], 0)
    sluice = np.array([entity_key_of("a", "sluice")], dtype=np.uint64)
    assert len(view.about(sluice).document) == 0
    assert view.about(sluice, least=0.0).weight.tolist() == [np.float32(0.6)]
    assert len(view.about_of(np.array([0])).entity) == 1
    assert len(view.about_of(np.array([0]), least=0.0).entity) == 2
