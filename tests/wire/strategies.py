"""Hypothesis strategies for values on the wire."""

from hypothesis import strategies as st

from core_broker.message.model import MessageInner
from core_broker.remoting.codes import LanguageCode, SerializeType
from core_broker.remoting.command import RemotingCommand

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NON_EMPTY = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
#: Property names and values may not hold the separators.
PROPERTY = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02"), min_size=1, max_size=20
)
HOST = st.tuples(st.ip_addresses().map(str), st.integers(0, 65535))


@st.composite
def commands(draw: st.DrawFn) -> RemotingCommand:
    return RemotingCommand(
        draw(st.integers(0, 65535)),
        draw(st.dictionaries(NON_EMPTY, NON_EMPTY, max_size=5)),
        draw(st.binary(max_size=100)),
        flag=draw(INT32),
        opaque=draw(INT32),
        remark=draw(st.none() | NON_EMPTY),
        language=draw(st.sampled_from(LanguageCode)),
        version=draw(st.integers(0, 65535)),
        serialize_type=draw(st.sampled_from(SerializeType)),
    )


@st.composite
def messages(draw: st.DrawFn) -> MessageInner:
    return MessageInner(
        topic=draw(st.text("abcXYZ019%_-|", min_size=1, max_size=200)),
        queue_id=draw(st.integers(0, 2**31 - 1)),
        body=draw(st.binary(max_size=200)),
        properties=draw(st.dictionaries(PROPERTY, PROPERTY, max_size=5)),
        flag=draw(INT32),
        sys_flag=draw(st.integers(0, 0x7FF)) & ~0x30,
        born_timestamp=draw(INT64),
        born_host=draw(HOST),
        store_host=draw(HOST),
        reconsume_times=draw(INT32),
        prepared_transaction_offset=draw(INT64),
    )
