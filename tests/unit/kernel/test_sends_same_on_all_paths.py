"""Sends on all paths: equal bytes in, equal answers, equal files."""

import random
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_broker.fastpath import has_kernel
from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from core_broker.message.properties import TIMER_PROPERTIES
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from tests.support.send_frames import common_case_frame, frame
from tests.support.two_paths import OnePath, compare

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

TOPICS = (("T", 4), ("Other-Topic", 1), ("%DLQ%g", 1), ("%RETRY%g", 1))

names = st.sampled_from(
    [
        "KEYS",
        "TAGS",
        "UNIQ_KEY",
        "WAIT",
        "CLUSTER",
        "MSG_REGION",
        "TRACE_ON",
        "DELAY",
        "TRAN_MSG",
        "TIMER_DELAY_SEC",
        "TIMER_DELAY_MS",
        "TIMER_DELIVER_MS",
        "a",
        "user",
        "é",
        "a b",
    ]
)
values = st.one_of(
    st.sampled_from(["", "x", "true", "false", "0", "1", "k1 k2  k3", " ", "TagA", "Aa", "BB"]),
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x01\x02"), max_size=12),
)
properties = st.one_of(
    st.lists(st.tuples(names, values), max_size=6).map(
        lambda pairs: "\x02".join(f"{name}\x01{value}" for name, value in pairs)
    ),
    st.text(alphabet='aK\x01\x02 é\\"/', max_size=20),
)
numbers = st.one_of(
    st.integers(0, 5).map(str),
    st.sampled_from(
        ["-1", "00", "01", "+1", " 1", "1.0", "", "2147483648", "99999999999999999999"]
    ),
    st.integers(-(2**63), 2**63 - 1).map(str),
)
common_number = st.integers(0, 3).map(str)


def ext_fields(rare_value: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, str]]:
    """Fields of a send, some of which may be anything."""
    required = {
        "a": st.just("PG"),
        "b": st.sampled_from(["T", "T", "T", "Other-Topic", "New", "%RETRY%g", "%DLQ%g", "", "é"]),
        "c": st.just("TBW102"),
        "d": st.one_of(st.just("4"), rare_value),
        "e": st.one_of(common_number, rare_value),
        "f": st.one_of(st.sampled_from(["0", "0", "1", "2", "4", "8", "16", "768"]), rare_value),
        "g": st.one_of(st.just("1700000000123"), rare_value),
        "h": st.one_of(st.sampled_from(["0", "7", "-7", "2147483647"]), rare_value),
    }
    optional: dict[str, st.SearchStrategy[str]] = {
        "i": properties,
        "j": st.one_of(st.just("0"), rare_value),
        "k": st.sampled_from(["false", "true", "TRUE", "no"]),
        "l": st.one_of(st.just("16"), rare_value),
        "m": st.sampled_from(["false", "false", "true", "1"]),
        "n": st.just("b"),
        "zz": st.just("zz"),
    }
    return st.fixed_dictionaries(required, optional=optional)


bodies = st.one_of(
    st.binary(max_size=60),
    st.just(b"z" * 5000),
    st.lists(
        st.builds(
            lambda body, text: Message("T", body, properties=text),
            st.binary(max_size=20),
            st.dictionaries(names, values, max_size=3),
        ),
        min_size=1,
        max_size=5,
    ).map(encode_batch),
)


sends = st.builds(
    frame,
    ext_fields(numbers),
    bodies,
    code=st.sampled_from([310, 310, 310, 320, 10, 3100]),
    flag=st.sampled_from([0, 0, 0, 0, 2]),
    opaque=st.integers(0, 2**31 - 1),
    spaces=st.sampled_from([False, False, False, True]),
)
common_sends = st.builds(
    frame,
    ext_fields(common_number),
    st.binary(max_size=60),
    code=st.just(310),
    flag=st.just(0),
    opaque=st.integers(0, 2**31 - 1),
    spaces=st.just(False),
)
said = st.tuples(
    st.integers(0, 2), st.lists(st.one_of(common_sends, sends), max_size=4).map(b"".join)
)
turns = st.lists(st.lists(said, max_size=4), max_size=4)


@settings(deadline=None, max_examples=80)
@given(
    turns=turns,
    wishes=st.fixed_dictionaries(
        {
            "flush_disk_type": st.sampled_from(["ASYNC_FLUSH", "SYNC_FLUSH"]),
            "trace_topic_enable": st.booleans(),
        }
    ),
)
async def test_random_sends(
    turns: list[list[tuple[int, bytes]]], wishes: dict[str, object]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await compare(Path(folder), turns, TOPICS, max_message_size=4096, **wishes)


async def test_frames_cut_anywhere(tmp_path: Path) -> None:
    """However the bytes fall into reads, a fast path takes every message."""
    rng = random.Random(7)
    stream = b"".join(
        common_case_frame(number, rng.randbytes(rng.randrange(900))) for number in range(60)
    )
    turns = []
    while stream:
        count = rng.randrange(1, 3000)
        turns.append([(0, stream[:count])])
        stream = stream[count:]
    assert await compare(tmp_path, turns, TOPICS, mapped_file_size_commit_log=1 << 20) == 60


#: Texts for bytes around the names and values of a header.
FOREIGN = ('"', "\\", ":", ",", "{", "}", " ", "`", "A", "z", "1", "é", "\x01", "\\u0061", '"b"')


@pytest.mark.parametrize("seed", range(2))
async def test_headers_with_a_changed_character(tmp_path: Path, seed: int) -> None:
    """Any character of a header replaced, inserted or left out: both paths agree."""
    rng = random.Random(seed)
    whole = common_case_frame(1, b"")[8:].decode()
    turns = []
    for number in range(120):
        at = rng.randrange(len(whole))
        text = whole[:at] + rng.choice(("", *FOREIGN)) + whole[at + rng.randrange(2) :]
        header = text.encode()
        head = struct.pack(">II", 4 + len(header), len(header))
        turns.append([(number, head + header), (number, common_case_frame(2))])
    assert await compare(tmp_path, turns, TOPICS) > 60


async def test_names_of_ext_fields_with_escapes(tmp_path: Path) -> None:
    """The name of a field may be an escape; a field of another case is another field."""
    plain = common_case_frame(1, b"")[8:].decode()
    names = ('"\\u0065":', '"E":', '"ee":', '"":', '"e" :')
    turns = []
    for name in names:
        header = plain.replace('"e":', name).encode()
        turns.append([(0, struct.pack(">II", 4 + len(header), len(header)) + header)])
    assert await compare(tmp_path, turns, TOPICS) == 1


async def test_segments_end_and_files_roll(tmp_path: Path) -> None:
    """A send that does not fit into the segment goes to the slow path, which rolls the log."""
    turns = [
        [(0, b"".join(common_case_frame(10 * turn + n, b"x" * 500) for n in range(10)))]
        for turn in range(20)
    ]
    fast = await compare(tmp_path, turns, TOPICS)
    assert 100 < fast < 200


async def test_batches_take_a_fast_path(tmp_path: Path) -> None:
    batch = [Message("T", b"%d" % n, keys=f"k{n}", tags="A") for n in range(5)]
    body = encode_batch(batch)
    turns = [[(0, common_case_frame(0, body, m="true", i="") + common_case_frame(1))]]
    assert await compare(tmp_path, turns, TOPICS) == 6


async def test_a_frame_larger_than_the_read_buffer(tmp_path: Path) -> None:
    settings_ = {"mapped_file_size_commit_log": 4 << 20}
    turns = [
        [(0, common_case_frame(0, b"x" * 600_000) + common_case_frame(1))],
        [(0, common_case_frame(2))],
    ]
    assert await compare(tmp_path, turns, TOPICS, **settings_) >= 1


async def test_a_producer_of_ours_takes_a_fast_path(tmp_path: Path) -> None:
    from tests.support.broker_requests import send_header

    command = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_header("T", "TAGS\x01A"))
    command.opaque = 5
    assert await compare(tmp_path, [[(0, command.encode())]], TOPICS) == 1


async def test_a_send_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """Earlier sends are stored and answered; offsets continue without a gap."""
    path = OnePath(tmp_path, TOPICS)
    failing, sending = path.peer(), path.peer()
    path.fail_once_at(1)
    with pytest.raises(MemoryError):
        path.hear(failing, common_case_frame(0) + common_case_frame(1))
    path.hear(sending, common_case_frame(4) + common_case_frame(5) + common_case_frame(8))
    told = await path.settle()
    places = [
        [(each.ext_fields["queueId"], each.ext_fields["queueOffset"]) for each in answers]
        for answers in map(FrameSplitter().feed, told)
    ]
    assert places[failing] == [("0", "0")]
    assert places[sending] == [("0", "1"), ("1", "0"), ("0", "2")]
    assert [each.queue_offset for each in await path.broker.messages("T", 0)] == [0, 1, 2]
    await path.close()


@pytest.mark.parametrize("name", sorted(TIMER_PROPERTIES))
async def test_timer_messages_are_refused_on_every_path(tmp_path: Path, name: str) -> None:
    """A single message, a half message and a batch with a timer property store nothing."""
    timer = f"UNIQ_KEY\x01AC\x02{name}\x015000"
    batch = encode_batch([Message("T", b"1"), Message("T", b"2", properties={name: "5000"})])
    frames = [
        common_case_frame(0, i=timer),
        common_case_frame(1, i=f"{timer}\x02TRAN_MSG\x01true", f="4"),
        common_case_frame(2, batch, m="true", i=""),
    ]
    longer = common_case_frame(3, i=f"{name}X\x015000")
    turns = [[(0, each)] for each in (*frames, b"".join(frames), longer)]
    assert await compare(tmp_path / "same", turns, TOPICS) == 1
    path = OnePath(tmp_path / "one", TOPICS)
    producer = path.peer()
    path.hear(producer, b"".join(frames))
    told = await path.settle()
    answers = FrameSplitter().feed(told[producer])
    assert [answer.code for answer in answers] == [ResponseCode.MESSAGE_ILLEGAL] * len(frames)
    assert all(name in (answer.remark or "") for answer in answers)
    assert [await path.broker.messages("T", queue_id) for queue_id in range(4)] == [[]] * 4
    await path.close()
