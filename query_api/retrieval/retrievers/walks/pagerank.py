"""Personalised PageRank from the seeds of a question, over passages and what they share."""

from query_api.retrieval.retrievers.graph_edges import strongest
from query_api.retrieval.retrievers.graph_results import Findings
from query_api.retrieval.retrievers.walks.bipartite import LEAST_WEIGHT, PassagesAndEntities
from query_api.retrieval.retrievers.walks.push import push
from query_api.retrieval.retrievers.walks.start import Beginning

RESTART = 0.3
EPSILON = 1e-3
MOST_OPENED = 2_000


def personalised_pagerank(beginning: Beginning) -> Findings:
    """Score = what a walk from the seeds leaves at a passage, beyond what it began with there."""
    parents = beginning.gathered.parents
    if not parents:
        return beginning.findings({}, {}, [])
    seeds = {parent.passage: parent.weight for parent in parents}
    ground = PassagesAndEntities(beginning.view, beginning.edges)
    mass = push(
        ground.neighbours, seeds, restart=RESTART, epsilon=EPSILON, least_weight=LEAST_WEIGHT, most_opened=MOST_OPENED
    )
    total = sum(seeds.values())
    scores = {
        node: estimate - RESTART * seeds.get(node, 0.0) / total
        for node, estimate in zip(mass.node.tolist(), mass.estimate.tolist(), strict=True)
        if node >= 0 and estimate > 0
    }
    first = beginning.first_steps()
    stepped = {reach.passage for reach in first}
    ring = sorted(
        (each for each in scores if each in stepped and each not in seeds), key=lambda each: (-scores[each], each)
    )
    middle, second = beginning.second_steps(ring, first)
    reasons = {passage: reach.reason for passage, reach in (strongest(second) | strongest(first)).items()}
    return beginning.findings(scores, reasons, middle)
