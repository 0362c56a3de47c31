"""The page of a whole `segtail demo`, Spark and agent included, in a real Chromium: what a newcomer sees within a minute."""

import urllib.request
from collections.abc import Iterator

import pytest

from tests.broker.kafka import free_ports
from tests.processes import segtail, until
from tests.site.browser import Browser, browsing

pytestmark = pytest.mark.spark

SECONDS = 600
"""A machine with nothing else to do shows the last of it after 52."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, java_home: object) -> Iterator[Browser]:
    directory = tmp_path_factory.mktemp("demo")
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    with segtail("demo", "--listen", listen, said=directory / "said", environ={"TMPDIR": str(directory)}) as demo, browsing() as started:
        until("the demo serves", lambda: answers(f"http://{listen}/") or not demo.running(), SECONDS)
        assert demo.running(), demo.said
        started.base = f"http://{listen}"
        started.resize(1280)
        yield started


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def seen(browser: Browser, words: str) -> bool:
    browser.open("/")
    return any(words in each.text for each in browser.every(".problem"))


def test_the_stuck_transaction_is_seen_opened_and_its_command_copied(browser: Browser) -> None:
    until("it is seen", lambda: seen(browser, "Stuck transactions in topic payments"), SECONDS)
    browser.console()  # until the job had answers the browser said what it had not got
    problem = next(each for each in browser.every(".problem") if "Stuck transactions" in each.text)
    problem.find_element("link text", "partition payments-2").click()
    browser.wait_for("location.pathname == '/partitions/payments/2'")
    assert "stuck" in browser.find("#transactions").text
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    browser.find("#transactions button").click()
    browser.wait_for("window.copied")
    copied = str(browser.run("return window.copied"))
    assert copied == "kafka-transactions.sh --bootstrap-server 127.0.0.1:9092 describe --transactional-id billing-batch"
    assert browser.console() == []


def test_within_the_same_minute_all_else_that_is_wrong_there_is_seen(browser: Browser) -> None:
    until("a group is held up", lambda: seen(browser, "Group ledger waits for an open transaction"), SECONDS)
    until("retention is blocked", lambda: seen(browser, "Retention of topic mobile.events is blocked"), SECONDS)
    until("a transaction hangs", lambda: seen(browser, "Hanging transactions in topic invoices"), SECONDS)
    assert browser.console() == []
    assert browser.accessibility_faults() == []
