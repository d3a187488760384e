"""state/topics.py, groups.py, consumer_offsets.py and day_totals.py."""

import json

import pytest

from core_broker.errors import ProtocolError
from core_broker.remoting.bodies import DataVersion, SubscriptionGroupConfig, TopicConfig
from core_broker.state import consumer_offsets
from core_broker.state.consumer_offsets import ConsumerOffsets
from core_broker.state.day_totals import DayTotals, Totals
from core_broker.state.encoded_members import CHUNK_ENTRIES
from core_broker.state.groups import GroupTable
from core_broker.state.topics import TopicTable, perm_text, system_topics, topic_text

NOW = 1_700_000_000_000


def broker_topics(*, auto_create: bool = True, trace: str | None = None) -> list[TopicConfig]:
    return system_topics(
        cluster="C",
        broker="b",
        template_queues=8,
        delay_levels=18,
        auto_create=auto_create,
        cluster_topic=True,
        broker_topic=True,
        trace_topic=trace,
    )


@pytest.fixture
def table() -> TopicTable:
    table = TopicTable()
    table.add_system_topics(broker_topics())
    return table


class TestTopics:
    def test_system_topics_are_those_of_a_4_9_broker(self) -> None:
        shown = {
            each.topic_name: (each.read_queue_nums, each.perm)
            for each in broker_topics(trace="RMQ_SYS_TRACE_TOPIC")
        }
        assert shown == {
            "SELF_TEST_TOPIC": (1, 6),
            "BenchmarkTest": (1024, 6),
            "C": (16, 7),
            "b": (1, 7),
            "OFFSET_MOVED_EVENT": (1, 6),
            "SCHEDULE_TOPIC_XXXX": (18, 6),
            "C_REPLY_TOPIC": (1, 6),
            "TBW102": (8, 7),
            "RMQ_SYS_TRACE_TOPIC": (1, 6),
        }

    def test_without_auto_create_there_is_no_template(self) -> None:
        assert "TBW102" not in {each.topic_name for each in broker_topics(auto_create=False)}

    @pytest.mark.parametrize(("asked", "queues"), [(4, 4), (8, 8), (16, 8), (0, 1), (-5, 1)])
    def test_a_topic_inherits_from_its_template(
        self, table: TopicTable, asked: int, queues: int
    ) -> None:
        topic = table.inherit("T", "TBW102", asked, sys_flag=1, now_ms=NOW)
        assert topic == TopicConfig(
            topic_name="T",
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=6,
            topic_sys_flag=1,
        )
        assert table.get("T") == topic
        assert table.version == DataVersion(NOW, 1)

    @pytest.mark.parametrize("template", ["SELF_TEST_TOPIC", "unknown"])
    def test_only_templates_with_the_inherit_bit_are_inherited(
        self, table: TopicTable, template: str
    ) -> None:
        assert table.inherit("T", template, 4, sys_flag=0, now_ms=NOW) is None
        assert table.get("T") is None

    @pytest.mark.parametrize("name", ["", " ", "a b", "ü", "x" * 128, "a/b", ".."])
    def test_illegal_names_make_no_topic(self, table: TopicTable, name: str) -> None:
        assert table.inherit(name, "TBW102", 4, sys_flag=0, now_ms=NOW) is None
        assert table.ensure(name, 1, 6, now_ms=NOW) == (None, False)
        assert table.version.counter == 0

    def test_ensure_makes_once_and_leaves_alone(self, table: TopicTable) -> None:
        made, was_made = table.ensure("%DLQ%G", 1, 2, now_ms=NOW)
        assert was_made
        assert made is not None
        assert made.perm == 2
        assert table.ensure("%DLQ%G", 9, 6, now_ms=NOW) == (made, False)

    def test_retry_and_dead_letter_topics_are_not_limited_by_the_number_of_topics(
        self, table: TopicTable
    ) -> None:
        before = table.limited_count
        for name in ("%RETRY%G", "%DLQ%G", "T", "T", "U"):
            table.ensure(name, 1, 6, now_ms=NOW)
        assert table.limited_count == before + 2
        for name in ("%RETRY%G", "U"):
            table.remove(name, NOW)
        assert table.limited_count == before + 1
        again = TopicTable()
        again.restore(table.encode())
        assert again.limited_count == before + 1

    def test_a_creation_encodes_one_chunk_however_large_the_table(self, table: TopicTable) -> None:
        for number in range(10_000):
            table.put(TopicConfig(topic_name=f"t{number}"), NOW)
        table.encode()
        for name in ("first", "second", "third"):
            before = table.encoded_count
            table.ensure(name, 1, 6, now_ms=NOW)
            table.encode()
            assert 0 < table.encoded_count - before <= CHUNK_ENTRIES

    def test_only_changes_of_existing_topics_count_as_replacements(self, table: TopicTable) -> None:
        table.put(TopicConfig(topic_name="T"), NOW)
        assert table.replacements == 0
        table.put(TopicConfig(topic_name="T", perm=2), NOW)
        table.apply_order({"T": "b:4"}, NOW)
        table.touch(NOW)
        table.remove("T", NOW)
        assert table.replacements == 4

    def test_known_settings_of_system_topics_survive_a_start(self) -> None:
        table = TopicTable()
        table.put(TopicConfig(topic_name="TBW102", perm=6), NOW)
        table.add_system_topics(broker_topics())
        kept = table.get("TBW102")
        assert kept is not None
        assert kept.perm == 6
        assert "TBW102" in table.system_topics

    def test_removing(self, table: TopicTable) -> None:
        table.put(TopicConfig(topic_name="T"), NOW)
        assert table.remove("T", NOW + 1)
        assert not table.remove("T", NOW + 2)
        assert table.version == DataVersion(NOW + 1, 2)

    def test_the_order_table_of_a_name_server_decides_which_topics_are_ordered(
        self, table: TopicTable
    ) -> None:
        table.put(TopicConfig(topic_name="T"), NOW)
        table.put(TopicConfig(topic_name="U", order=True), NOW)
        changed = table.apply_order({"T": "b:4", "unknown": "b:4"}, NOW)
        assert {each.topic_name: each.order for each in changed} == {"T": True, "U": False}
        assert table.apply_order({"T": "b:4"}, NOW) == []

    def test_the_file_reads_back_and_javas_too(self, table: TopicTable) -> None:
        table.put(TopicConfig(topic_name="T", write_queue_nums=3, order=True), NOW)
        again = TopicTable()
        again.restore(table.encode())
        assert again.get("T") == table.get("T")
        assert again.version == table.version
        java = (
            b'{\n\t"dataVersion":{\n\t\t"counter":7,\n\t\t"timestamp":1\n\t},\n\t'
            b'"topicConfigTable":{\n\t\t"A":{"order":false,"perm":6,"readQueueNums":2,'
            b'"topicFilterType":"SINGLE_TAG","topicName":"A","topicSysFlag":0,"writeQueueNums":2}}}'
        )
        again.restore(java)
        read = again.get("A")
        assert read is not None
        assert read.read_queue_nums == 2
        assert again.version == DataVersion(1, 7)

    def test_malformed_files_are_refused(self, table: TopicTable) -> None:
        before = len(table)
        for garbage in (
            b"{",
            b'{"topicConfigTable":[]}',
            b"\x00\xff",
            b'{"topicConfigTable":{"A":1}}',
        ):
            with pytest.raises(ProtocolError):
                table.restore(garbage)
        assert len(table) == before

    def test_texts_of_java_remarks(self) -> None:
        assert [perm_text(perm) for perm in (0, 2, 4, 6, 7)] == ["---", "-W-", "R--", "RW-", "RWX"]
        assert topic_text(TopicConfig(topic_name="T", read_queue_nums=2, write_queue_nums=3)) == (
            "TopicConfig [topicName=T, readQueueNums=2, writeQueueNums=3, perm=RW-, "
            "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false]"
        )


class TestGroups:
    def test_a_group_is_created_on_first_use_if_allowed(self) -> None:
        table = GroupTable()
        assert table.obtain("G", may_create=False, now_ms=NOW) == (None, False)
        made, was_made = table.obtain("G", may_create=True, now_ms=NOW)
        assert made == SubscriptionGroupConfig(group_name="G")
        assert was_made
        assert table.obtain("G", may_create=True, now_ms=NOW) == (made, False)
        assert table.version == DataVersion(NOW, 1)

    def test_system_groups_always_exist(self) -> None:
        table = GroupTable()
        assert table.get("TOOLS_CONSUMER") is not None
        made, _ = table.obtain("CID_RMQ_SYS_TRANS", may_create=False, now_ms=NOW)
        assert made is not None

    @pytest.mark.parametrize("name", ["", " ", "a b", "x" * 256, "{}"])
    def test_illegal_names_make_no_group(self, name: str) -> None:
        assert GroupTable().obtain(name, may_create=True, now_ms=NOW) == (None, False)

    def test_a_creation_encodes_one_chunk_however_large_the_table(self) -> None:
        table = GroupTable()
        for number in range(10_000):
            table.obtain(f"g{number}", may_create=True, now_ms=NOW)
        table.encode()
        before = table.encoded_count
        table.obtain("G", may_create=True, now_ms=NOW)
        table.encode()
        assert 0 < table.encoded_count - before <= CHUNK_ENTRIES

    def test_the_file_reads_back_and_removing_counts(self) -> None:
        table = GroupTable()
        table.put(SubscriptionGroupConfig(group_name="G", retry_max_times=3), NOW)
        again = GroupTable()
        again.restore(table.encode())
        assert again.get("G") == table.get("G")
        assert again.remove("G", NOW)
        assert not again.remove("G", NOW)
        assert again.version.counter == 2

    def test_garbage_is_refused(self) -> None:
        with pytest.raises(ProtocolError):
            GroupTable().restore(b'{"subscriptionGroupTable":{"G":{}}}')


class TestOffsets:
    def test_commit_forwards_and_backwards(self) -> None:
        offsets = ConsumerOffsets()
        assert offsets.committed("G", "T", 0) is None
        assert offsets.commit("G", "T", 0, 12)
        assert offsets.commit("G", "T", 0, 5)
        assert offsets.committed("G", "T", 0) == 5
        assert offsets.committed("G", "T", 1) is None

    def test_look_ups_by_group_and_topic(self) -> None:
        offsets = ConsumerOffsets()
        for group, topic in (("G", "T"), ("G", "U"), ("H", "T")):
            offsets.commit(group, topic, 0, 1)
        assert sorted(offsets.topics_of("G")) == ["T", "U"]
        assert sorted(offsets.groups_of("T")) == ["G", "H"]
        assert offsets.topics_of("unknown") == []
        assert len(offsets) == 3

    def test_forgetting(self) -> None:
        offsets = ConsumerOffsets()
        for group, topic in (("G", "T"), ("G", "U"), ("H", "T")):
            offsets.commit(group, topic, 0, 1)
        offsets.forget_topic("T")
        assert list(offsets.rows()) == [("G", "U", 0, 1)]
        offsets.forget_group("G")
        offsets.forget_group("G")
        assert len(offsets) == 0

    def test_the_file_reads_back_and_javas_too(self) -> None:
        offsets = ConsumerOffsets()
        offsets.commit("G", "%RETRY%G", 0, 4)
        offsets.commit("G", "T", 1, 2)
        assert json.loads(offsets.encode()) == {
            "offsetTable": {"%RETRY%G@G": {"0": 4}, "T@G": {"1": 2}}
        }
        again = ConsumerOffsets()
        again.restore(offsets.encode())
        assert sorted(again.rows()) == sorted(offsets.rows())
        again.restore(b'{\n\t"offsetTable":{"T@H":{0:14,1:8}\n\t}\n}')
        assert again.committed("H", "T", 1) == 8
        assert len(again) == 3

    def test_slices_are_small_and_together_the_table(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(consumer_offsets, "OFFSETS_PER_SLICE", 6)
        offsets = ConsumerOffsets()
        for group in range(4):
            for topic in range(5):
                for queue_id in range(2):
                    offsets.commit(f"G{group}", f"T{topic}", queue_id, 7)
        slices = list(offsets.slices())
        assert max(part.count(b":7") for part in slices) == 4
        again = ConsumerOffsets()
        again.restore(b"".join(slices))
        assert sorted(again.rows()) == sorted(offsets.rows())
        assert ConsumerOffsets().encode() == b'{"offsetTable":{}}'

    def test_a_table_that_changes_between_slices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(consumer_offsets, "OFFSETS_PER_SLICE", 2)
        offsets = ConsumerOffsets()
        for group in ("kept", "deleted", "last"):
            for topic in ("T", "U"):
                offsets.commit(group, topic, 0, 1)
        slices = offsets.slices()
        parts = [next(slices), next(slices)]
        offsets.forget_group("deleted")
        offsets.forget_topic("U")
        offsets.commit("last", "T", 0, 2)
        offsets.commit("new", "T", 0, 3)
        parts += slices
        again = ConsumerOffsets()
        again.restore(b"".join(parts))
        assert sorted(again.rows()) == [("kept", "T", 0, 1), ("last", "T", 0, 2)]

    def test_bounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(consumer_offsets, "ENTRIES_MAX", 1)
        monkeypatch.setattr(consumer_offsets, "QUEUES_MAX", 2)
        offsets = ConsumerOffsets()
        assert offsets.commit("G", "T", 0, 1)
        assert offsets.commit("G", "T", 1, 1)
        assert not offsets.commit("G", "T", 2, 1)
        assert not offsets.commit("G", "U", 0, 1)
        assert offsets.commit("G", "T", 1, 9), "what is known can always be changed"
        assert offsets.groups_of("U") == []

    def test_every_change_counts(self) -> None:
        offsets = ConsumerOffsets()
        offsets.commit("G", "T", 0, 1)
        before = offsets.changes
        offsets.commit("G", "T", 0, 2)
        assert offsets.changes > before

    def test_garbage_is_refused(self) -> None:
        with pytest.raises(ProtocolError):
            ConsumerOffsets().restore(b'{"offsetTable":{"T@G":{"zero":1}}}')


def test_totals_of_two_midnights() -> None:
    days = DayTotals()
    days.day_begins(Totals(10, 4), 1_000)
    days.day_begins(Totals(30, 9), 2_000)
    assert days.yesterday_morning == Totals(10, 4)
    assert days.today_morning == Totals(30, 9)
