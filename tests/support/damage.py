"""Damage to files, as by disks, crashes and people."""

import random


def damaged(data: bytes, generator: random.Random) -> bytes:
    """Truncate, append, zero, fill with 0xFF, scramble or rotate; any size may result."""
    start = generator.randrange(len(data) + 1)
    count = generator.choice((1, 20, 400, 5000))
    end = min(len(data), start + count)
    return generator.choice(
        (
            data[:start],
            data + generator.randbytes(count),
            data[:start] + bytes(end - start) + data[end:],
            data[:start] + b"\xff" * (end - start) + data[end:],
            data[:start] + generator.randbytes(end - start) + data[end:],
            data[end:] + data[:end],
            b"",
        )
    )
