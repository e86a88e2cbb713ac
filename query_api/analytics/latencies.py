"""Percentiles of any number of latencies in fixed memory."""

import math

import numpy as np
from numpy.typing import NDArray

from schemas.analytics import Latency

LEAST_SECONDS = 1e-5
GROWTH = 1.02  # from one bucket to the next; a percentile told is within 1 % of the true one
BUCKETS = 1_000  # up to an hour


class Latencies:
    """Counts in buckets that grow geometrically (DDSketch: Masson, Rim, Lee 2019), so errors are relative."""

    def __init__(self) -> None:
        self._counts: NDArray[np.int64] = np.zeros(BUCKETS, dtype=np.int64)  # (BUCKETS,)

    def add(self, seconds: float) -> None:
        within = max(seconds, LEAST_SECONDS) / LEAST_SECONDS
        self._counts[min(math.ceil(math.log(within, GROWTH)), BUCKETS - 1)] += 1

    def percentile(self, share: float) -> float | None:
        """The least latency that is at or above `share` (0 to 1) of all; None of none."""
        total = int(self._counts.sum())
        if not total:
            return None
        wanted = max(1, math.ceil(share * total))
        bucket = int(np.searchsorted(np.cumsum(self._counts), wanted))
        middle: float = LEAST_SECONDS * GROWTH**bucket * 2 / (1 + GROWTH)
        return float(f"{middle:.3g}")

    def told(self) -> Latency:
        p50, p90, p95, p99 = (self.percentile(share) for share in (0.5, 0.9, 0.95, 0.99))
        return Latency(searches=int(self._counts.sum()), p50=p50, p90=p90, p95=p95, p99=p99)
