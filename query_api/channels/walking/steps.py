"""Single steps between passages over what the graph holds, from parents and from what these lead to."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from query_api.channels import terms
from query_api.channels.edge_choice import follows, looks_at
from query_api.channels.terms import Entrances, Held, Parent, Reach, Reason
from query_api.graph.view import GraphView

Asks = Callable[[str], float]


def steps_from(
    view: GraphView, parents: Iterable[Parent], enter: Entrances, asks: Asks, edges: Collection[str]
) -> list[Reach]:
    """Every passage one step away from each of these, both directions, over the kinds in `edges`, all when empty.

    A reach's score is the weight of the edge, in (0, 1], whatever its parent weighs; its `origin` the index of the
    parent. `asks` tells the share of the question that a predicate covers.
    """
    whole = [replace(parent, weight=1.0) for parent in parents]
    if not whole:
        return []
    around = terms.surroundings(view, whole)
    kinds: dict[str, Callable[[], Iterable[Reach]]] = {
        "title_mention": lambda: terms.title_mentions(whole, around, enter)[1],
        "mentioned_by": lambda: terms.mentioned_by(view, whole),
        "shared_entity": lambda: terms.shared(whole, around),
        "link": lambda: terms.linked(view, whole, enter),
        "statement": lambda: terms.stated(view, whole, enter, asks),
    }
    return [
        reach
        for kind, reaches in kinds.items()
        if looks_at(kind, edges)
        for reach in reaches()
        if reach.score and follows(kind, reach.reason.predicate, edges)
    ]


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
        for passage, first_chunks in terms.first_mentions(view, list(reached)).items()
    ]
