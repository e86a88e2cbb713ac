"""The live graph: changes applied once, a new base caught up with what came meanwhile, never a step back."""

from query_api.index.generation import GraphChange, LiveGraph
from query_api.index.graph.view import GraphView
from schemas.ids import DocumentKey
from tests.support.fakes.text_stores import Page


def page(name: str, text: str = "It is here.") -> Page:
    return Page(name, name.title(), [[text]], [name.title()])


def change(offset: int, name: str, *, gone: bool = False) -> GraphChange:
    return GraphChange(offset, page(name).key, None if gone else page(name).contribution())


def holds(graph: LiveGraph, *names: str) -> bool:
    found = {name for name in ("one", "two", "three") if graph.view.document(DocumentKey("wiki", name)) is not None}
    return found == set(names)


def view_of(position: int, *names: str) -> GraphView:
    return GraphView.from_contributions([page(name).contribution() for name in names], position)


def test_changes_are_applied_up_to_their_offset() -> None:
    graph = LiveGraph(GraphView.empty())
    assert graph.apply([change(0, "one"), change(1, "two")], 1)
    assert graph.view.position == 1
    assert holds(graph, "one", "two")
    assert graph.apply([change(2, "one", gone=True)], 2)
    assert holds(graph, "two")


def test_what_comes_again_changes_nothing() -> None:
    graph = LiveGraph(GraphView.empty())
    graph.apply([change(0, "one"), change(1, "one", gone=True)], 1)
    assert not graph.apply([change(0, "one")], 0)
    assert graph.apply([change(0, "one"), change(1, "one", gone=True), change(2, "two")], 2)
    assert holds(graph, "two")


def test_records_that_could_not_be_read_still_move_the_position() -> None:
    graph = LiveGraph(GraphView.empty())
    assert graph.apply([], 5)
    assert graph.view.position == 5


def test_a_new_base_is_caught_up_with_what_came_after_it() -> None:
    graph = LiveGraph(GraphView.empty())
    graph.apply([change(0, "one"), change(1, "two")], 1)

    def build() -> GraphView:
        base = view_of(1, "one", "two")
        graph.apply([change(2, "one", gone=True), change(3, "three")], 3)  # while the base is being built
        return base

    graph.rebase(build)
    assert graph.view.position == 3
    assert graph.base_position == 1
    assert holds(graph, "two", "three")
    assert graph.changes_since_base == 2


def test_a_base_newer_than_the_tail_takes_its_place() -> None:
    graph = LiveGraph(view_of(1, "one"))
    graph.apply([change(2, "two")], 2)
    graph.rebase(lambda: view_of(9, "three"))
    assert graph.view.position == graph.base_position == 9
    assert holds(graph, "three")
    assert graph.changes_since_base == 0


def test_an_older_base_is_left_aside() -> None:
    graph = LiveGraph(view_of(5, "one"))
    graph.rebase(lambda: view_of(3, "two"))
    assert graph.view.position == 5
    assert holds(graph, "one")


def test_a_view_in_use_stays_as_it_is() -> None:
    graph = LiveGraph(view_of(0, "one"))
    before = graph.view
    graph.apply([change(1, "one", gone=True)], 1)
    assert before.document(DocumentKey("wiki", "one")) is not None
    assert before.position == 0
