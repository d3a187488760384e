"""Lanes run jobs off the loop, in order, and tell the loop."""

import asyncio
import threading

from core_broker.store.lanes import ThreadLane


async def test_jobs_run_in_order_off_the_loop_and_report_on_it() -> None:
    lane = ThreadLane("test")
    lane.start(asyncio.get_running_loop())
    here = threading.get_ident()
    seen: list[object] = []
    finished = asyncio.Event()

    def fail() -> None:
        raise OSError("broken")

    lane.submit(lambda: seen.append(threading.get_ident() != here), seen.append)
    lane.submit(fail, lambda error: seen.append(str(error)))
    lane.submit(lambda: None, lambda _: finished.set())
    await asyncio.wait_for(finished.wait(), 10)
    lane.close()
    assert seen == [True, None, "broken"]


async def test_close_delivers_what_is_under_way_and_later_jobs_run_at_once() -> None:
    lane = ThreadLane("test")
    lane.start(asyncio.get_running_loop())
    seen: list[object] = []
    lane.submit(lambda: seen.append("job"), seen.append)
    lane.close()
    assert seen == ["job", None]
    lane.submit(lambda: seen.append("late"), seen.append)
    assert seen == ["job", None, "late", None]
    lane.close()


def test_before_the_start_jobs_run_at_once() -> None:
    seen: list[object] = []
    ThreadLane("test").submit(lambda: seen.append("job"), seen.append)
    assert seen == ["job", None]
