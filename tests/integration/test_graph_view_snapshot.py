"""A graph view built from a snapshot shows what one built from the contributions shows, with a tail on top too."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings

from indexer.generation_folders import Generation
from indexer.graph.snapshots import read_graph
from indexer.graph.store import GraphStore
from query_api.index.graph.view import GraphView
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey
from tests.support.oracles.graph_views import Batch, everything, histories


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories())
def test_a_snapshot_with_its_tail_is_the_graph(tmp_path: Path, history: tuple[list[Contribution], list[Batch]]) -> None:
    base, batches = history
    made = [(DocumentKey(one.collection, one.document_id), one) for one in base]
    generation = Generation(tmp_path / f"{len(list(tmp_path.iterdir()))}", "g0001")
    generation.snapshots_dir.mkdir(parents=True)
    store = GraphStore.open(generation)
    store.apply(made, 0)
    for position, batch in enumerate(batches[:2], 1):
        store.apply(list(dict(batch).items()), position)
    snapshot = store.snapshot()
    view = GraphView.build(read_graph(generation.snapshots_dir, snapshot), snapshot.graph_position)
    assert view.position == len(batches[:2])
    for position, batch in enumerate(batches, 1):  # the tail begins before the snapshot's position: no harm
        view = view.with_changes(batch, position)
    state = dict(made)
    for batch in batches:
        state |= dict(batch)
    live = [contribution for contribution in state.values() if contribution is not None]
    assert everything(view) == everything(GraphView.from_contributions(live, 0))
