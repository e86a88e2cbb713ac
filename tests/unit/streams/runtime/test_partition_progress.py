"""What of a partition is in flight, and when a stage counts as busy."""

from kafka_client.topic_offsets import TopicPartition
from streams.runtime.partition_progress import Progress


def test_done_records_are_reached_and_no_longer_in_flight() -> None:
    progress = Progress()
    progress.expect("text", "documents", 1, 7)
    for offset in range(3):
        progress.taken("text", "documents", 0, offset)
    progress.done("text", "documents", 0, 1)
    assert progress.partitions[TopicPartition("documents", 0)].in_flight == {2}
    assert progress.reached() == {"documents": {0: 1, 1: 7}}


def test_a_stage_is_busy_while_a_record_is_in_flight_and_shortly_after() -> None:
    now = [100.0]
    progress = Progress(clock=lambda: now[0])
    progress.taken("text", "documents", 0, 0)
    now[0] += 60
    assert progress.is_busy("text", 3)
    assert not progress.is_busy("graph", 3)
    progress.done("text", "documents", 0, 0)
    now[0] += 2
    assert progress.is_busy("text", 3)
    now[0] += 2
    assert not progress.is_busy("text", 3)
