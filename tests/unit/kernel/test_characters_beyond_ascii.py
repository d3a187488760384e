"""Properties with characters beyond ASCII: the kernel takes valid UTF-8, and equals the slow path.

The slow path decodes, hashes and encodes with Python's codecs; the kernel has its own. Malformed
text is for the slow path, which alone refuses or repairs a text.
"""

import random
from pathlib import Path

import pytest

from core_broker.fastpath import has_kernel
from core_broker.remoting.frames import FrameSplitter
from tests.support.access_rules import gate_with, signed
from tests.support.send_frames import common_case_fields, common_case_frame, frame
from tests.support.two_paths import compare, played, same
from tests.unit.kernel.test_batches_and_bodies import LOG_BYTES, batched

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

TOPICS = (("T", 4), ("U", 2))
#: First and last characters of each length of UTF-8, beside the surrogates, and further planes.
EDGES = (
    "\x7f\x80\u07ff\u0800\ud7ff\ue000\ufffd\ufffe\uffff"
    "\U00010000\U0001ffff\U00020000\U000e0001\U0010ffff"
)
TEXTS = {
    "Chinese": "订单",
    "Latin": "é",
    "combining": "e\u0301\u0327x",
    "BOM": "\ufeffk\ufeff",
    "emoji": "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "edges": EDGES,
    "separators": "\u2028\u2029\u0085\u3000\u00a0",
    "right to left": "\u202eشحن\u202c",
    "after ASCII": "order-0000000000000001-单",
    "before ASCII": "单-order-0000000000000001",
    "long": "订单é\U0001f600x" * 700,
}
MALFORMED = {
    "continuation": b"\x80",
    "cut 2": b"\xc3",
    "cut 3": b"\xe4\xb8",
    "cut 4": b"\xf0\x9f\x98",
    "cut by ASCII": b"\xe4\xb8x",
    "overlong 2": b"\xc0\x80",
    "overlong slash": b"\xc1\xaf",
    "overlong 3": b"\xe0\x9f\xbf",
    "overlong 4": b"\xf0\x8f\xbf\xbf",
    "high surrogate": b"\xed\xa0\x80",
    "low surrogate": b"\xed\xbf\xbf",
    "surrogate pair": b"\xed\xa0\xbd\xed\xb8\x80",
    "above U+10FFFF": b"\xf4\x90\x80\x80",
    "lead F5": b"\xf5\x80\x80\x80",
    "lead FF": b"\xff",
    "third byte": b"\xe4\xb8\xc0",
    "fourth byte": b"\xf0\x9f\x98\xc0",
}
#: Escapes that are no character: JSON has surrogates in pairs only.
LONE = ("\ud800", "\udc00", "\ud800x", "\ud800\ud800", "\udc00\ud800", "x\udbff", "\ud83d\\ude00")


def properties(text: str) -> str:
    """Properties with a text in names and values, in all of which the kernel looks."""
    return (
        f"{text}\x01v\x02KEYS\x01{text} {text}2  x{text}\x02UNIQ_KEY\x01{text}AC\x02"
        f"user\x01{text}\x02WAIT\x01true\x02TAGS\x01{text}"
    )


def malformed(text: bytes) -> str:
    """Text for a header of raw bytes."""
    return text.decode("utf-8", "surrogateescape")


async def taken(folder: Path, frames: list[bytes], **settings: object) -> int:
    """Send each frame by a peer of its own, then a common send; return how many the kernel took."""
    turns = [[(number, each)] for number, each in enumerate(frames)]
    turns.append([(len(frames), common_case_frame(0))])
    settings.setdefault("mapped_file_size_commit_log", LOG_BYTES)
    return await compare(folder, turns, TOPICS, **settings) - 1


@pytest.mark.parametrize("escapes", [True, False], ids=["escapes", "UTF-8"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_sends_and_batches_take_the_fast_path(
    tmp_path: Path, text: str, escapes: bool
) -> None:
    short = text[:40]
    frames = [
        common_case_frame(1, i=f"TAGS\x01{text}", escapes=escapes),
        common_case_frame(2, i=properties(short), escapes=escapes),
        common_case_frame(3, i=f"{short}\x01{short}\x02", escapes=escapes)
        + common_case_frame(4, i=f"KEYS\x01{text}", escapes=escapes),
    ]
    batch = b"".join(
        batched(b"%d" % number, each.encode())
        for number, each in enumerate([f"KEYS\x01{text}", "TAGS\x01A", properties(short)])
    )
    frames.append(common_case_frame(5, batch, m="true", i=""))
    assert await taken(tmp_path, frames) == 4 + 3


async def test_characters_of_all_planes(tmp_path: Path) -> None:
    """Seeded texts of every length of UTF-8; a property of random characters or of none."""
    rng = random.Random(1)
    ranges = [(0x20, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)]

    def text(length: int) -> str:
        return "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(length))

    frames, batches = [], []
    for number in range(120):
        some = properties(text(rng.choice([1, 2, 3, 5, 8, 15, 16, 17, 33])))
        frames.append(common_case_frame(number, i=some, escapes=rng.random() < 0.5))
        batches.append(batched(b"%d" % number, some.encode()))
    messages = [b"".join(batches[first : first + 30]) for first in range(0, 120, 30)]
    frames += [common_case_frame(each, body, m="true", i="") for each, body in enumerate(messages)]
    turns = [[(0, b"".join(frames[first : first + 20]))] for first in range(0, len(frames), 20)]
    fast = await compare(tmp_path, turns, TOPICS, mapped_file_size_commit_log=LOG_BYTES)
    assert fast == 120 + 120


@pytest.mark.parametrize("bytes_", MALFORMED.values(), ids=MALFORMED)
async def test_malformed_utf8_is_for_the_slow_path(tmp_path: Path, bytes_: bytes) -> None:
    """The slow path refuses such a header, and stores such a batch with U+FFFD."""
    frames, batches = [], []
    for before, behind in ((b"", b""), (b"k", b"k"), ("单".encode(), b""), (b"", "单".encode())):
        text = before + bytes_ + behind
        for some in (b"TAGS\x01" + text, b"KEYS\x01" + text + b"\x02", text + b"\x01v"):
            frames.append(common_case_frame(1, i=malformed(some), escapes=False))
            batches.append(batched(b"body", "TAGS\x01单".encode()) + batched(b"", some))
    assert await taken(tmp_path / "headers", frames) == 0
    frames = [common_case_frame(1, each, m="true", i="") for each in batches]
    assert await taken(tmp_path / "batches", frames) == 0


@pytest.mark.parametrize("text", LONE, ids=ascii)
async def test_lone_surrogates_are_for_the_slow_path(tmp_path: Path, text: str) -> None:
    frame_ = common_case_frame(1, i=f"KEYS\x01a{text}\x02TAGS\x01{text}")
    if "\\" in text:  # the low surrogate's backslash is an escaped one
        assert b"\\\\ude00" in frame_
    assert await taken(tmp_path, [frame_]) == 0


async def test_random_bytes_are_taken_when_they_are_utf8(tmp_path: Path) -> None:
    """The kernel takes exactly the valid ones of mutated texts, in headers and in batches."""
    rng = random.Random(2)
    alphabet = bytes({*range(0x20, 0x100), *range(0xC0, 0x100)} - {0x22, 0x5C})
    headers, batches, valid = [], [], 0
    for number in range(300):
        text = bytearray("".join(rng.choices(EDGES, k=rng.randrange(1, 4))).encode())
        if rng.random() < 0.6:
            text[rng.randrange(len(text))] = rng.choice(alphabet)
        some = b"KEYS\x01" + bytes(text) + b"\x02TAGS\x01" + bytes(text)
        try:
            some.decode()
            valid += 1
        except UnicodeDecodeError:
            pass
        headers.append(common_case_frame(number, i=malformed(some), escapes=False))
        batches.append(common_case_frame(number, batched(b"x", some), m="true", i=""))
    assert 100 < valid < 250
    assert await taken(tmp_path / "headers", headers) == valid
    assert await taken(tmp_path / "batches", batches) == valid


@pytest.mark.parametrize("escapes", [True, False], ids=["escapes", "UTF-8"])
async def test_only_properties_may_be_beyond_ascii(tmp_path: Path, escapes: bool) -> None:
    changes = [
        {"a": "组"},
        {"b": "题"},
        {"c": "题"},
        {"n": "经纪"},
        {"zz": "é"},
        {"é": "x"},
        {"i": "TAGS\x01é", "n": "é"},
        {"j": "\u0660"},  # a zero of Java and Python
        {"m": "\uff54rue"},
    ]
    frames = [common_case_frame(1, escapes=escapes, **each) for each in changes]
    twice = common_case_frame(1, escapes=escapes, i="TAGS\x01é")
    at = twice.index(b'"j":"0"')
    twice = twice[:at] + b'"i":"a"' + twice[at + len(b'"j":"0"') :]
    assert await taken(tmp_path, [*frames, twice]) == 0


async def test_properties_up_to_the_maximum_size(tmp_path: Path) -> None:
    """The size counts in UTF-8, with the broker's own properties."""
    sizes = range(32_767 - 80, 32_767 + 5)
    frames = []
    for size in sizes:
        text = "KEYS\x01" + "订" * ((size - 5) // 3)
        text += "x" * (size - len(text.encode()))
        assert len(text.encode()) == size
        frames.append(common_case_frame(1, i=text, escapes=False))
    assert 0 < await taken(tmp_path, frames, mapped_file_size_commit_log=8 << 20) < len(frames)


@pytest.mark.parametrize("escapes", [True, False], ids=["escapes", "UTF-8"])
async def test_signed_sends_take_the_fast_path(tmp_path: Path, escapes: bool) -> None:
    """Signatures are over UTF-8, however the header has the characters."""
    fields = signed({**common_case_fields(1), "i": properties("订单\U0001f600")}, b"body")
    right = frame(fields, b"body", code=310, escapes=escapes)
    wrong = frame({**fields, "i": properties("订货")}, b"body", code=310, escapes=escapes)
    play = played([[(0, right)], [(0, right)], [(0, right + wrong + right)]], 1)
    path = await same(tmp_path, play, TOPICS, gate=gate_with)
    assert path.messages_sent == 2
    assert [each.code for each in FrameSplitter().feed(path.told[0])] == [0, 0, 0, 1, 0]
