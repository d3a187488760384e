"""processors/send.py: with SYNC_FLUSH the answer waits for the disk, unless it should not."""

from tests.support.broker_requests import send_header
from tests.unit.processors.conftest import MakeDesk


class TestSyncFlush:
    async def test_the_answer_waits_for_the_disk(self, make_desk: MakeDesk) -> None:
        desk = make_desk(flush_disk_type="SYNC_FLUSH")
        request = desk.request(310, send_header(desk.topic()), b"hi")
        assert desk.give(request) is None
        for lane in desk.lanes:
            lane.run()
        assert desk.client.answers[request.opaque].code == 0

    async def test_a_producer_that_does_not_want_to_wait(self, make_desk: MakeDesk) -> None:
        desk = make_desk(flush_disk_type="SYNC_FLUSH")
        response = desk.give(desk.request(310, send_header(desk.topic(), "WAIT\x01false"), b"hi"))
        assert response is not None
        assert response.code == 0

    async def test_a_disk_that_is_late_is_a_success_of_its_own_kind(
        self, make_desk: MakeDesk
    ) -> None:
        desk = make_desk(flush_disk_type="SYNC_FLUSH")
        request = desk.request(310, send_header(desk.topic()), b"hi")
        desk.give(request)
        desk.ctx.store.tick(desk.now_ms)
        assert desk.client.answers == {}
        desk.ctx.store.tick(desk.now_ms + desk.ctx.config.sync_flush_timeout)
        answer = desk.client.answers[request.opaque]
        assert answer.code == 10
        assert answer.ext_fields["queueOffset"] == "0"
