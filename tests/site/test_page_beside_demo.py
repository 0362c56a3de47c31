"""The page of a job on the demo's broker, Spark and agent included, in a real Chromium: what a newcomer sees within a minute."""

import threading
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from streaming.terminal.cli.demo import _simulated_broker
from tests.jobs import serving
from tests.processes import until
from tests.site.browser import Browser, browsing

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Browser]:
    directory = tmp_path_factory.mktemp("demo")
    with browsing() as started, _simulated_broker(directory / "broker", threading.Event()) as log_dirs:
        properties = str(log_dirs[0].with_name("server.properties"))
        with serving(spark, directory / "checkpoint", *log_dirs, server_properties=properties) as started.base:
            started.resize(1280)
            yield started


def problems(browser: Browser) -> list[str]:
    browser.open("/")
    return list(browser.run("return [...document.querySelectorAll('.problem')].map(each => each.innerText)"))


def see(browser: Browser, words: str) -> None:
    until(f"the page says: {words}", lambda: any(words in each for each in problems(browser)), saw=lambda: problems(browser))


def test_the_stuck_transaction_is_seen_opened_and_its_command_copied(browser: Browser) -> None:
    see(browser, "Stuck transactions in topic payments")
    browser.console()  # until the job had answers the browser said what it had not got
    problem = next(each for each in browser.every(".problem") if "Stuck transactions" in each.text)
    problem.find_element("link text", "partition payments-2").click()
    browser.wait_for("location.pathname == '/partitions/payments/2'")
    assert "stuck" in browser.find("#transactions").text
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    browser.find("#transactions button").click()
    browser.wait_for("window.copied")
    copied = str(browser.run("return window.copied"))
    assert copied.startswith("kafka-transactions.sh --bootstrap-server 127.0.0.1:9092 ")
    assert copied.endswith(" billing-batch")  # which of its commands depends on how near its timeout is
    assert browser.console() == []


def test_within_the_same_minute_all_else_that_is_wrong_there_is_seen(browser: Browser) -> None:
    see(browser, "group ledger in payments-2: held up")
    see(browser, "Retention of topic mobile.events is blocked")
    see(browser, "Hanging transactions in topic invoices")
    assert browser.console() == []
    assert browser.accessibility_faults() == []
