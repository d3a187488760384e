"""Lanes run jobs off the loop, in order, and tell the loop."""

import asyncio
import threading

from core_broker.store.io_threads import IoThread


async def test_jobs_run_in_order_off_the_loop_and_report_on_it() -> None:
    executor = IoThread("test")
    executor.start(asyncio.get_running_loop())
    here = threading.get_ident()
    seen: list[object] = []
    finished = asyncio.Event()

    def fail() -> None:
        raise OSError("broken")

    executor.submit(lambda: seen.append(threading.get_ident() != here), seen.append)
    executor.submit(fail, lambda error: seen.append(str(error)))
    executor.submit(lambda: None, lambda _: finished.set())
    await asyncio.wait_for(finished.wait(), 60)
    executor.close()
    assert seen == [True, None, "broken"]


async def test_close_delivers_what_is_under_way_and_later_jobs_run_at_once() -> None:
    executor = IoThread("test")
    executor.start(asyncio.get_running_loop())
    seen: list[object] = []
    executor.submit(lambda: seen.append("job"), seen.append)
    executor.close()
    assert seen == ["job", None]
    executor.submit(lambda: seen.append("late"), seen.append)
    assert seen == ["job", None, "late", None]
    executor.close()


def test_before_the_start_jobs_run_at_once() -> None:
    seen: list[object] = []
    IoThread("test").submit(lambda: seen.append("job"), seen.append)
    assert seen == ["job", None]
