"""A master whose tables a test sets: answers the requests of a slave that copies them."""

from core_broker.remoting.bodies import KVTable, encode_body
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.state.consumer_offsets import ConsumerOffsets
from core_broker.state.delay_progress import DelayProgress
from core_broker.state.groups import GroupTable
from core_broker.state.topics import TopicTable
from tests.support.scripted_peer import ScriptedPeer, ok
from tests.support.stores import Bench


class ScriptedMaster(ScriptedPeer):
    """Answers the requests of a slave from tables."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench
        self.topics, self.groups = TopicTable(), GroupTable()
        self.offsets, self.delays = ConsumerOffsets(), DelayProgress()
        self.on(RequestCode.GET_ALL_TOPIC_CONFIG, lambda _: ok(body=self.topics.encode()))
        self.on(
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, lambda _: ok(body=self.groups.encode())
        )
        self.on(RequestCode.GET_ALL_CONSUMER_OFFSET, lambda _: ok(body=self.offsets.encode()))
        self.on(RequestCode.GET_ALL_DELAY_OFFSET, lambda _: ok(body=self.delays.encode()))
        self.on(RequestCode.GET_BROKER_RUNTIME_INFO, self._runtime)

    def _runtime(self, request: RemotingCommand) -> RemotingCommand:
        end = self.bench.store.max_offset_physical
        table = {"commitLogMinOffset": "0", "commitLogMaxOffset": str(end), "bootTimestamp": "1"}
        return ok(body=encode_body(KVTable(table=table)))
