"""The alerts on a real Prometheus and Alertmanager, against a page that stands still."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.alerts.monitoring import PROGRAMS, Monitoring, Page, free_addresses, monitoring
from tests.alerts.rendering import Addresses
from tests.processes import until
from tests.serving import answering
from tests.tools import require_tool

pytestmark = [pytest.mark.programs, pytest.mark.xdist_group("alerts/test_monitoring")]  # they share what runs

HEALTHY = """\
segtail_build_info{version="0",spark_version="0",python_version="0"} 1
segtail_agent_up{broker="1",agent="here"} 1
segtail_broker_catching_up{broker="1"} 0
segtail_config_threshold_seconds{name="stuck_after"} 1200
segtail_tail_lag_seconds{broker="1"} 0
segtail_partition_hanging_transactions{broker="1",topic="payments.eu",partition="2"} 0
segtail_partition_open_transactions{broker="1",topic="payments.eu",partition="2"} 0
"""


def hanging(now: float) -> str:
    """Two hanging transactions of one topic, one of a producer that the coordinator still has a name for."""
    where = 'broker="1",topic="payments.eu"'
    first = f'{where},partition="2",producer_id="4711",first_offset="1042"'
    second = f'{where},partition="7",producer_id="4712",first_offset="0"'
    return f"""\
segtail_build_info{{version="0",spark_version="0",python_version="0"}} 1
segtail_agent_up{{broker="1",agent="here"}} 1
segtail_broker_catching_up{{broker="1"}} 0
segtail_config_threshold_seconds{{name="stuck_after"}} 1200
segtail_partition_hanging_transactions{{{where},partition="2"}} 1
segtail_partition_hanging_transactions{{{where},partition="7"}} 1
segtail_partition_oldest_open_transaction_start_timestamp_seconds{{{where},partition="2"}} {now - 3600}
segtail_partition_oldest_open_transaction_last_append_timestamp_seconds{{{where},partition="2"}} {now - 3600}
segtail_late_transaction_start_timestamp_seconds{{{first}}} {now - 3600}
segtail_late_transaction_info{{{first},producer_epoch="3",transactional_id="billing-eu-1",coordinator_state="Empty",verdict="hanging"}} 1
segtail_late_transaction_start_timestamp_seconds{{{second}}} {now - 7200}
segtail_late_transaction_info{{{second},producer_epoch="0",transactional_id="",coordinator_state="",verdict="hanging"}} 1
"""


@dataclass(slots=True)
class Exporter:
    """Serves a page that a test can change."""

    page: str = HEALTHY


@pytest.fixture(scope="module")
def addresses() -> Addresses:
    target, prometheus, alertmanager, webhook = free_addresses(4)
    return Addresses(target=target, prometheus=prometheus, alertmanager=alertmanager, webhook=webhook)


@pytest.fixture(scope="module")
def exporter(addresses: Addresses) -> Iterator[Exporter]:
    made, port = Exporter(), int(addresses.target.rpartition(":")[2])
    with answering(lambda _: (200, made.page.encode()), port, {"Content-Type": "text/plain; version=0.0.4"}):
        yield made


@pytest.fixture(scope="module")
def pages() -> list[Page]:
    return []


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, addresses: Addresses, exporter: Exporter, pages: list[Page]) -> Iterator[Monitoring]:
    for program in PROGRAMS:
        require_tool(program)
    with monitoring(tmp_path_factory.mktemp("monitoring"), addresses, pages.append, hurried=True) as started:
        yield started


@pytest.mark.slow
def test_a_real_prometheus_scrapes_and_evaluates_every_rule(running: Monitoring) -> None:
    until("the page is scraped", lambda: running.query("segtail_build_info"))
    until("every rule is evaluated", lambda: all(rule["health"] != "unknown" for rule in running.rules()))
    assert [(rule["name"], rule.get("lastError")) for rule in running.rules() if rule["health"] != "ok"] == []
    until("a healthy page fires nothing", lambda: not running.firing(), saw=running.firing)


@pytest.mark.slow
def test_a_hanging_transaction_pages_with_its_id_and_command_and_the_page_resolves(
    running: Monitoring, exporter: Exporter, pages: list[Page]
) -> None:
    until("nothing fires", lambda: running.query("segtail_build_info") and not running.firing())
    del pages[:]
    exporter.page = hanging(time.time())
    paged = until("the page arrives", lambda: [page for page in pages if page.labels["alertname"] == "TransactionHanging"])[0]
    assert paged.status == "firing"
    assert paged.labels == {
        "alertname": "TransactionHanging",
        "job": "segtail",
        "topic": "payments.eu",
        "severity": "critical",
        "scope": "partition",
    }
    stated = paged.annotations["description"].splitlines()
    assert stated[0].startswith("Open transactions in topic payments.eu that no coordinator will end: 2.")
    assert stated[1].startswith("- partition 7: transactional.id not known, producer id 4712, open for 2h ")
    assert stated[2] == "  kafka-transactions.sh --bootstrap-server <host:port> abort --topic payments.eu --partition 7 --start-offset 0"
    assert stated[3].startswith("- partition 2: transactional.id billing-eu-1, producer id 4711, open for 1h ")
    assert stated[4] == "  kafka-transactions.sh --bootstrap-server <host:port> abort --topic payments.eu --partition 2 --start-offset 1042"
    assert running.firing() == {"TransactionHanging"}, "one page a topic, and no other alert for the same transactions"

    exporter.page = HEALTHY
    until("the page resolves", lambda: [page for page in pages if page.status == "resolved"])
    assert {page.labels["alertname"] for page in pages if page.status == "firing"} - {"Watchdog"} == {"TransactionHanging"}


def test_a_broker_that_is_down_mutes_what_is_about_itself_and_nothing_else(running: Monitoring) -> None:
    running.post_alerts(
        {"alertname": "BrokerNotWriting", "severity": "critical", "scope": "broker", "job": "k", "broker": "2"},
        {"alertname": "BrokerDown", "severity": "critical", "scope": "broker", "job": "k", "broker": "3"},
        {"alertname": "BrokerNotWriting", "severity": "critical", "scope": "broker", "job": "k", "broker": "3"},
        {"alertname": "AgentDown", "severity": "critical", "scope": "observer", "job": "k", "broker": "3", "agent": "a3"},
        {"alertname": "AgentDown", "severity": "critical", "scope": "observer", "job": "k", "broker": "2", "agent": "a2"},
        {"alertname": "AgentDown", "severity": "critical", "scope": "observer", "job": "k", "agent": "a4"},
        {"alertname": "RetentionOverdue", "severity": "warning", "scope": "partition", "job": "k", "broker": "2"},
        {"alertname": "RetentionOverdue", "severity": "warning", "scope": "partition", "job": "k", "broker": "1"},
        {"alertname": "OfflinePartition", "severity": "critical", "scope": "partition", "job": "k", "topic": "s"},
        {"alertname": "UnderMinIsr", "severity": "critical", "scope": "partition", "job": "k", "topic": "s"},
        {"alertname": "UnderMinIsr", "severity": "critical", "scope": "partition", "job": "k", "topic": "t"},
        {"alertname": "UnderReplicated", "severity": "warning", "scope": "partition", "job": "k", "topic": "u"},
        {"alertname": "TransactionHanging", "severity": "critical", "scope": "partition", "job": "k", "topic": "t"},
        {"alertname": "LastStableOffsetStalled", "severity": "warning", "scope": "partition", "job": "k", "topic": "t"},
        {"alertname": "LastStableOffsetStalled", "severity": "warning", "scope": "partition", "job": "k", "topic": "u"},
        {"alertname": "LastStableOffsetStalled", "severity": "warning", "scope": "partition", "job": "k", "topic": "w"},
        {"alertname": "GroupHeldUp", "severity": "warning", "scope": "group", "job": "k", "group": "g", "topic": "w", "waits": "records"},
        {"alertname": "GroupHeldUp", "severity": "warning", "scope": "group", "job": "k", "group": "g", "topic": "t"},
        {"alertname": "GroupHeldUp", "severity": "warning", "scope": "group", "job": "k", "group": "g", "topic": "u"},
        {"alertname": "GroupHeldUp", "severity": "warning", "scope": "group", "job": "k", "group": "g", "topic": "v", "waits": "commits"},
        {"alertname": "GroupStopped", "severity": "warning", "scope": "group", "job": "k", "group": "g", "topic": "v"},
        {"alertname": "GroupStopped", "severity": "warning", "scope": "group", "job": "k", "group": "h", "topic": "v"},
    )
    wanted = {
        "alertname=BrokerNotWriting broker=2 job=k scope=broker severity=critical": False,
        "alertname=BrokerDown broker=3 job=k scope=broker severity=critical": False,
        "alertname=BrokerNotWriting broker=3 job=k scope=broker severity=critical": True,
        "agent=a3 alertname=AgentDown broker=3 job=k scope=observer severity=critical": True,
        "agent=a2 alertname=AgentDown broker=2 job=k scope=observer severity=critical": False,
        "agent=a4 alertname=AgentDown job=k scope=observer severity=critical": False,
        "alertname=RetentionOverdue broker=2 job=k scope=partition severity=warning": True,
        "alertname=RetentionOverdue broker=1 job=k scope=partition severity=warning": False,
        "alertname=OfflinePartition job=k scope=partition severity=critical topic=s": False,
        "alertname=UnderMinIsr job=k scope=partition severity=critical topic=s": True,
        "alertname=UnderMinIsr job=k scope=partition severity=critical topic=t": False,
        "alertname=UnderReplicated job=k scope=partition severity=warning topic=u": False,
        "alertname=TransactionHanging job=k scope=partition severity=critical topic=t": False,
        "alertname=LastStableOffsetStalled job=k scope=partition severity=warning topic=t": True,
        "alertname=LastStableOffsetStalled job=k scope=partition severity=warning topic=u": False,
        "alertname=LastStableOffsetStalled job=k scope=partition severity=warning topic=w": True,
        "alertname=GroupHeldUp group=g job=k scope=group severity=warning topic=w waits=records": False,
        "alertname=GroupHeldUp group=g job=k scope=group severity=warning topic=t": True,
        "alertname=GroupHeldUp group=g job=k scope=group severity=warning topic=u": False,
        "alertname=GroupHeldUp group=g job=k scope=group severity=warning topic=v waits=commits": False,
        "alertname=GroupStopped group=g job=k scope=group severity=warning topic=v": True,
        "alertname=GroupStopped group=h job=k scope=group severity=warning topic=v": False,
    }
    until("what is muted is muted", lambda: wanted.items() <= running.muted().items(), saw=running.muted)
