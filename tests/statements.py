"""Made-up statements for contributions."""

from collections.abc import Sequence

from schemas.graph_delta import ChunkNode, RoleEdge, StatementNode
from schemas.ids import normalise_name, statement_id


def statement(
    chunks: Sequence[ChunkNode],
    at: int,
    predicate: str,
    roles: Sequence[tuple[str, str]],
    *,
    extractor: str,
    confidence: float,
    sentence: int,
) -> StatementNode:
    """A statement anchored at `chunks[at]`; `roles` are pairs of a role and the name as the text writes it."""
    named = [(role, normalise_name(surface)) for role, surface in roles]
    edges = [RoleEdge(role, normalise_name(surface), surface) for role, surface in roles]
    identifier = statement_id(chunks[at].id, predicate, named, extractor)
    return StatementNode(identifier, at, predicate, confidence, extractor, sentence, edges)
