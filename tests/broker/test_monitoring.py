"""What an administrator sees of a real broker: the page of a hanging transaction, how it ends, and what dashboards and rules live on."""

import subprocess
import urllib.request
from collections.abc import Iterator

import pytest

from streaming.common.definitions.sections import METRICS, SECTIONS, Section
from tests.alerts.monitoring import PROGRAMS
from tests.broker.monitored import HANGING, TRANSACTIONAL_ID, Monitored, monitored
from tests.broker.oracle import run_tool
from tests.broker.transactions import reported_by
from tests.dashboards.contract import named, samples
from tests.dashboards.panels import all_panels
from tests.processes import until
from tests.tools import require_tool

pytestmark = pytest.mark.spark

_CRASHED = "a start after a crash"
_CORRUPT = "a batch that is damaged"
_EXPIRED = "records that are past their retention when they are written"
_FOLLOWER = "a replica that does not lead"
_FOLLOWER_WITH_PROBLEMS = "a replica that does not lead, with something to tell"
_MISSING = "a replica that is missing"
_MOVED = "a reassignment"
_UNCLEAN = "an unclean election"
NOT_HERE = {metric.name: "a consumer group" for metric in SECTIONS[Section.CONSUMERS] if metric.labels} | {
    "segtail_affected_partition_info": _MISSING,
    "segtail_agent_clock_ahead_seconds": "an agent on another machine",
    "segtail_agent_problem": "an agent that is in trouble",
    "segtail_late_transaction_timeout_timestamp_seconds": "a late transaction that its coordinator will end",
    "segtail_log_dir_blocked_seconds": "a log dir that does not answer",
    "segtail_log_dir_full_timestamp_seconds": "a log dir that grows faster than retention frees it",
    "segtail_log_dir_recovering_bytes": _CRASHED,
    "segtail_partition_last_unclean_election_timestamp_seconds": _UNCLEAN,
    "segtail_partition_local_log_start_offset": "remote storage",
    "segtail_partition_reassigning_replicas": _MOVED,
    "segtail_partition_reassignment_remaining_bytes": _MOVED,
    "segtail_partition_reassignment_remaining_seconds": _MOVED,
    "segtail_partition_recovering": _UNCLEAN,
    "segtail_partition_replica_lag_offsets": _FOLLOWER,
    "segtail_partition_unclean_elections_total": _UNCLEAN,
    "segtail_partition_unclean_lost_offsets_total": _UNCLEAN,
    "segtail_partitions_unobserved": "a second broker",
    "segtail_replica_cleaner_checkpoint_offset": _FOLLOWER_WITH_PROBLEMS,
    "segtail_replica_corrupt_batches": _FOLLOWER_WITH_PROBLEMS,
    "segtail_replica_dirty_ratio": _FOLLOWER_WITH_PROBLEMS,
    "segtail_replica_retention_overdue_seconds": _FOLLOWER_WITH_PROBLEMS,
    "segtail_replica_truncated_committed_offsets_total": _FOLLOWER_WITH_PROBLEMS,
    "segtail_replica_truncations_total": _FOLLOWER_WITH_PROBLEMS,
    "segtail_replicas_omitted": _FOLLOWER_WITH_PROBLEMS,
    "segtail_scrub_blocked_seconds": "a log dir that does not answer",
    "segtail_scrub_corrupt_batch_position_bytes": _CORRUPT,
    "segtail_topic_arrives_expired_delay_seconds": _EXPIRED,
    "segtail_topic_arrives_expired_records": _EXPIRED,
    "segtail_topic_last_unclean_election_timestamp_seconds": _UNCLEAN,
    "segtail_topic_offline_partitions": _MISSING,
    "segtail_topic_retention_overdue_partitions": "a segment that two checks of the broker left past its limit",
    "segtail_topic_unclean_elections_total": _UNCLEAN,
    "segtail_topic_under_min_isr_partitions": _MISSING,
    "segtail_topic_under_replicated_partitions": _MISSING,
}
"""Metrics that a single healthy broker has no series of, and what they need."""


@pytest.fixture(scope="module")
def world(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    for program in (*PROGRAMS, "promtool"):
        require_tool(program)
    with monitored(tmp_path_factory.mktemp("monitored")) as running:
        yield running


def test_every_metric_of_a_panel_is_scraped(world: Monitored) -> None:
    """That each panel's own queries answer is seen on a made-up history, whose labels are those of the definitions as these are."""
    wanted = {name for panel in all_panels() for target in panel.targets for name in named(target.expr)} - NOT_HERE.keys()
    names = 'group by (__name__) ({__name__=~"segtail_.+|scrape_.+"})'

    def absent() -> list[str]:
        return sorted(wanted - {series["metric"]["__name__"] for series in world.monitoring.query(names)})

    assert len(wanted) > 80
    until("every metric that a panel names has samples", lambda: not absent(), saw=absent)


def test_the_page_has_every_metric_with_the_labels_that_it_is_defined_with(world: Monitored) -> None:
    labels = {name: set(metric.labels) for metric in METRICS for name in samples(metric)}
    page = world.job.page()
    wrong = [series for series in page if {name for name, _ in series.labels} - {"le"} != labels[series.name]]
    assert wrong == []

    def unlike() -> set[str]:
        """What is absent and should not be, or is there and should not be: an agent that has just caught up may be in trouble still."""
        return (labels.keys() - {series.name for series in world.job.page()}) ^ NOT_HERE.keys()

    until("the page has all that a healthy broker has, and nothing else", lambda: not unlike(), saw=unlike)


def test_promtool_finds_nothing_to_say_about_the_page(world: Monitored) -> None:
    assert world.job.url is not None
    with urllib.request.urlopen(world.job.url) as served:
        done = subprocess.run([require_tool("promtool"), "check", "metrics"], input=served.read(), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_no_rule_fails(world: Monitored) -> None:
    rules = world.monitoring.rules
    until("every rule is evaluated", lambda: all(rule["health"] != "unknown" for rule in rules()), saw=rules)
    assert [(rule["name"], rule["lastError"]) for rule in rules() if rule["health"] != "ok"] == []


def test_the_page_of_a_hanging_transaction_names_it_and_resolves_by_the_command_that_it_gives(world: Monitored) -> None:
    topic, partition = HANGING
    kafka = world.kafka

    def sent(status: str) -> list[str]:
        return [page.annotations["description"] for page in world.paged("TransactionHanging", status) if page.labels["topic"] == topic]

    (stated,) = until("the page arrives", lambda: sent("firing"), saw=world.monitoring.firing)[:1]
    lines = [line.strip() for line in stated.splitlines()]
    (subject,) = (number for number, line in enumerate(lines) if line.startswith(f"- partition {partition}:"))
    assert f"transactional.id {TRANSACTIONAL_ID}, producer id {world.author.id}," in lines[subject]
    assert reported_by(kafka.nodes[0].port, {topic: partition + 1})[HANGING].opened

    program, *arguments = lines[subject + 1].replace("<host:port>", kafka.bootstrap).split()
    assert program == "kafka-transactions.sh"
    run_tool("transactions", *arguments)
    assert not reported_by(kafka.nodes[0].port, {topic: partition + 1})[HANGING].opened
    until("the page resolves", lambda: sent("resolved"), saw=world.monitoring.firing)
