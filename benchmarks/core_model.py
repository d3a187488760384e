"""A model of many brokers on one machine: a section of docs/performance.md.

The machines of the measurements have two cores. The model multiplies the measured rate of one
broker, and names the resource that limits the sum; every assumption is in the text.
"""

from collections.abc import Iterator
from typing import Final

HEADING: Final = "## Model of one broker per core"
CORES: Final = 16
#: Cores for interrupts, the name server and the system.
RESERVED_CORES: Final = 1
#: Sends per second of one broker with a core of its own: 64 x 1 on AMD EPYC, in the results above.
RATE: Final = 89_830
#: Share of that rate that a broker keeps beside busy neighbours. Assumed.
KEPT: Final = 0.9
#: Bytes of a message of 1 KiB in the log, and in a request with its frame and TCP/IP headers.
RECORD_BYTES: Final = 1_250
WIRE_BYTES: Final = 1_450
#: Sequential writes of the disk and capacity of the network, bytes per second. Assumed.
DISK: Final = 2_000_000_000
NETWORK: Final = 25_000_000_000 // 8
#: Memory of a further broker without file pages, MB: the target of the benchmark.
MEMORY_MB: Final = 60
COUNTS: Final = (1, 2, 4, 8, CORES - RESERVED_CORES)

TEXT: Final = """\
**This is a model, not a measurement.** A broker uses one core for its event loop, so a machine with
more cores runs more brokers (`make up ARGS="--brokers N"`): they share name servers and settings,
and nothing else. `make bench ARGS="--only brokers"` measures what two cores can show: the rate of
two brokers to the rate of one with the same load, and start, memory and idle CPU time of a further
broker. The model for {cores} cores assumes:

- Load generators and consumers run on other machines, which the measurements do not have.
- {reserved} core is left to interrupts, name server and system; {brokers} brokers have a core each.
- Each broker keeps {kept:.0%} of {rate:,} sends/s, the rate of one broker beside its load generator
  (64 x 1, 1 KiB, ASYNC_FLUSH); memory bandwidth and page cache are shared. The {kept:.0%} is
  assumed, not measured.
- The disk writes {disk:g} GB/s in sequence, {record:,} bytes for a message.
- The network has {network:g} Gbit/s, {wire:,} bytes for a message.
- Topics have queues on all brokers, and producers use all queues.
- A further broker takes {memory} MB beside the page cache.
"""


def section() -> str:
    """The section of the page."""
    return "\n".join((HEADING, "", TEXT.format(**_facts()), *_table(), ""))


def _facts() -> dict[str, int | float]:
    return {
        "cores": CORES,
        "reserved": RESERVED_CORES,
        "brokers": CORES - RESERVED_CORES,
        "kept": KEPT,
        "rate": RATE,
        "disk": DISK / 1e9,
        "record": RECORD_BYTES,
        "network": NETWORK * 8 / 1e9,
        "wire": WIRE_BYTES,
        "memory": MEMORY_MB,
    }


def limits(brokers: int) -> dict[str, int]:
    """Sends per second that each resource admits."""
    alone = RATE if brokers == 1 else round(RATE * KEPT)
    return {
        "cores": brokers * alone,
        "disk": DISK // RECORD_BYTES,
        "network": NETWORK // WIRE_BYTES,
    }


def _table() -> Iterator[str]:
    yield "| brokers | sends/s by cores | by disk | by network | model | limit | memory |"
    yield "|---:|---:|---:|---:|---:|---|---:|"
    for brokers in COUNTS:
        found = limits(brokers)
        limit = min(found, key=lambda name: found[name])
        cells = (f"{found[name]:,}" for name in ("cores", "disk", "network"))
        yield (
            f"| {brokers} | {' | '.join(cells)} | **{found[limit]:,}** | {limit} | "
            f"{brokers * MEMORY_MB:,} MB |"
        )
