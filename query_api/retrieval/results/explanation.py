"""Why a hit ranks where it does: seven factors from 0 to 1 that a person can read."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np

from indexer.schema import DocumentRow
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import Snapshot
from query_api.query.entity_linking import LinkedNames
from query_api.retrieval.confidence import Evidence
from query_api.retrieval.retrievers.graph_scoring import GraphResults
from schemas.hits import Factors, Hit
from schemas.ids import DocumentKey

WEIGHTS = {
    "semantic": 0.25,
    "exact": 0.20,
    "recency": 0.15,
    "centrality": 0.15,
    "relationship": 0.10,
    "entity": 0.10,
    "source": 0.05,
}
HALF_LIFE_DAYS = 365
A_DAY_SECONDS = 86_400
HALF_CENTRAL = 10  # passages elsewhere that name or link to a document of centrality one half
_DECIMALS = 4


def explain(
    hits: Sequence[Hit],
    documents: Mapping[DocumentKey, DocumentRow],
    snapshot: Snapshot,
    names: LinkedNames | None,
    results: GraphResults,
    evidence: Evidence | None,
    now: datetime,
) -> list[Factors]:
    """One for each hit. What is not known counts 0: a question without a vector has no semantic factor, one without
    names no entity, a document that the graph does not hold no centrality. `now` counts by whole days. Blocks."""
    view, today = snapshot.graph, int(now.timestamp()) // A_DAY_SECONDS
    centralities = _centralities(view, [DocumentKey(hit.collection, hit.document_id) for hit in hits])
    named_shares = _named_shares(view, names, [hit.passage_id for hit in hits])
    factors = []
    for hit, centrality, entity in zip(hits, centralities, named_shares, strict=True):
        document = documents[DocumentKey(hit.collection, hit.document_id)]
        row = None if evidence is None else evidence.scores.row_of.get(hit.passage_id)
        semantic, exact = hit.scores.get("vector", 0.0), 0.0
        if evidence is not None and row is not None:
            semantic = float(evidence.scores.cosine[row])
            exact = float(evidence.scores.term_matches[row] @ evidence.idf) / (float(evidence.idf.sum()) or 1.0)
        dated = snapshot.text.fields.date_of(document.key, int(now.timestamp() * 1000))
        days = max(0, today - dated // 1000 // A_DAY_SECONDS)
        carried = (document.uri is not None, document.version is not None, bool(document.own_metadata))
        values = {
            "semantic": semantic,
            "exact": max(exact, hit.scores.get("structured", 0.0)),
            "recency": 0.5 ** (days / HALF_LIFE_DAYS),
            "centrality": centrality,
            "relationship": results.gate * results.scores.get(hit.passage_id, 0.0),
            "entity": entity,
            "source": sum(carried) / len(carried),
        }
        bounded = {name: round(min(1.0, max(0.0, value)), _DECIMALS) for name, value in values.items()}
        weighted = round(sum(WEIGHTS[name] * value for name, value in bounded.items()), _DECIMALS)
        factors.append(Factors(**bounded, weighted=weighted))
    return factors


def _centralities(view: GraphView, keys: Sequence[DocumentKey]) -> list[float]:
    """n / (n + 10) for the n passages of other documents that mention each by its whole title or link to it."""
    numbers = {key: number for key in dict.fromkeys(keys) if (number := view.document(key)) is not None}
    documents = np.array(list(numbers.values()), dtype=np.int64)
    citing: list[set[int]] = [set() for _ in documents]
    links = view.links_to(documents)
    for at, passage in zip(links.query_index.tolist(), links.passage.tolist(), strict=True):
        citing[at].add(passage)
    about = view.about_of(documents)
    whole = about.weight >= 1
    mentions = view.mention_edges_of(about.entity[whole])
    for row, passage in zip(mentions.query_index.tolist(), mentions.passage.tolist(), strict=True):
        citing[int(about.query_index[whole][row])].add(passage)
    counts = {
        key: sum(view.document_of_passage(passage) != number for passage in citing[at])
        for at, (key, number) in enumerate(numbers.items())
    }
    return [counts.get(key, 0) / (counts.get(key, 0) + HALF_CENTRAL) for key in keys]


def _named_shares(view: GraphView, names: LinkedNames | None, passage_ids: Sequence[str]) -> list[float]:
    """The share of the names in the question that each passage mentions, or whose document it is in."""
    if names is None or not (names.links or names.entities):
        return [0.0] * len(passage_ids)
    wanted: dict[str, set[int]] = {}
    about: dict[str, set[int]] = {}
    for link in names.links:
        wanted.setdefault(link.surface, set()).add(link.entity)
        about.setdefault(link.surface, set()).add(link.document)
    for named in names.entities:
        wanted.setdefault(named.surface, set()).add(named.entity)
    shares = []
    for number in view.passages(list(passage_ids)).tolist():
        if number == MISSING:
            shares.append(0.0)
            continue
        entities = set(view.mention_edges_in(np.array([number], dtype=np.int64)).entity.tolist())
        document = view.document_of_passage(number)
        found = sum(bool(wanted[name] & entities) or document in about.get(name, ()) for name in wanted)
        shares.append(found / len(wanted))
    return shares
