"""`thalweg worker` under test: `python -m tests.acceptance.torture.worker worker`.

The environment variable TORTURE_FAULT names a call that is harmed, TORTURE_MUTATION a mistake that is put back. Tables
and graph are committed and maintained all the time, so that a kill meets that, too.
"""

import os

from tests.acceptance.torture import faults, mutations
from tests.support import constants

BUSY = {
    "streams.worker_agents.COMMIT_DOCUMENTS": 10,
    "streams.worker_agents.GATHER_SECONDS": 0,
    "streams.worker_agents.LATER_BATCH_WAIT_SECONDS": 0.1,
    "streams.worker_upkeep.SNAPSHOT_IDLE_SECONDS": 0.2,
    "streams.worker_upkeep.SNAPSHOT_MIN_SECONDS": 0.5,
    "streams.worker_upkeep.SNAPSHOT_SHARE": 0.5,
    "streams.faust_app.COMMIT_INTERVAL_SECONDS": 0.2,
    "streams.runtime.maintenance.MAINTENANCE_SECONDS": 0.3,
}
"""Small commits, many snapshots, maintenance all the time: so that faults meet each of them."""


def main() -> None:
    faults.install(faults.Faults.from_environment())
    from indexer.write import lance_maintenance, lance_writer

    lance_writer.MaintenanceParameters = lambda: lance_maintenance.MaintenanceParameters(  # type: ignore[assignment,misc]
        commits=8, fragments=6, busy_share=0.5, idle_seconds=0.2
    )
    constants.change(BUSY)
    if mutation := os.environ.get(mutations.ENVIRONMENT):
        mutations.MUTATIONS[mutation]()
    from thalweg import main as thalweg

    thalweg()


if __name__ == "__main__":
    main()
