"""Communities kept up under change, against communities found anew.

    python -m tests.bench.knowledge_graph.communities [FOLDER] [--rounds 50]

1. 100,000 nodes with planted communities: the time of an update after 100 changed documents (2,000 edges go, 2,000
   come) over that of a full run, and the modularity of both.
2. FOLDER holds `leads.jsonl.gz`: {_id, title, text, metadata: {links, categories}} a line. A tenth is left out at
   first; in each round 2 % of what is there goes and as much comes. The modularity of the communities that were
   never found anew, over that of a full run; and the normalised mutual information of a full run on all with the top
   categories, beside that of Leiden on the links alone.
"""

import argparse
import gzip
import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.chunking.splitter import ChunkingParameters
from indexer.communities.graph import EntityGraph, Pairs, entity_graphs
from indexer.communities.partition import LEVELS, Former, Partition, full_partition, updated_partition
from indexer.linking import contribution
from indexer.pipeline import prepare
from indexer.read.graph_tables import GraphTables
from schemas.events import DocumentUpsert
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey
from tests.support.fixtures.graph_tables import graph_tables

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
        articles = read_articles(given.folder / "leads.jsonl.gz")
        report |= {"kept up": kept_up(articles, given.rounds), "categories": categories(articles)}
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


def read_articles(file: Path) -> list[tuple[Contribution, str]]:
    """The contribution of each article, by the rules alone, and its top category."""
    articles = []
    with gzip.open(file, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            upsert = DocumentUpsert(
                key=DocumentKey("articles", row["_id"]),
                content=row["text"].encode(),
                content_type="text/plain",
                title=row["title"],
                links=row["metadata"]["links"],
            )
            prepared = prepare(upsert, ChunkingParameters())
            vectors = np.zeros((len(prepared.chunked.chunks), 1), dtype=np.float32)
            top = next(iter(row["metadata"]["categories"]), "").partition(".")[0]
            articles.append((contribution(prepared, vectors), top))
    return articles


def kept_up(articles: Sequence[tuple[Contribution, str]], rounds: int) -> dict[str, Any]:
    chance = random.Random(1)
    numbers = list(range(len(articles)))
    chance.shuffle(numbers)
    outside, inside = numbers[: int(LEFT_OUT * len(numbers))], numbers[int(LEFT_OUT * len(numbers)) :]
    count = int(CHANGED * len(numbers))
    graph = graph_of(articles[at][0] for at in inside)
    found = full_partition(graph)
    for _ in range(rounds):
        chance.shuffle(inside)
        chance.shuffle(outside)
        inside, outside = inside[count:] + outside[:count], outside[count:] + inside[:count]
        newer = graph_of(articles[at][0] for at in sorted(inside))
        found, graph = updated_partition(newer, Former(graph, found)), newer
    anew = full_partition(graph)
    return {
        "rounds": rounds,
        "modularity_ratio": {level: round(found.modularity[level] / anew.modularity[level], 4) for level in LEVELS},
        "weight_changed": round(found.changed, 2),
    }


def graph_of(contributions: Iterable[Contribution]) -> EntityGraph:
    (graph,) = entity_graphs(graph_tables(list(contributions)))
    return graph


def categories(articles: Sequence[tuple[Contribution, str]]) -> dict[str, Any]:
    tables = graph_tables([each for each, _ in articles])
    (whole,) = entity_graphs(tables)
    linked = links_alone(articles)
    return {
        "entities": agreement(full_partition(whole), nodes_of_articles(tables, whole), articles),
        "links alone": agreement(full_partition(linked), {at: at for at in range(len(articles))}, articles),
    }


def nodes_of_articles(tables: GraphTables, graph: EntityGraph) -> dict[int, int]:
    """{article: the node of the entity that it is about}."""
    node_of = {int(row): node for node, row in enumerate(graph.rows)}
    about = zip(*(tables.about[name].to_pylist() for name in ("source", "target", "weight")), strict=True)
    return {source: node_of[target] for source, target, weight in about if weight >= 1 and target in node_of}


def links_alone(articles: Sequence[tuple[Contribution, str]]) -> EntityGraph:
    number_of = {each.document_id: at for at, (each, _) in enumerate(articles)}
    links = {
        (min(at, other), max(at, other))
        for at, (each, _) in enumerate(articles)
        for link in each.links
        if (other := number_of.get(link.target_id, at)) != at
    }
    ends = np.array(sorted(links), dtype=np.int64)
    pairs = Pairs(ends[:, 0], ends[:, 1], np.ones(len(ends)))
    return EntityGraph("links", np.arange(len(articles), dtype=np.uint64), np.arange(len(articles)), pairs)


def agreement(
    found: Partition, node_of: Mapping[int, int], articles: Sequence[tuple[Contribution, str]]
) -> dict[str, float]:
    chosen = [at for at, (_, top) in enumerate(articles) if top and at in node_of]
    tops = np.unique([articles[at][1] for at in chosen], return_inverse=True)[1]
    nodes = np.array([node_of[at] for at in chosen])
    return {level: round(mutual_information(found.labels[level][nodes], tops), 4) for level in LEVELS}


def mutual_information(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Normalised by the mean of both entropies (Danon et al. 2005)."""
    one, other = (np.unique(labels, return_inverse=True)[1] for labels in (one, other))
    shared = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(shared, (one, other), 1 / len(one))
    of_one, of_other = shared.sum(axis=1), shared.sum(axis=0)
    there = shared > 0
    information = float((shared[there] * np.log(shared[there] / np.outer(of_one, of_other)[there])).sum())
    entropies = -float((of_one * np.log(of_one)).sum()) - float((of_other * np.log(of_other)).sum())
    return 2 * information / entropies


def lowest_ratio(one: Partition, other: Partition) -> float:
    return round(min(one.modularity[level] / other.modularity[level] for level in LEVELS), 4)


def timed(work: Callable[[], Partition]) -> tuple[Partition, float]:
    began = time.perf_counter()
    return work(), time.perf_counter() - began


if __name__ == "__main__":
    main()
