"""Connections to the embedded brokers of tests, and damage done to their logs."""

import struct
from pathlib import Path
from typing import Literal

from aiokafka.record.util import calc_crc32c

from schemas.settings import KafkaConnection

Damage = Literal["checksum", "codec", "content"]

_CRC, _ATTRIBUTES, _RECORDS = 17, 21, 61  # where they begin in a batch of version 2
_UNKNOWN_CODEC = 7


def plaintext(bootstrap_servers: str) -> KafkaConnection:
    return KafkaConnection(bootstrap_servers=bootstrap_servers)


def damage_batch(data_dir: Path, topic: str, partition: int, offset: int, how: Damage) -> tuple[int, int]:
    """Damage the batch that holds the offset; its first and last offset.

    `checksum` changes a byte; `codec` names one that nobody knows and `content` puts in bytes that are no records, both
    under a right checksum.
    """
    segment = data_dir / "kafka" / "log" / f"{topic}-{partition}" / f"{0:020}.log"
    log = bytearray(segment.read_bytes())
    start = 0
    while True:
        first, length = struct.unpack_from(">qi", log, start)
        (delta,) = struct.unpack_from(">i", log, start + 23)
        if first <= offset <= first + delta:
            break
        start += 12 + length
    end = start + 12 + length
    if how == "checksum":
        log[end - 1] ^= 0xFF
    else:
        if how == "codec":
            log[start + _ATTRIBUTES + 1] |= _UNKNOWN_CODEC
        else:
            log[start + _RECORDS : end] = b"\xff" * (end - start - _RECORDS)
        struct.pack_into(">I", log, start + _CRC, calc_crc32c(bytes(log[start + _ATTRIBUTES : end])))
    with segment.open("r+b") as file:
        file.seek(start)
        file.write(log[start:end])
    return first, first + delta
