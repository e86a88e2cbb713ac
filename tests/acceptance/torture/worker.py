"""`thalweg worker` under test: `python -m tests.acceptance.torture.worker worker`.

The environment variable TORTURE_FAULT names a call that is harmed, TORTURE_MUTATION a mistake that is put back. Tables
and graph are committed and maintained all the time, so that a kill meets that, too.
"""

import os

from tests.acceptance.torture import faults, mutations


def main() -> None:
    faults.install(faults.Faults.from_environment())
    from indexer.write import lance, lance_maintenance

    lance.MaintenanceParameters = lambda: lance_maintenance.MaintenanceParameters(  # type: ignore[assignment,misc]
        commits=8, fragments=6, busy_share=0.5, idle_seconds=0.2
    )
    if mutation := os.environ.get(mutations.ENVIRONMENT):
        mutations.MUTATIONS[mutation]()
    from thalweg import main as thalweg

    thalweg()


if __name__ == "__main__":
    main()
