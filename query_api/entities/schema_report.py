"""What documents state against the schema of their collection, to which only people's edits are held."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice

import numpy as np

from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.conflicts import ConflictFinder
from query_api.entities.description import EntityDescriber
from query_api.index.graph.edges import Statement
from query_api.index.graph.view import GraphView
from schemas.edits_api import SchemaViolation, Violated
from schemas.graph_edits import GraphChoice

MOST_REPORTED = 50
EXAMPLES = 3

Misfitting = tuple[Violated, str, str | None]


def schema_violations(
    view: GraphView, catalogue: EntityCatalogue, describer: EntityDescriber, collection: str, choice: GraphChoice
) -> list[SchemaViolation]:
    """Those of which there are most statements, at most MOST_REPORTED."""
    counts: Counter[Misfitting] = Counter()
    examples: dict[Misfitting, list[Statement]] = defaultdict(list)

    def add(what: Violated, predicate: str, given: str | None, statements: Iterable[Statement], count: int) -> None:
        counts[what, predicate, given] += count
        examples[what, predicate, given] += islice(statements, EXAMPLES - len(examples[what, predicate, given]))

    for part in view.segments:
        numbers, predicates = part.statements_in(collection), part.segment.predicates
        codes = predicates.codes[numbers]
        for code in np.unique(codes).tolist():
            predicate, mine = predicates.values[code], numbers[codes == code]
            if choice.misfit(predicate, None, None) is not None:  # whatever its ends are
                few = mine[:EXAMPLES]
                add("predicate", predicate, None, part.statements(np.zeros_like(few), few), len(mine))
                continue
            for statement in part.statements(np.zeros_like(mine), mine):
                known = {role.name: catalogue.label_and_type(role.entity) for role in statement.roles}
                source, target = (found and found[1] for found in map(known.get, ("subject", "object")))
                if (misfit := choice.misfit(predicate, source, target)) is not None:
                    add(misfit.what, predicate, misfit.given, [statement], 1)
    finder = ConflictFinder(view, catalogue, collection, choice.acyclic)
    for predicate in choice.acyclic:
        facts = {fact.identity: fact for cycle in finder.cycles(predicate) for fact in cycle.facts}.values()
        if stated := [statement for fact in facts for statement in fact.statements]:
            add("cycle", predicate, None, stated, len(stated))
    return [
        SchemaViolation(
            what=what,
            predicate=predicate,
            type=given,
            statements=count,
            examples=describer.of_statements(examples[what, predicate, given]),
        )
        for (what, predicate, given), count in sorted(counts.items(), key=lambda each: (-each[1], str(each[0])))
    ][:MOST_REPORTED]
