"""Refusal of replayed sends: a signed send is accepted once, and only near its born timestamp.

A captured frame is valid for ever under RocketMQ's signatures. With a window, the born timestamp of
a send, which the signature covers, must lie within the window around the broker's time, and the
signature must be new. Two Bloom filters remember the signatures of the last two to four windows.
The filters never miss a replay; a false hit (below 1 in 1,000 up to `SIGNATURES_MAX` sends per
filter) is refused like a replay, and the client's retry has a new timestamp. Requests without a
born timestamp, such as pulls and heartbeats, repeat legitimately and are not limited.
"""

import logging
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable

from core_broker.auth.contracts import Established, Identity, Refusal, Request
from core_broker.auth.signature import SIGNATURE
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.codes import ResponseCode

log = logging.getLogger(__name__)

#: Bits of one filter: 8 MiB.
FILTER_BITS = 26
#: Bits of the filter that a signature sets. 6 times 26 bits are a part of the signature's 160 bits.
PROBES = 6
#: Sends in one filter up to which false hits are rare; more sends are remembered, too.
SIGNATURES_MAX = 4_000_000

_MASK = (1 << FILTER_BITS) - 1
#: Ext field with the born timestamp, by request code.
_BORN: dict[int, str] = {
    Code.SEND_MESSAGE: "bornTimestamp",
    Code.SEND_MESSAGE_V2: "g",
    Code.SEND_BATCH_MESSAGE: "g",
}


class ReplayWindow:
    """An observer of a gate that refuses old and repeated sends; `window_s` is in seconds."""

    def __init__(self, window_s: int, now_ms: Callable[[], int]) -> None:
        self._window_ms = window_s * 1000
        self._now_ms = now_ms
        self._newer = bytearray(1 << (FILTER_BITS - 3))
        self._older = bytearray(1 << (FILTER_BITS - 3))
        self._count = 0
        self._rotated_ms = now_ms()

    def before(self, address: str, request: Request) -> None:
        """Do nothing: only sends with a valid signature are remembered."""

    def refused(self, address: str, request: Request, refusal: Refusal) -> None:
        """Do nothing: a refused send is not remembered."""

    def admitted(self, address: str, request: Request, identity: Identity) -> None:
        """Refuse a signed send that is too old, too new or repeated."""
        born_field = _BORN.get(request.code)
        if born_field is None or identity.how is not Established.SIGNATURE:
            return
        now_ms = self._now_ms()
        try:
            born_ms = int(request.ext_fields[born_field])
            digest = int.from_bytes(b64decode(request.ext_fields[SIGNATURE]), "big")
        except (KeyError, ValueError, NotBase64):
            raise self._refusal(identity, "the send has no readable born timestamp") from None
        if abs(now_ms - born_ms) > self._window_ms:
            raise self._refusal(identity, "the born timestamp is too far from the broker's time")
        self._rotate(now_ms)
        if self._has(self._older, digest) or self._has(self._newer, digest):
            raise self._refusal(identity, "the signature was used before")
        self._add(digest)

    def _refusal(self, identity: Identity, why: str) -> Refusal:
        return Refusal(
            ResponseCode.NO_PERMISSION,
            f"{why} (accessReplayWindowSeconds={self._window_ms // 1000})",
            "replayed",
            account=identity.account,
        )

    def _rotate(self, now_ms: int) -> None:
        # A send is valid from a window before to a window after its born timestamp.
        if now_ms - self._rotated_ms > 2 * self._window_ms:
            self._older, self._newer = self._newer, bytearray(1 << (FILTER_BITS - 3))
            self._rotated_ms, self._count = now_ms, 0

    @staticmethod
    def _has(bits: bytearray, digest: int) -> bool:
        for _ in range(PROBES):
            bit = digest & _MASK
            if not bits[bit >> 3] >> (bit & 7) & 1:
                return False
            digest >>= FILTER_BITS
        return True

    def _add(self, digest: int) -> None:
        for _ in range(PROBES):
            bit = digest & _MASK
            self._newer[bit >> 3] |= 1 << (bit & 7)
            digest >>= FILTER_BITS
        self._count += 1
        if self._count == SIGNATURES_MAX + 1:
            log.warning(
                "more than %d sends in %d s: the replay window refuses some new sends, too;"
                " lower accessReplayWindowSeconds",
                SIGNATURES_MAX,
                self._window_ms // 500,
            )
