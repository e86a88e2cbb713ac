"""Records of the contributions topic, made and read as the worker and the service do."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from indexer.changes import Commit, CommitReader, Reached, encode_mark
from indexer.write.change_encoding import Records, encode_change
from schemas.errors import MalformedEvent
from schemas.graph_delta import Contribution, encode_contribution
from schemas.ids import DocumentKey


class Logged(NamedTuple):
    """A record of a topic with one partition."""

    offset: int
    key: bytes | None
    value: bytes | None


def in_graph(key: str, contribution: Contribution | None) -> Records:
    """What changes in the graph; None for a document that leaves it."""
    value = None if contribution is None else encode_contribution(contribution)
    return encode_change(DocumentKey.parse(key), None, value, in_graph=True)


def committed(
    changes: Mapping[str, Contribution | None], reached: Reached | None = None
) -> list[tuple[bytes | None, bytes]]:
    """A commit's records, the mark included."""
    records = [record for key, each in changes.items() for record in in_graph(key, each)]
    return [*records, (None, encode_mark(reached or {}))]


def complain(record: Logged, error: MalformedEvent) -> None:
    raise AssertionError(f"{record.offset}, {record.key!r}: {error}")


def pass_over(_record: Logged, _error: MalformedEvent) -> None:
    """As readers do."""


def commits_of(
    records: Iterable[tuple[bytes | None, bytes | None]], on_broken: Callable[[Logged, MalformedEvent], None] = complain
) -> list[Commit[Logged]]:
    """Those of a whole topic. A record that is none of the worker's is an AssertionError."""
    reader = CommitReader[Logged](on_broken)
    read = (reader.add(Logged(offset, key, value)) for offset, (key, value) in enumerate(records))
    return [commit for commit in read if commit is not None]


def graph_of(commits: Iterable[Commit[Logged]]) -> dict[str, bytes]:
    """What a reader of these commits ends up with: the live contribution of each document."""
    state: dict[str, bytes] = {}
    for commit in commits:
        for key, contribution in commit.in_graph:
            if contribution is None:
                state.pop(str(key), None)
            else:
                state[str(key)] = encode_contribution(contribution)
    return state
