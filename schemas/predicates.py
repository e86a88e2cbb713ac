"""How strongly a statement joins what it is about, by its predicate."""

UNKNOWN = 0.3  # also of every predicate that is not listed

STRENGTHS = {
    "is_a": 1.0,
    "subtopic_of": 1.0,
    "part_of": 0.95,
    "specialization_of": 0.9,
    "prerequisite_of": 0.9,
    "depends_on": 0.9,
    "explains": 0.9,
    "uses": 0.85,
    "implements": 0.8,
    "extends": 0.75,
    "related_to": 0.5,
    "mentioned_in": 0.3,
}


def strength(predicate: str) -> float:
    """In (0, 1]; 0.3 for a predicate that is not listed."""
    return STRENGTHS.get(predicate, UNKNOWN)
