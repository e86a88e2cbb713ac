"""Where the worker starts to read."""

import pytest

from indexer.errors import IncompatibleGeneration
from kafka_client.topic_offsets import TopicPartition
from streams.kafka.group_offsets import LogState, StoresAheadOfLog, set_back

ADVICE = "Do this."
P0, P1 = TopicPartition("documents", 0), TopicPartition("documents", 1)


def test_a_store_that_was_deleted_is_filled_again_from_the_start() -> None:
    assert set_back({P0: -1}, {P0: LogState(end=50, committed=50)}, ADVICE) == {P0: 0}


def test_a_store_restored_from_an_older_copy_goes_on_from_there() -> None:
    resets = set_back({P0: 20, P1: 49}, {P0: LogState(50, 50), P1: LogState(50, 50)}, ADVICE)
    assert resets == {P0: 21}


def test_a_group_that_is_behind_stays_there_so_that_no_receipt_is_missed() -> None:
    assert set_back({P0: 49}, {P0: LogState(50, 40)}, ADVICE) == {}
    assert set_back({P0: 49}, {P0: LogState(50, None)}, ADVICE) == {}


def test_group_of_restored_stores_begins_behind_them_once() -> None:
    stored = {P0: 49, P1: -1}
    assert set_back(stored, {P0: LogState(60, None), P1: LogState(0, None)}, ADVICE, is_restored=True) == {
        P0: 50,
        P1: 0,
    }
    assert set_back(stored, {P0: LogState(60, 40), P1: LogState(0, 0)}, ADVICE, is_restored=True) == {}


def test_where_the_store_keeps_no_position_the_groups_word_is_taken() -> None:
    assert set_back({P0: None}, {P0: LogState(50, 50)}, ADVICE) == {}


def test_stores_of_another_cluster_are_not_filled_from_this_one() -> None:
    with pytest.raises(StoresAheadOfLog, match=r"not the cluster they were filled from .* Do this\."):
        set_back({P0: 50}, {P0: LogState(end=50, committed=None)}, ADVICE)


def test_where_the_log_no_longer_holds_what_follows_a_rebuild_is_asked_for() -> None:
    with pytest.raises(IncompatibleGeneration, match=r"end at offset 20 .* begins at 40.*thalweg rebuild"):
        set_back({P0: 20}, {P0: LogState(end=50, committed=21, beginning=40)}, ADVICE)
    assert set_back({P0: 39}, {P0: LogState(end=50, committed=40, beginning=40)}, ADVICE) == {}
    assert set_back({P0: -1}, {P0: LogState(end=50, committed=None, beginning=40)}, ADVICE) == {}
