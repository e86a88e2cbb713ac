"""A batch on its way to the log: which member of a document counts, and what is held meanwhile."""

import gc
import json
from collections.abc import Iterator

import pytest

from query_api.ingest import intake
from query_api.ingest.intake import BatchMember, build_batch, superseded_members
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey, Position
from schemas.settings import KafkaSettings, LimitSettings

KAFKA = KafkaSettings()


@pytest.mark.parametrize(
    ("members", "lost"),
    [
        ([("a", None), ("b", None), ("a", None), ("a", None)], {0: 3, 2: 3}),
        ([("a", 2), ("a", 1), ("a", 2)], {0: 2, 1: 2}),
        ([("a", 2), ("a", 1)], {1: 0}),
        ([("a", 2), ("a", None)], {0: 1}),
        ([("a", 5), ("a", None), ("a", 3)], {0: 1, 2: 1}),
        ([("a", 1), ("A", 1)], {}),
    ],
)
def test_of_one_document_in_a_batch_the_member_wins_that_would_win_in_the_log(
    members: list[tuple[str, int | None]], lost: dict[int, int]
) -> None:
    events = [
        BatchMember(DocumentKey("default", name), version, Position(0, index))
        for index, (name, version) in enumerate(members)
    ]
    assert superseded_members(events) == lost


def test_the_documents_of_a_batch_are_held_one_by_one() -> None:
    def alive() -> int:
        return sum(type(each) is DocumentUpsert for each in gc.get_objects())

    most = 0

    def counted(members: Iterator[intake.ParsedMember]) -> Iterator[intake.ParsedMember]:
        nonlocal most
        for member in members:
            most = max(most, alive())
            yield member

    members = [json.dumps({"id": str(n), "content": "x", "metadata": {"n": [n]}}).encode() for n in range(20)]
    before = alive()
    batch = build_batch(counted(intake.from_envelopes(members, LimitSettings())), KAFKA, None)
    assert len(batch.records) == 20
    assert most - before <= 2


def test_what_is_refused_is_told_by_index() -> None:
    members = [b'{"id": "a", "content": "x"}', b"{}", b'{"id": "b"}', b'{"id": "a", "content": "y"}']
    batch = build_batch(intake.from_envelopes(members, LimitSettings()), KAFKA, None)
    assert list(batch.records) == [3]
    assert [(each.index, each.id, each.reason) for each in batch.refusals()] == [
        (0, "a", "duplicate_id"),
        (1, None, "wrong_type"),
        (2, "b", "empty_content"),
    ]
