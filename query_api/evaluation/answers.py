"""What came back for one question in one approach: the little of an answer that figures are made of."""

from collections.abc import Mapping

import msgspec


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """`documents`, `scores` and `confidences` are those of the hits, best first; `stages` the seconds the service's
    answer gives for each of its steps, `first_hit_seconds` and `seconds` those until the first hit and the end were
    here."""

    question_id: str
    documents: tuple[str, ...]
    scores: tuple[float, ...]
    confidences: tuple[float | None, ...]
    stages: Mapping[str, float]
    first_hit_seconds: float | None
    seconds: float
    failed_channels: Mapping[str, str]
