"""Latency histograms that can be added.

Percentiles of two minutes cannot be combined; histograms can. A latency of v ms belongs to bucket
ceil(log(v) / log(GAMMA)), and bucket 0 holds everything up to 1 ms. A percentile from a sum of
buckets is within 1 % of the true percentile (the scheme of DDSketch). Spark writes the buckets, the
console reads them.
"""

import math
from typing import Final

GAMMA: Final = 1.02
LOG_GAMMA: Final = math.log(GAMMA)


def bucket_of(latency_ms: float) -> int:
    """The bucket of a latency; negative latencies count as 0."""
    return math.ceil(math.log(latency_ms) / LOG_GAMMA) if latency_ms > 1 else 0


def bucket_value_ms(bucket: int) -> float:
    """The representative latency of a bucket: within 1 % of every latency in the bucket."""
    return 2 * GAMMA**bucket / (GAMMA + 1) if bucket else 0.0
