"""`python -m tests.bench.scale --passages 100000`: searches over HTTP at a size, beside LanceDB's own hybrid search.

Tables and graph are written by the project's writers in this process, without Kafka. Passages beyond the corpus are its
own with other names and words, and with vectors near those of their models; questions are encoded as ever. The last
line is one JSON object; `hybrid_ratio` compares two things measured in turn in this run.
"""

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from indexer.embedding.backends import load_encoder
from indexer.embedding.encoder import Encoder
from indexer.generation_folders import Generation
from query_api.index.graph.view import GraphView
from schemas.settings import EmbeddingSettings
from tests.bench.bench import commit, machine, say, spread, timed
from tests.bench.corpora import read_corpus
from tests.bench.growing import grown
from tests.bench.searching import LanceHybrid, Served, concurrent, first_and_last_hits, in_turn
from tests.bench.writing import open_stores

QUERIES = 120
SEARCHERS = 10


def graph_facts(generation: Generation) -> dict[str, Any]:
    """How long the newest snapshot of the graph takes to read, and what it holds."""
    from indexer.graph.snapshots import latest_snapshot, read_graph

    snapshot = latest_snapshot(generation.snapshots_dir)
    if snapshot is None:
        raise SystemExit("the graph has no snapshot")
    seconds, view = timed(lambda: GraphView.build(read_graph(generation.snapshots_dir, snapshot), 0))
    memory, by_column = view.memory(), Counter[str]()
    for part in view.segments:
        by_column.update(part.segment.memory())
    return {
        "graph_edges": memory.edges,
        "graph_bytes_per_edge": round(memory.bytes_per_edge, 1),
        "graph_bytes_per_edge_by_column": {
            name: round(size / memory.edges, 2) for name, size in by_column.most_common()
        },
        "graph_build_seconds_a_million_edges": round(seconds * 1e6 / memory.edges, 2),
    }


def measured(served: Served, plain: LanceHybrid, queries: list[str], encoder: Encoder) -> dict[str, Any]:
    """Everything that is asked over HTTP, and LanceDB in process beside it."""
    say("searching, one at a time ...")
    hybrid, lance = in_turn(served, plain, queries, encoder)
    say("streaming ...")
    firsts, lasts = first_and_last_hits(served, queries)
    say(f"{SEARCHERS} at once ...")
    alone, _ = concurrent(served, queries, 1)
    together, shares = concurrent(served, queries, SEARCHERS)
    p50, p95 = spread(hybrid).values()
    return {
        "hybrid_seconds": spread(hybrid),
        "lance_hybrid_seconds": spread(lance),
        "hybrid_ratio": round(p50 / spread(lance)["p50"], 3),
        "p95_over_p50": round(p95 / p50, 3),
        "first_hit_seconds": spread(firsts),
        "first_over_last_hit": round(spread(firsts)["p50"] / spread(lasts)["p50"], 3),
        "searches_per_second_alone": round(alone, 2),
        "searches_per_second_of_ten": round(together, 2),
        "ten_over_one": round(together / alone, 3),
        "least_served_over_mean": round(min(shares) * len(shares) / sum(shares), 3),
        "service_bytes": served.resident_bytes(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--corpus", type=Path, help="a BEIR-style folder; without it, the shipped sample")
    parser.add_argument("--documents", type=int, help="of the corpus, to be repeated; all when left out")
    parser.add_argument("--data-dir", type=Path, help="stores kept from one run to the next; made where there are none")
    parser.add_argument("--port", type=int, default=0, help="of the service; a free one when left out")
    given = parser.parse_args()
    corpus = read_corpus(given.corpus)
    encoder = load_encoder(EmbeddingSettings())
    with tempfile.TemporaryDirectory() as folder:
        data_dir = given.data_dir or Path(folder) / "data"
        documents = grown(corpus.documents[: given.documents], given.passages)
        seconds, generation = timed(lambda: open_stores(data_dir, documents, encoder))
        plain = LanceHybrid(generation, corpus.collection)
        facts = graph_facts(generation)
        queries = (corpus.queries * QUERIES)[:QUERIES]
        with Served.started(data_dir, given.port) as served:
            result = measured(served, plain, queries, encoder)
            result |= {"ready_seconds": round(served.ready_seconds, 2)}
    result |= facts | {
        "store_seconds": round(seconds, 1),
        "chunks": plain.chunks,
        "encoder": encoder.provider,
        "load_average": round(psutil.getloadavg()[0], 1),
        "machine": machine(),
        "commit": commit(),
        "corpus": corpus.name,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
