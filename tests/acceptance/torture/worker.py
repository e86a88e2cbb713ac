"""`thalweg worker` under test: `python -m tests.acceptance.torture.worker worker`.

The environment variable TORTURE_FAULT names a call that is harmed, TORTURE_MUTATION a mistake that is put back. Tables
and graph are committed and maintained all the time, so that a kill meets that, too. Each snapshot of the graph is also
merged; where that differs from Kùzu's, the log says so.
"""

import os

from tests.acceptance.torture import faults, mutations

GRAPH_PAUSE_SECONDS = 0.5


def main() -> None:
    faults.install(faults.Faults.from_environment())
    from indexer.write import kuzu_compaction, lance, lance_maintenance
    from streams import stores
    from streams.agents import graph
    from tests.support.compared_graph import ComparedGraphWriter

    lance.MaintenanceParameters = lambda: lance_maintenance.MaintenanceParameters(  # type: ignore[assignment,misc]
        commits=8, fragments=6, busy_share=0.5, idle_seconds=0.2
    )
    kuzu_compaction.INDEX_BYTES, kuzu_compaction.MAX_SWELLING = 1, 0.01
    graph.BUSY_PAUSE_SECONDS = GRAPH_PAUSE_SECONDS
    ComparedGraphWriter.report = lambda _, difference: faults.report(difference)  # type: ignore[method-assign]
    stores.GraphWriter = ComparedGraphWriter  # type: ignore[misc]
    if mutation := os.environ.get(mutations.ENVIRONMENT):
        mutations.MUTATIONS[mutation]()
    from thalweg import main as thalweg

    thalweg()


if __name__ == "__main__":
    main()
