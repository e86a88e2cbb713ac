"""Orders to pass by a batch that nobody can read, on the curation topic: `<topic>/skip/<partition>:<first>-<last>`.

The key says it all; the value, JSON, says it again for people, with the reason. A null value takes the order back.
"""

import json
import re
from typing import NamedTuple

SKIP = "skip"

_KEY = re.compile(rb"([^/]+)/skip/(\d{1,9}):(\d{1,18})-(\d{1,18})")


class Extent(NamedTuple):
    """The offsets of a batch, both inclusive."""

    topic: str
    partition: int
    first: int
    last: int


def skip_key(extent: Extent) -> bytes:
    return f"{extent.topic}/{SKIP}/{extent.partition}:{extent.first}-{extent.last}".encode()


def encode_skip(extent: Extent, reason: str) -> bytes:
    return json.dumps({**extent._asdict(), "reason": reason}).encode()


def decode_skip(key: bytes | None) -> Extent | None:
    """What a key names; None for a record of another kind."""
    found = _KEY.fullmatch(key or b"")
    if found is None:
        return None
    topic, partition, first, last = found.groups()
    return Extent(topic.decode("utf-8", "replace"), int(partition), int(first), int(last))
