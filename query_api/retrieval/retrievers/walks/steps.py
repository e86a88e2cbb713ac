"""Single steps between passages over what the graph holds, from parents and from what these lead to."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from query_api.index.graph.columns import CHUNK_EDGE_KINDS
from query_api.index.graph.rows import rows_of
from query_api.index.graph.view import GraphView
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.edge_filter import follows, looks_at
from query_api.retrieval.retrievers.graph_edges import Entrances, Held, Parent, Reach, Reason
from schemas.contributions import predicate_strength


def steps_from(
    view: GraphView, parents: Iterable[Parent], enter: Entrances, edges: Collection[str], *, between_chunks: bool
) -> list[Reach]:
    """Every passage one step away from each of these, both directions, over the kinds in `edges`, all when empty; over
    edges between chunks only if asked to.

    A reach's score is the weight of the edge, in (0, 1], whatever its parent weighs; its `origin` the index of the
    parent.
    """
    whole = [replace(parent, weight=1.0) for parent in parents]
    if not whole:
        return []
    around = graph_edges.surroundings(view, whole)
    kinds: dict[str, Callable[[], Iterable[Reach]]] = {
        "title_mention": lambda: graph_edges.title_mentions(whole, around, enter)[1],
        "mentioned_by": lambda: graph_edges.mentioned_by(view, whole),
        "shared_entity": lambda: graph_edges.shared(whole, around),
        "link": lambda: graph_edges.linked(view, whole, enter),
        "statement": lambda: graph_edges.stated(view, whole, enter, predicate_strength),
    }
    stepped = [
        reach
        for kind, reaches in kinds.items()
        if looks_at(kind, edges)
        for reach in reaches()
        if reach.score and follows(kind, reach.reason.predicate, edges)
    ]
    if between_chunks and any(looks_at(kind, edges) for kind in CHUNK_EDGE_KINDS):
        stepped += [reach for reach in within_document(view, whole) if looks_at(reach.reason.term, edges)]
    return stepped


def within_document(view: GraphView, parents: Sequence[Parent]) -> Iterator[Reach]:
    """Other passages of a parent's document, over the edges between its chunks and theirs; once for each such edge: its
    weight. The reason's term is one of CHUNK_EDGE_KINDS."""
    chunks = [view.chunks_of_passage(parent.passage) for parent in parents]
    owners = [at for at, of_parent in enumerate(chunks) for _ in of_parent]
    around = view.chunk_edges(np.array(list(chain.from_iterable(chunks)), dtype=np.int64))
    for asked, chunk, kind, weight in rows_of(around.asked, around.other, around.kind, around.weight):
        at, passage = owners[asked], view.passage_of_chunk(chunk)
        if passage != parents[at].passage:
            yield Reach(passage, weight, Reason(CHUNK_EDGE_KINDS[kind], at, chunk=chunk))


def passed_through(view: GraphView, reached: Mapping[int, Reason], values: Mapping[int, float]) -> list[Parent]:
    """Passages as parents of the next step. `reached` says how an earlier parent leads to each, `values` what each
    tells about the question: the v of all its entities, whose names are not read."""
    return [
        Parent(
            passage,
            view.document_of_passage(passage),
            1.0,
            None,
            (),
            {entity: Held("", chunk, values[passage]) for entity, chunk in first_chunks.items()},
            reached[passage],
        )
        for passage, first_chunks in graph_edges.first_mentions(view, list(reached)).items()
    ]
