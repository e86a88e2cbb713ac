"""Communities of entities against categories of the documents about them: a folder of linked, classified articles.

`leads.jsonl[.gz]` has {_id, title, text, metadata: {links, categories}} a line; the links are ids of other lines, and
the part of the first category before a dot is an article's top category. Contributions are made by the rules alone, as
the indexer makes them; communities as the worker does. Beside them: Leiden on the links alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from indexer.chunking.splitter import ChunkingParameters
from indexer.communities.entity_graph import EntityGraph, Pairs, entity_graphs
from indexer.communities.partition import LEVELS, Level, Partition, full_partition
from indexer.document_pipeline import prepare
from indexer.graph.contributions import tables_of
from indexer.graph.tables import GraphTables
from indexer.linking import contribution
from query_api.evaluation.graph_metrics import mutual_information
from query_api.evaluation.typed_relations import opened
from schemas.errors import WrongSetting
from schemas.events import DocumentUpsert
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey

ARTICLES = ("leads.jsonl", "leads.jsonl.gz")
STANDARD: Level = "medium"  # resolution 1, by which modularity is defined (Newman and Girvan 2004)


class Article(NamedTuple):
    """What a document contributes to the graph, and its top category, empty for none."""

    contribution: Contribution
    category: str


class _Metadata(msgspec.Struct):
    links: list[str] = []
    categories: list[str] = []


class _Line(msgspec.Struct):
    title: str
    text: str
    metadata: _Metadata
    id: str = msgspec.field(name="_id")


def articles_of(folder: Path) -> Path | None:
    """The file of articles; None for a folder without."""
    return next((folder / name for name in ARTICLES if (folder / name).is_file()), None)


def read_lines(file: Path, limit: int | None = None) -> list[_Line]:
    """Raises WrongSetting for a line that is not an article, and where there is none."""
    try:
        with opened(file) as lines:
            found = [msgspec.json.decode(line, type=_Line) for line in islice(lines, limit)]
    except (OSError, EOFError, msgspec.DecodeError) as error:
        raise WrongSetting(f"{file} has a line that is not an article: {error}. Repair it.") from error
    if not found:
        raise WrongSetting(f"{file} has no articles; name another folder.")
    return found


def prepared_articles(lines: Iterable[_Line], advance: Callable[[int], None]) -> list[Article]:
    articles = []
    for line in lines:
        upsert = DocumentUpsert(
            key=DocumentKey("articles", line.id),
            content=line.text.encode(),
            content_type="text/plain",
            title=line.title,
            links=line.metadata.links,
        )
        prepared = prepare(upsert, ChunkingParameters())
        vectors = np.zeros((len(prepared.chunked.chunks), 1), dtype=np.float32)
        top = next(iter(line.metadata.categories), "").partition(".")[0]
        articles.append(Article(contribution(prepared, vectors), top))
        advance(1)
    return articles


def community_report(articles: Sequence[Article]) -> dict[str, Any]:
    """As JSON: of the entities' communities and of those of the links alone, at each level.

    Raises WrongSetting where the articles make no graph.
    """
    tables = tables_of(each.contribution for each in articles)
    linked = links_alone(articles)
    whole = next(entity_graphs(tables), None)
    if whole is None or not len(linked.pairs.weights):
        raise WrongSetting("These articles name no entities together, or link to none of each other.")
    found, by_links = full_partition(whole), full_partition(linked)
    of_entities = agreement(found, nodes_of_articles(tables, whole), articles)
    of_links = agreement(by_links, {at: at for at in range(len(articles))}, articles)
    return {
        "documents": len(articles),
        "entities": whole.n_nodes,
        "community_modularity": round(found.modularity[STANDARD], 6),
        "community_nmi": of_entities[STANDARD],
        "community_nmi_links": of_links[STANDARD],
        "by_level": {
            level: {
                "modularity": round(found.modularity[level], 6),
                "nmi": of_entities[level],
                "nmi_links": of_links[level],
            }
            for level in LEVELS
        },
    }


def nodes_of_articles(tables: GraphTables, graph: EntityGraph) -> dict[int, int]:
    """{article: the node of the entity that it is about}."""
    node_of = {int(row): node for node, row in enumerate(graph.rows)}
    about = zip(*(tables.about[name].to_pylist() for name in ("source", "target", "weight")), strict=True)
    return {source: node_of[target] for source, target, weight in about if weight >= 1 and target in node_of}


def links_alone(articles: Sequence[Article]) -> EntityGraph:
    """The articles as nodes, each pair that a link joins once."""
    number_of = {each.contribution.document_id: at for at, each in enumerate(articles)}
    links = {
        (min(at, other), max(at, other))
        for at, each in enumerate(articles)
        for link in each.contribution.links
        if (other := number_of.get(link.target_id, at)) != at
    }
    ends = np.array(sorted(links), dtype=np.int64).reshape(-1, 2)
    pairs = Pairs(ends[:, 0], ends[:, 1], np.ones(len(ends)))
    return EntityGraph("links", np.arange(len(articles), dtype=np.uint64), np.arange(len(articles)), pairs)


def agreement(found: Partition, node_of: Mapping[int, int], articles: Sequence[Article]) -> dict[Level, float]:
    """The normalised mutual information with the top categories, of the articles that have one and are in the graph."""
    chosen = [at for at, each in enumerate(articles) if each.category and at in node_of]
    categories = np.array([articles[at].category for at in chosen])
    nodes = np.array([node_of[at] for at in chosen], dtype=np.int64)
    return {level: round(mutual_information(found.labels[level][nodes], categories), 6) for level in LEVELS}
