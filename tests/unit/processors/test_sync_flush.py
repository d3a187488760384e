"""processors/send.py: with SYNC_FLUSH the answer waits for the disk, except with WAIT=false."""

from core_broker.store.put_times import WINDOW_MS
from tests.support.broker_requests import send_header
from tests.unit.processors.conftest import MakeBroker


class TestSyncFlush:
    async def test_the_answer_waits_for_the_disk(self, make_broker: MakeBroker) -> None:
        broker = make_broker(flush_disk_type="SYNC_FLUSH")
        request = broker.request(310, send_header(broker.topic()), b"hi")
        assert broker.give(request) is None
        for executor in broker.executors:
            executor.run()
        assert broker.client.answers[request.opaque].code == 0

    async def test_the_put_time_ends_with_the_flush(self, make_broker: MakeBroker) -> None:
        broker = make_broker(flush_disk_type="SYNC_FLUSH")
        store = broker.ctx.store

        def timed_messages() -> int:
            return sum(store.stats().put_distribution.values())

        store.tick(0)
        broker.give(broker.request(310, send_header(broker.topic()), b"hi"))
        store.tick(WINDOW_MS)
        assert timed_messages() == 0
        for executor in broker.executors:
            executor.run()
        store.tick(2 * WINDOW_MS)
        assert timed_messages() == 1

    async def test_a_producer_with_wait_false(self, make_broker: MakeBroker) -> None:
        broker = make_broker(flush_disk_type="SYNC_FLUSH")
        response = broker.give(
            broker.request(310, send_header(broker.topic(), "WAIT\x01false"), b"hi")
        )
        assert response is not None
        assert response.code == 0

    async def test_a_late_flush_is_answered_flush_disk_timeout(
        self, make_broker: MakeBroker
    ) -> None:
        broker = make_broker(flush_disk_type="SYNC_FLUSH")
        request = broker.request(310, send_header(broker.topic()), b"hi")
        broker.give(request)
        broker.ctx.store.tick(broker.now_ms)
        assert broker.client.answers == {}
        broker.ctx.store.tick(broker.now_ms + broker.ctx.config.sync_flush_timeout)
        answer = broker.client.answers[request.opaque]
        assert answer.code == 10
        assert answer.ext_fields["queueOffset"] == "0"
