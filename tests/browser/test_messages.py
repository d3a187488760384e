"""Messages in a browser: palette, live tails, continued search, JSON tree."""

import asyncio
import threading
import uuid
from collections.abc import Collection, Iterable
from contextlib import suppress

import pytest
from playwright.sync_api import Page, expect

from core_broker.client import AdminClient, Producer, TopicConfig
from core_broker.errors import TransportError
from core_broker.message.model import Message
from tests.browser.conftest import Gantry
from tests.browser.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

FLOOD_SECONDS = 3
FLOOD_RATE = 5_000


def run(work: object) -> None:
    """Run a coroutine in a separate thread: Playwright has an event loop in this thread."""
    failures: list[BaseException] = []

    def inside() -> None:
        try:
            asyncio.run(work)  # type: ignore[arg-type]
        except BaseException as failure:  # noqa: BLE001 -- raised below, in the test's thread
            failures.append(failure)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


async def make_topic(gantry: Gantry, name: str) -> None:
    async with AdminClient(gantry.namesrv_addr) as admin:
        info = await admin.cluster_info()
        broker = next(iter(info.broker_addr_table.values())).broker_addrs[0]
        config = TopicConfig(topic_name=name, read_queue_nums=4, write_queue_nums=4)
        await admin.create_topic(broker, config)
    await wait_for_topic(gantry, name)


async def wait_for_topic(gantry: Gantry, topic: str) -> None:
    """Wait until the name server knows a topic; it may be starting."""
    async with AdminClient(gantry.namesrv_addr) as admin:
        topics: Collection[str] = ()
        while topic not in topics:
            with suppress(TransportError):
                topics = await admin.topic_list()
            await asyncio.sleep(0.1)


async def send(gantry: Gantry, messages: Iterable[Message]) -> None:
    async with Producer("browser-tests", gantry.namesrv_addr) as producer:
        for message in messages:
            await producer.send(message)


async def flood(gantry: Gantry, topic: str) -> None:
    """Send FLOOD_RATE messages per second for some seconds."""
    async with Producer("flood", gantry.namesrv_addr) as producer:
        for _tenth in range(FLOOD_SECONDS * 10):
            batch = [Message(topic, b"flood")] * (FLOOD_RATE // 10)
            await asyncio.gather(producer.send_batch(batch), asyncio.sleep(0.1))


@pytest.fixture
def topic(gantry: Gantry) -> str:
    name = f"Browsed-orders-{uuid.uuid4().hex[:8]}"
    run(make_topic(gantry, name))
    return name


def follow_live(page: Page, gantry: Gantry, topic: str) -> None:
    page.goto(gantry.page(f"messages/tail/?topic={topic}"))
    expect(page.locator("#tail-state")).to_have_attribute("data-state", "live")


@pytest.mark.must_beat(38)
def test_the_palette_opens_a_topic_by_part_of_its_name(
    page: Page, gantry: Gantry, topic: str
) -> None:
    part = topic.rpartition("-")[2]
    known = f"{gantry.url}/api/v1/clusters/{gantry.cluster}/search?q={part}"
    wait_until(lambda: topic in page.request.get(known).text(), "the console knows the new topic")
    page.goto(gantry.page("jobs/"))
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Topic, group, broker")
    expect(box).to_be_focused()
    for _step in range(6):
        page.keyboard.press("Tab")
        focused = "document.querySelector('#palette').contains(document.activeElement)"
        assert page.evaluate(f"{focused} || document.activeElement === document.body")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.press("Control+k")
    box.press_sequentially(part)
    chosen = page.locator("#palette-list [aria-selected=true]")
    expect(chosen).to_contain_text(topic)
    box.press("ArrowDown")
    expect(chosen).to_contain_text(f"Messages of {topic}")
    box.press("ArrowUp")
    box.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(topic)


@pytest.mark.must_beat(8)
def test_two_tabs_show_all_of_a_hundred(page: Page, gantry: Gantry, topic: str) -> None:
    other = page.context.new_page()
    for tab in (page, other):
        follow_live(tab, gantry, topic)
    run(send(gantry, (Message(topic, b"number %d" % each) for each in range(100))))
    for tab in (page, other):
        expect(tab.locator("#tail-rows tr")).to_have_count(100)
        expect(tab.locator("[data-count=left_out]")).to_have_text("0")
        expect(tab.locator("#tail-rows")).to_contain_text("number 42")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#tail-state")).to_have_attribute("data-state", "still")
    run(send(gantry, [Message(topic, b"after the stop")]))
    expect(other.locator("#tail-rows tr")).to_have_count(101)
    expect(page.locator("#tail-rows tr")).to_have_count(100)
    page.get_by_role("button", name="Start").click()
    run(send(gantry, [Message(topic, b"after the start")]))
    wait_until(lambda: "after the start" in page.locator("#tail-rows").inner_text(), "the new row")
    other.close()


@pytest.mark.must_beat(8)
def test_a_flood_is_counted_and_the_tab_stays_responsive(
    page: Page, gantry: Gantry, topic: str
) -> None:
    follow_live(page, gantry, topic)
    flooding = threading.Thread(target=lambda: run(flood(gantry, topic)))
    flooding.start()
    try:
        left_out = page.locator("[data-count=left_out]")
        wait_until(lambda: left_out.inner_text() != "0", "rows that are left out")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#tail-pause")).to_have_attribute("aria-pressed", "true")
        assert page.locator("#tail-rows tr").count() <= 500
        page.get_by_role("button", name="Pause").click()
    finally:
        flooding.join()
    sent = FLOOD_SECONDS * FLOOD_RATE

    def all_counted() -> bool:
        shown = page.locator("[data-count=shown]").inner_text()
        numbers = [int(text.replace(",", "")) for text in (shown, left_out.inner_text())]
        return sum(numbers) == sent

    wait_until(all_counted, f"shown and left out are {sent} together")


@pytest.mark.must_beat(9)
def test_a_search_goes_on_by_itself_until_everything_was_looked_at(
    page: Page, gantry: Gantry, topic: str
) -> None:
    run(flood(gantry, topic))
    run(send(gantry, [Message(topic, b'{"needle": true}')]))
    run(flood(gantry, topic))
    page.goto(gantry.page(f"messages/?topic={topic}&body=%24.needle&body_test=json"))
    expect(page.locator("#found tbody tr")).to_have_count(1)
    expect(page.locator("#scan")).to_contain_text("30,001 scanned, 1 matched, 0 remaining")


@pytest.mark.must_beat(33)
def test_a_tree_of_json_folds_with_the_keyboard(page: Page, gantry: Gantry, topic: str) -> None:
    evil = '{"a": {"b": "<img src=x onerror=alert(1)>"}}'
    run(send(gantry, [Message(topic, evil.encode(), keys=("<b>key</b>",))]))
    page.goto(gantry.page(f"messages/?topic={topic}"))
    page.locator("td.id a").first.click()
    inner = page.locator(".tree .string")
    expect(inner).to_have_text('"<img src=x onerror=alert(1)>"')
    summary = page.locator(".tree summary").nth(1)
    summary.focus()
    page.keyboard.press("Enter")
    expect(inner).to_be_hidden()
    page.keyboard.press("Enter")
    expect(inner).to_be_visible()
    assert page.locator(".tree img").count() == 0


def test_a_message_is_written_sent_and_sent_again(page: Page, gantry: Gantry, topic: str) -> None:
    page.goto(gantry.page(f"messages/send/?topic={topic}"))
    page.get_by_label("Body", exact=True).fill('{"order": 7}')
    page.get_by_label("Type").select_option("fifo")
    expect(page.get_by_label("Transaction outcome")).to_be_hidden()
    page.get_by_label("Message group").fill("order-7")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("1 message is stored")).to_be_visible()
    page.locator("td.id a").first.click()
    page.get_by_role("link", name="Resend").click()
    expect(page.get_by_label("Message group")).to_have_value("order-7")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("1 message is stored")).to_be_visible()
