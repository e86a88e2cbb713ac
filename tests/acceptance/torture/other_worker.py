"""Stores retrievals as a worker on another machine would that was given the same partitions.

`python -m tests.acceptance.torture.other_worker DATA_DIR SERVERS PREFIX SECONDS`
"""

import os
import sys
import time
from pathlib import Path

from indexer.embedding.encoder import HashingEncoder
from indexer.errors import TransientStoreError
from indexer.generation_folders import current_generation
from indexer.write.lance_writer import LanceWriter
from schemas.provenance import Retrieval, decode_provenance
from schemas.topics import TopicNames
from tests.acceptance.torture import mutations
from tests.support.kafka import read_all

BATCH = 5


def main(data_dir: Path, servers: str, prefix: str, seconds: float) -> None:
    if mutation := os.environ.get(mutations.ENVIRONMENT):
        mutations.MUTATIONS[mutation]()
    generation = current_generation(data_dir)
    assert generation is not None
    writer = LanceWriter.open(generation, HashingEncoder.dimension)
    deadline = time.monotonic() + seconds
    done: set[str] = set()
    while time.monotonic() < deadline:
        decoded = [decode_provenance(record.value) for record in read_all(servers, TopicNames(prefix).provenance)]
        fresh = [each for each in decoded if isinstance(each, Retrieval) and each.retrieval_id not in done]
        for start in range(0, len(fresh), BATCH):
            batch = [(each.retrieval_id, each) for each in fresh[start : start + BATCH]]
            while True:
                try:
                    writer.add_retrievals(batch)
                    break
                except TransientStoreError:  # another was first
                    continue
            done |= {identifier for identifier, _ in batch}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]))
