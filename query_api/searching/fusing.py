"""Channels fused into one order of places: pure, from candidate lists and graph scores to what stands where and why."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from query_api.ranking import in_blocks, ranked, ranks, reciprocal_rank_fusion, weighted_sum
from query_api.reading.snapshot import Candidate
from schemas.api import Group, Mode
from schemas.ids import DocumentKey

DEPTH = 64  # candidates a text channel gives at first
DEEPER = 4  # how many times more it gives when a page lies deeper


@dataclass(frozen=True)
class FusionWeights:
    """What each text channel counts in reciprocal rank fusion, and what the fusion counts beside the graph's scores,
    which are multiplied by how far its gate is open. `structured` is multiplied by how conclusive that channel is."""

    vector: float = 1.0
    keyword: float = 1.0
    text: float = 0.4
    graph: float = 1.0
    structured: float = 4.0  # above what all others can sum up to


class Place(NamedTuple):
    """A place in the order of hits: what stands there, and how each channel saw it.

    `chunk_id` is the best chunk of the passage where a channel looked at chunks, or the chunk that stands for itself.
    """

    passage_id: str
    chunk_id: str | None
    score: float
    scores: dict[str, float]
    ranks: dict[str, int]


class _Unit(NamedTuple):
    """What can stand at a place: a passage by its best chunk, or a further chunk of it; `position` in the channel."""

    name: str
    position: int
    candidate: Candidate


def places(
    vector: Sequence[Candidate],
    keyword: Sequence[Candidate],
    graph: Mapping[str, float],
    document_of: Callable[[str], DocumentKey],
    *,
    mode: Mode,
    group: Group,
    gate: float,
    weights: FusionWeights,
    first: int,
    structured: Sequence[Candidate] = (),
    conclusiveness: float = 0.0,
) -> list[Place]:
    """The first places in the order of everything found; one channel alone keeps its own order and scores.

    Hybrid score = text weight x RRF(vector, keyword) / best RRF + graph weight x gate x graph score: reciprocal rank
    fusion decides among texts, and where the gate is open the graph's evidence is added. Ranks of the graph are not
    fused: how much stronger its first is than its tenth says more than their order.

    `vector` and `keyword` are best first, `graph` scores by passage id, `gate` in [0, 1]; `document_of` tells the
    document of a passage that only the graph found. More candidates of the same lists give a longer order that begins
    with the shorter one. `structured` adds structured weight x conclusiveness x score.
    """
    units = {
        "vector": _units(vector, group),
        "keyword": _units(keyword, group),
        "structured": _units(structured, group),
    }
    counts = {
        "vector": weights.vector,
        "keyword": weights.keyword,
        "graph": weights.graph * gate,
        "structured": weights.structured * conclusiveness,
    }
    if mode != "hybrid":
        counts = {name: float(name == mode) for name in counts}
    evidence = {unit: counts["graph"] * score for unit, score in graph.items()} if counts["graph"] else {}
    exact = {
        unit.name: counts["structured"] * unit.candidate.score for unit in units["structured"] if counts["structured"]
    }
    of_lists = [counts["vector"], counts["keyword"], float(mode == "structured")]
    blocks: list[dict[str, float]] = []
    scale = 0.0
    depth = DEPTH
    while True:
        lists = {name: ranks(unit.name for unit in of if unit.position < depth) for name, of in units.items()}
        fused = reciprocal_rank_fusion(list(lists.values()), of_lists)
        scale = scale or weights.text / max(fused.values(), default=1.0)
        blocks.append(weighted_sum([fused, evidence, exact], [scale, 1.0, float(mode == "hybrid")]))
        if depth >= max(len(vector), len(keyword)):
            break
        depth *= DEEPER
    rankings = lists | {"graph": ranks(ranked(graph))}
    shown = {name: rankings[name] for name, count in counts.items() if count}
    scores = {name: {unit.name: unit.candidate.score for unit in of} for name, of in units.items()}
    scores["graph"] = dict(graph)
    found = {
        unit.name: unit.candidate for of in (units["structured"], units["keyword"], units["vector"]) for unit in of
    }
    final = {unit: score for block in reversed(blocks) for unit, score in block.items()}
    ordered: list[Place] = []
    documents: set[DocumentKey] = set()
    for unit in in_blocks(blocks):
        if len(ordered) >= first:
            break
        candidate = found.get(unit)
        if group == "document":
            document = document_of(unit) if candidate is None else candidate.key
            if document in documents:
                continue
            documents.add(document)
        own = final[unit] if mode == "hybrid" else scores[mode][unit]
        ordered.append(
            Place(
                passage_id=unit if candidate is None else candidate.passage_id,
                chunk_id=None if candidate is None else candidate.chunk_id,
                score=min(own, ordered[-1].score) if ordered else own,
                scores={name: scores[name][unit] for name, ranking in shown.items() if unit in ranking},
                ranks={name: ranking[unit] for name, ranking in shown.items() if unit in ranking},
            )
        )
    return ordered


def _units(candidates: Sequence[Candidate], group: Group) -> list[_Unit]:
    """Each passage by its best candidate; with chunks asked for, also its further chunks, each by itself."""
    seen: set[str] = set()
    units = []
    for position, candidate in enumerate(candidates):
        if candidate.passage_id not in seen:
            seen.add(candidate.passage_id)
            units.append(_Unit(candidate.passage_id, position, candidate))
        elif group == "chunk" and candidate.chunk_id is not None:
            units.append(_Unit(candidate.chunk_id, position, candidate))
    return units
