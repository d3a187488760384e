"""Latency histograms that can be added up.

Percentiles of two minutes cannot be combined; histograms can. A latency of v ms falls into bucket
ceil(log(v) / log(GAMMA)), and bucket 0 holds everything up to 1 ms, so any percentile read from a
sum of buckets is within 1 % of the true one (the scheme of DDSketch). Spark writes the buckets,
the console reads them.
"""

import math
from typing import Final

GAMMA: Final = 1.02
LOG_GAMMA: Final = math.log(GAMMA)


def bucket_of(latency_ms: float) -> int:
    """The bucket of a latency; negative ones count as 0."""
    return math.ceil(math.log(latency_ms) / LOG_GAMMA) if latency_ms > 1 else 0


def bucket_value_ms(bucket: int) -> float:
    """The latency a bucket stands for: within 1 % of all that fell into it."""
    return 2 * GAMMA**bucket / (GAMMA + 1) if bucket else 0.0
