"""Communities kept up under change, against communities found again.

    python -m tests.bench.knowledge_graph.communities [FOLDER] [--rounds 50]

1. 100,000 nodes with planted communities: the time of an update after 100 changed documents (2,000 edges go, 2,000
   come) over that of a full run, and the modularity of both.
2. FOLDER holds `leads.jsonl.gz`: {_id, title, text, metadata: {links, categories}} a line. A tenth is left out at
   first; in each round 2 % of what is there goes and as much comes. The modularity of the communities that were
   never found again, over that of a full run; and the normalised mutual information of a full run on all with the top
   categories, beside that of Leiden on the links alone.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.communities.entity_graph import EntityGraph, Pairs, entity_graphs
from indexer.communities.partition import LEVELS, Former, Partition, full_partition, updated_partition
from indexer.graph.contributions import tables_of
from query_api.evaluation.category_communities import (
    Article,
    articles_of,
    community_report,
    prepared_articles,
    read_lines,
)
from schemas.graph_delta import Contribution

NODES, PLANTED, EDGES, CHANGED_EDGES = 100_000, 1_000, 500_000, 2_000
INSIDE = 0.7  # of the edges
UPDATES = 5
LEFT_OUT, CHANGED = 0.1, 0.02


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("folder", type=Path, nargs="?")
    asked.add_argument("--rounds", type=int, default=50)
    given = asked.parse_args()
    report: dict[str, Any] = {"planted": planted()}
    if given.folder is not None:
        file = articles_of(given.folder)
        if file is None:
            asked.error("The folder has no leads.jsonl.")
        articles = prepared_articles(read_lines(file), lambda _: None)
        report |= {"kept up": kept_up(articles, given.rounds), "categories": community_report(articles)["by_level"]}
    print(json.dumps(report, indent=2))


def planted() -> dict[str, Any]:
    chance = np.random.default_rng(0)
    groups = chance.integers(0, PLANTED, NODES)
    order = np.argsort(groups, kind="stable")
    begins = np.searchsorted(groups[order], np.arange(PLANTED + 1))

    def ends_of(sources: NDArray[np.int64]) -> NDArray[np.int64]:
        group = groups[sources]
        sizes = begins[group + 1] - begins[group]
        inside = order[begins[group] + (chance.random(len(sources)) * sizes).astype(np.int64)]
        return np.where(chance.random(len(sources)) < INSIDE, inside, chance.integers(0, NODES, len(sources)))

    sources = chance.integers(0, NODES, EDGES)
    targets, weights = ends_of(sources), chance.random(EDGES) + 0.1
    graph = made_graph(sources, targets, weights)
    found, full_seconds = timed(lambda: full_partition(graph))
    shares, ratios = [], []
    for _ in range(UPDATES):
        kept = np.ones(len(sources), dtype=bool)
        kept[chance.choice(len(sources), CHANGED_EDGES, replace=False)] = False
        further = chance.integers(0, NODES, CHANGED_EDGES)
        sources = np.concatenate([sources[kept], further])
        targets = np.concatenate([targets[kept], ends_of(further)])
        weights = np.concatenate([weights[kept], chance.random(CHANGED_EDGES) + 0.1])
        newer = made_graph(sources, targets, weights)
        former = Former(graph, found)
        updated, seconds = timed(lambda newer=newer, former=former: updated_partition(newer, former))
        shares.append(round(seconds / full_seconds, 3))
        ratios.append(lowest_ratio(updated, full_partition(newer)))
        graph, found = newer, updated
    return {"full_seconds": round(full_seconds, 2), "update_over_full": shares, "lowest_modularity_ratio": min(ratios)}


def made_graph(sources: NDArray[np.int64], targets: NDArray[np.int64], weights: NDArray[np.float64]) -> EntityGraph:
    differ = sources != targets
    low, high = np.minimum(sources, targets)[differ], np.maximum(sources, targets)[differ]
    codes, which = np.unique(low * NODES + high, return_inverse=True)
    pairs = Pairs(codes // NODES, codes % NODES, np.bincount(which, weights[differ]))
    return EntityGraph("planted", np.arange(NODES, dtype=np.uint64), np.arange(NODES), pairs)


def kept_up(articles: Sequence[Article], rounds: int) -> dict[str, Any]:
    chance = random.Random(1)
    numbers = list(range(len(articles)))
    chance.shuffle(numbers)
    outside, inside = numbers[: int(LEFT_OUT * len(numbers))], numbers[int(LEFT_OUT * len(numbers)) :]
    count = int(CHANGED * len(numbers))
    graph = graph_of(articles[at].contribution for at in inside)
    found = full_partition(graph)
    for _ in range(rounds):
        chance.shuffle(inside)
        chance.shuffle(outside)
        inside, outside = inside[count:] + outside[:count], outside[count:] + inside[:count]
        newer = graph_of(articles[at].contribution for at in sorted(inside))
        found, graph = updated_partition(newer, Former(graph, found)), newer
    again = full_partition(graph)
    return {
        "rounds": rounds,
        "modularity_ratio": {level: round(found.modularity[level] / again.modularity[level], 4) for level in LEVELS},
        "weight_changed": round(found.changed, 2),
    }


def graph_of(contributions: Iterable[Contribution]) -> EntityGraph:
    (graph,) = entity_graphs(tables_of(contributions))
    return graph


def lowest_ratio(one: Partition, other: Partition) -> float:
    return round(min(one.modularity[level] / other.modularity[level] for level in LEVELS), 4)


def timed(work: Callable[[], Partition]) -> tuple[Partition, float]:
    began = time.perf_counter()
    return work(), time.perf_counter() - began


if __name__ == "__main__":
    main()
