"""Asking a group's coordinator for committed offsets so that its refusal is never taken for "none committed".

From version 2 of OffsetFetch on, a coordinator that is still loading, or has moved, says so once for the whole group
and names no partition. aiokafka (0.14) looks at the partitions only: to it none is committed, and it reads each from
its first record again. In version 1 the error stands at every partition, and aiokafka asks again until it is answered.
(https://kafka.apache.org/protocol#The_Messages_OffsetFetch; every broker from 0.8.2 to 4 takes version 1.)
"""

from aiokafka.protocol.commit import OffsetFetchRequest, OffsetFetchRequest_v1


def ask_for_offsets_by_partition() -> None:
    """Hold every consumer of this process to version 1 of OffsetFetch. To be called before the first is made; may be
    called again."""
    OffsetFetchRequest._CLASSES = (OffsetFetchRequest_v1,)  # noqa: SLF001 -- there is no public way to choose a version
