"""The kernel's HMAC-SHA1 is that of the standard library."""

import hmac
import random
from hashlib import sha1

import pytest

from core_broker.auth.signature import SigningKey

kernel = pytest.importorskip(
    "core_broker.kernel.hmac_sha1", reason="the kernel is not in use", exc_type=ImportError
)

pytestmark = pytest.mark.skipif(not kernel.AVAILABLE, reason="Python has no shared OpenSSL")

#: Around the blocks of SHA-1, the collected bytes, and the bytes that are hashed without the GIL.
EDGES = (0, 1, 55, 56, 63, 64, 65, 1023, 1024, 1025, 16383, 16384, 100_000)


@pytest.mark.parametrize("secret", ["", "k", "12345678", "s" * 63, "s" * 64, "s" * 65, "主题" * 40])
def test_digests_of_all_lengths(secret: str) -> None:
    rng = random.Random(len(secret))
    key = kernel.HmacKey(SigningKey(secret).block())
    for body_bytes in EDGES:
        body = rng.randbytes(body_bytes)
        values = [rng.randbytes(rng.choice([0, 1, 3, 20, 64, *EDGES])) for _ in range(12)]
        expected = hmac.new(secret.encode(), b"".join(values) + body, sha1).digest()
        # Twice: the first request must leave nothing behind for the next one.
        assert key.digest(values, body) == expected
        assert key.digest(values, body) == expected


def test_a_key_longer_than_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 64 bytes"):
        kernel.HmacKey(b"k" * 65)
