"""What makes two searches the same: the question, and the state of the stores it was put to."""

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from schemas.curation import LinkingChoice
from schemas.ids import digest
from schemas.search import SearchRequest

if TYPE_CHECKING:
    from query_api.index.snapshot import Snapshot

BESIDE_THE_QUESTION = frozenset({"k", "offset", "cursor", "after", "wait_seconds", "cache"})


class SnapshotIdentity(NamedTuple):
    """Two snapshots of one identity give the same answers: both stores are functions of the first three."""

    generation: str
    graph_position: int
    table_versions: tuple[tuple[str, int], ...]
    linking: frozenset[tuple[str, LinkingChoice]] = frozenset()


class AnswerKey(NamedTuple):
    """What decides an answer down to its last hit; `day` is what `yesterday` is told from, in UTC."""

    snapshot: SnapshotIdentity
    question: str
    offset: int
    k: int
    day: date


def snapshot_identity(snapshot: "Snapshot") -> SnapshotIdentity:
    versions = tuple(sorted(snapshot.text.table_versions.items()))
    return SnapshotIdentity(snapshot.generation, snapshot.graph.position, versions, frozenset(snapshot.linking.items()))


def question_of(request: SearchRequest) -> str:
    """A digest of everything in a request that decides the order of its hits, so of all but page and freshness."""
    asked = request.model_dump(mode="json", exclude=set(BESIDE_THE_QUESTION))
    return digest("question", msgspec.json.encode(asked, order="deterministic").decode())[:32]


def answer_key(request: SearchRequest, snapshot: "Snapshot") -> AnswerKey:
    """`request` has its offset, not a cursor."""
    today = datetime.now(UTC).date()
    return AnswerKey(snapshot_identity(snapshot), question_of(request), request.offset, request.k, today)
