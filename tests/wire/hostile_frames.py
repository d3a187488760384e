"""Frames that no client should send, from a seed: by grammar, and by damaging recorded ones."""

import json
import random
from collections.abc import Callable, Iterator
from struct import pack

from tests.wire.recorded import recorded

_LENGTHS = (0, 1, 3, 4, 7, 0x7FFFFFFF, 0xFFFFFFFF, 16 * 1024 * 1024, 16 * 1024 * 1024 + 1)
_CODES = (
    100,
    103,
    104,
    105,
    205,
    216,
    318,
    322,
    10,
    11,
    12,
    14,
    15,
    17,
    25,
    34,
    36,
    38,
    41,
    200,
    208,
    310,
    315,
    320,
    321,
)
_NUMBERS = ("1e400", "-0", "99999999999999999999999", "0.5", "NaN", '"7"', "true", "[]", "{}")
_TEXTS = ("", "\x00", "\ud83d\ude00", "../../etc/passwd", "%RETRY%" * 60, "A" * 40_000, "\x01\x02")


def hostile_frames(seed: int) -> Iterator[bytes]:
    """Endless; the same for the same seed."""
    chance = random.Random(seed)
    corpus = [frame.frame() for frame in recorded() if not frame.is_answer]
    makers: tuple[Callable[[], bytes], ...] = (
        lambda: _wrong_lengths(chance, chance.choice(corpus)),
        lambda: _flipped(chance, bytearray(chance.choice(corpus))),
        lambda: _spliced(chance, chance.choice(corpus), chance.choice(corpus)),
        lambda: _json_header(chance),
        lambda: _binary_header(chance),
        lambda: _batch(chance),
        lambda: chance.randbytes(chance.randrange(1, 400)),
    )
    while True:
        yield chance.choice(makers)()


def frame(header: bytes, body: bytes = b"", kind: int = 0) -> bytes:
    """A frame whose own lengths are right."""
    return pack(">II", 4 + len(header) + len(body), kind << 24 | len(header)) + header + body


def _wrong_lengths(chance: random.Random, good: bytes) -> bytes:
    length, word = chance.choice(_LENGTHS), chance.choice(_LENGTHS)
    which = chance.randrange(3)
    head = good[:4] if which == 0 else pack(">I", length)
    return head + (good[4:8] if which == 1 else pack(">I", word)) + good[8:]


def _flipped(chance: random.Random, data: bytearray) -> bytes:
    for _ in range(chance.randrange(1, 8)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def _spliced(chance: random.Random, one: bytes, other: bytes) -> bytes:
    cut = chance.randrange(len(one))
    return one[:cut] + other[chance.randrange(len(other)) :]


def _json_header(chance: random.Random) -> bytes:
    depth = chance.choice((1, 500, 20_000))
    fields = json.dumps({"topic": chance.choice(_TEXTS), "queueId": chance.choice(_TEXTS)})
    header = chance.choice(
        (
            f'{{"code":{chance.choice(_NUMBERS)},"opaque":1}}',
            f'{{"code":{chance.choice(_CODES)},"opaque":{chance.choice(_NUMBERS)}}}',
            f'{{"code":{chance.choice(_CODES)},"extFields":{chance.choice(_NUMBERS)}}}',
            f'{{"code":{chance.choice(_CODES)},"code":{chance.choice(_CODES)},"extFields":{fields}}}',
            '{"code":34,"extFields":' + '{"a":' * depth + "1" + "}" * depth + "}",
            f'{{"code":{chance.choice(_CODES)},"extFields":{fields}}}',
            "[" * depth,
        )
    ).encode("utf-8", "surrogatepass")
    if chance.random() < 0.1:
        header = header.replace(b"code", b"\xff\xfe")
    return frame(header, chance.randbytes(chance.randrange(64)), chance.choice((0, 0, 0, 2, 255)))


def _binary_header(chance: random.Random) -> bytes:
    remark, fields = chance.choice(_LENGTHS), chance.choice(_LENGTHS)
    fixed = pack(">hBhii", chance.choice(_CODES), 0, 409, chance.getrandbits(31), 0)
    header = fixed + pack(">II", remark, fields) + chance.randbytes(chance.randrange(64))
    return frame(header[: chance.randrange(len(header) + 1)], b"", 1)


def _batch(chance: random.Random) -> bytes:
    """A batch whose inner lengths or properties are wrong."""
    fields = {"a": "PG", "b": "FuzzBatch", "c": "TBW102", "d": "1", "e": "0", "f": "0", "g": "1"}
    fields |= {"h": "0", "i": "WAIT\x01true", "j": "0", "k": "false", "m": "true"}
    header = json.dumps({"code": 320, "opaque": 1, "version": 409, "extFields": fields}).encode()
    properties = chance.choice((b"", b"KEYS", b"\x01\x02\x01", b"K\x01\x02\x02V"))
    inner = pack(">IIIII", chance.choice(_LENGTHS), 0, 0, 0, chance.choice(_LENGTHS)) + b"body"
    inner += pack(">H", chance.choice((0, len(properties), 0xFFFF))) + properties
    return frame(header, inner * chance.randrange(1, 4))
