"""What of a partition is in flight, and when a stage counts as busy."""

from streams.runtime.partition_progress import Progress, TopicPartition


def test_the_oldest_record_in_flight_is_that_of_the_batches_not_done() -> None:
    progress = Progress()
    for offset, timestamp_ms in enumerate([50, 30, 40]):
        progress.taken("text", "documents", 0, offset, timestamp_ms)
    partition = progress.partitions[TopicPartition("documents", 0)]
    assert partition.oldest_in_flight_ms == 30
    progress.done("text", "documents", 0, 1)
    assert (partition.offset, partition.oldest_in_flight_ms) == (1, 40)
    progress.done("text", "documents", 0, 2)
    assert partition.oldest_in_flight_ms is None


def test_a_stage_is_busy_while_a_record_is_in_flight_and_shortly_after() -> None:
    now = [100.0]
    progress = Progress(clock=lambda: now[0])
    progress.taken("text", "documents", 0, 0, 5)
    now[0] += 60
    assert progress.is_busy("text", 3)
    assert not progress.is_busy("graph", 3)
    progress.done("text", "documents", 0, 0)
    now[0] += 2
    assert progress.is_busy("text", 3)
    now[0] += 2
    assert not progress.is_busy("text", 3)
