"""state/consumers.py and state/producers.py: connected clients and notifications."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from core_broker.remoting.bodies import ConsumerData, SubscriptionData
from core_broker.state.channels import CHANNEL_EXPIRED_MS, ClientChannel
from core_broker.state.consumers import ConsumerSessions
from core_broker.state.producers import ProducerSessions


def client(channel: str, client_id: str = "", seen_ms: int = 0) -> ClientChannel:
    return ClientChannel(channel, client_id or f"id-{channel}", 0, 409, seen_ms)


def data(group: str, *topics: str, version: int = 1, model: str = "CLUSTERING") -> ConsumerData:
    subscriptions = [SubscriptionData(topic=topic, sub_version=version) for topic in topics]
    return ConsumerData(group_name=group, subscription_data_set=subscriptions, message_model=model)


class TestConsumers:
    def test_only_joining_is_a_change(self) -> None:
        sessions = ConsumerSessions()
        assert sessions.register(client("a"), data("G", "T"))
        assert not sessions.register(client("a", seen_ms=5), data("G", "T"))
        assert sessions.register(client("b"), data("G", "T"))

    def test_a_changed_set_of_topics_is_a_change_in_both_directions(self) -> None:
        sessions = ConsumerSessions()
        sessions.register(client("a"), data("G", "T"))
        assert sessions.register(client("a"), data("G", "T", "U"))
        assert sessions.register(client("a"), data("G", "T"))

    def test_a_newer_expression_causes_no_notification(self) -> None:
        sessions = ConsumerSessions()
        sessions.register(client("a"), data("G", "T", version=2))
        newer = data("G", "T", version=3)
        newer.subscription_data_set[0].sub_string = "A"
        assert not sessions.register(client("a"), newer)
        subscription = sessions.subscription("G", "T")
        assert subscription is not None
        assert (subscription.sub_string, subscription.sub_version) == ("A", 3)

    def test_an_older_expression_is_ignored(self) -> None:
        sessions = ConsumerSessions()
        sessions.register(client("a"), data("G", "T", version=3))
        older = data("G", "T", version=2)
        older.subscription_data_set[0].sub_string = "old"
        sessions.register(client("b"), older)
        subscription = sessions.subscription("G", "T")
        assert subscription is not None
        assert subscription.sub_string == "*"

    def test_members_with_equal_ids_are_listed_twice(self) -> None:
        sessions = ConsumerSessions()
        sessions.register(client("a", "same"), data("G", "T"))
        sessions.register(client("b", "same"), data("G", "T"))
        group = sessions.group("G")
        assert group is not None
        assert group.client_ids() == ["same", "same"]

    def test_the_group_is_removed_with_the_last_member(self) -> None:
        sessions = ConsumerSessions()
        sessions.register(client("a"), data("G", "T"))
        assert sessions.unregister("G", "a")
        assert not sessions.unregister("G", "a")
        assert sessions.group("G") is None
        assert sessions.connections == 0

    def test_a_closed_connection_leaves_all_its_groups(self) -> None:
        sessions = ConsumerSessions()
        for group in ("G1", "G2"):
            sessions.register(client("a"), data(group, "T"))
            sessions.register(client("b"), data(group, "T"))
        assert sessions.disconnect("a") == ["G1", "G2"]
        assert sessions.disconnect("a") == []
        assert sorted(sessions.groups) == ["G1", "G2"]

    def test_members_without_heartbeat_expire(self) -> None:
        sessions = ConsumerSessions()
        sessions.register(client("a", seen_ms=0), data("G", "T"))
        sessions.register(client("b", seen_ms=1), data("G", "T"))
        assert sessions.expired(CHANNEL_EXPIRED_MS) == []
        assert [each.channel for each in sessions.expired(CHANNEL_EXPIRED_MS + 1)] == ["a"]

    def test_look_ups(self) -> None:
        sessions = ConsumerSessions()
        sessions.register(client("a", "id"), data("G", "T", model="BROADCASTING"))
        assert sessions.member("G", "id") is not None
        assert sessions.member("G", "other") is None
        assert sessions.member("H", "id") is None
        assert sessions.groups_of_topic("T") == {"G"}
        assert sessions.groups_of_topic("U") == set()
        assert sessions.has_unsubscribed("G", "U")
        assert not sessions.has_unsubscribed("G", "T")
        assert not sessions.has_unsubscribed("H", "T")
        group = sessions.group("G")
        assert group is not None
        assert group.message_model == "BROADCASTING"


class TestProducers:
    def test_registered_unregistered_disconnected(self) -> None:
        sessions = ProducerSessions()
        sessions.register("P", client("a"))
        sessions.register("P", client("b"))
        sessions.register("Q", client("a"))
        assert [each.channel for each in sessions.members("P")] == ["a", "b"]
        sessions.unregister("P", "a")
        sessions.unregister("P", "a")
        sessions.unregister("R", "a")
        assert [each.channel for each in sessions.members("P")] == ["b"]
        sessions.disconnect("a")
        sessions.disconnect("nobody")
        assert sessions.groups == ["P"]
        assert sessions.connections == 1

    def test_the_members_of_a_group_take_turns(self) -> None:
        sessions = ProducerSessions()
        assert sessions.next_of("P") is None
        for name in ("a", "b", "c"):
            sessions.register("P", client(name, name))
        sessions.register("other", client("d", "d"))
        chosen = [sessions.next_of("P") for _ in range(6)]
        assert sorted(each.client_id for each in chosen if each) == ["a", "a", "b", "b", "c", "c"]

    def test_a_client_is_found_on_its_latest_connection(self) -> None:
        sessions = ProducerSessions()
        sessions.register("P", client("old", "id"))
        sessions.register("Q", client("old", "id"))
        sessions.register("P", client("new", "id"))
        sessions.disconnect("old")
        found = sessions.client("id")
        assert found is not None
        assert found.channel == "new"
        sessions.disconnect("new")
        assert sessions.client("id") is None

    def test_a_changed_client_id_replaces_the_previous_id(self) -> None:
        sessions = ProducerSessions()
        for number in range(5):
            sessions.register(f"P{number % 2}", client("c", f"id{number}"))
        assert [sessions.client(f"id{number}") is not None for number in range(5)] == [
            *([False] * 4),
            True,
        ]
        sessions.unregister("P0", "c")
        assert sessions.client("id4") is not None
        sessions.unregister("P1", "c")
        assert sessions.client("id4") is None
        assert not sessions._by_client_id
        assert not sessions._id_of

    def test_silent_producers_expire(self) -> None:
        sessions = ProducerSessions()
        sessions.register("P", client("a", seen_ms=0))
        assert sessions.expired(CHANNEL_EXPIRED_MS) == []
        assert len(sessions.expired(CHANNEL_EXPIRED_MS + 1)) == 1


class ConsumerMachine(RuleBasedStateMachine):
    """Members are exactly the registered clients that have not left, in any order of events."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions = ConsumerSessions()
        self.model: dict[str, dict[str, set[str]]] = {}

    @rule(
        group=st.sampled_from("GH"),
        channel=st.sampled_from("abc"),
        topics=st.sets(st.sampled_from("TUV")),
    )
    def beat(self, group: str, channel: str, topics: set[str]) -> None:
        members = self.model.setdefault(group, {})
        before = next(reversed(members.values()), set()) if members else set()
        expected = channel not in members or topics != before
        assert self.sessions.register(client(channel), data(group, *sorted(topics))) == expected
        members.pop(channel, None)
        members[channel] = topics

    @rule(group=st.sampled_from("GH"), channel=st.sampled_from("abc"))
    def leave(self, group: str, channel: str) -> None:
        assert self.sessions.unregister(group, channel) == (channel in self.model.get(group, {}))
        self._drop(group, channel)

    @rule(channel=st.sampled_from("abc"))
    def close(self, channel: str) -> None:
        expected = sorted(group for group, members in self.model.items() if channel in members)
        assert self.sessions.disconnect(channel) == expected
        for group in expected:
            self._drop(group, channel)

    def _drop(self, group: str, channel: str) -> None:
        members = self.model.get(group, {})
        topics = next(reversed(members.values()), set()) if members else set()
        members.pop(channel, None)
        if members:
            # Subscriptions stay equal to the latest heartbeat when members leave.
            last = next(reversed(members))
            members[last] = topics
        else:
            self.model.pop(group, None)

    @invariant()
    def members_agree(self) -> None:
        assert set(self.sessions.groups) == set(self.model)
        for name, members in self.model.items():
            group = self.sessions.group(name)
            assert group is not None
            assert set(group.members) == set(members)
            assert set(group.subscriptions) == next(reversed(members.values()))
        connected = {channel for members in self.model.values() for channel in members}
        assert self.sessions.connections == len(connected)


TestConsumerMachine = ConsumerMachine.TestCase
TestConsumerMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
