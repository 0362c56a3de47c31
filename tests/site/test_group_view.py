"""What the page shows of one consumer group, and how severe it looks."""

from collections.abc import Sequence
from typing import Any

from streaming.broker.protocol.group_json import GroupDetail, GroupFinding, GroupPartition, GroupRebalance, GroupSummary
from streaming.broker.protocol.status_json import WARNING, Status
from streaming.pages.listings.declared_lists import GROUPS
from streaming.pages.site.detail_views import GroupView, group_view
from streaming.pages.site.page_links import Query

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000


def viewed(
    *, summary: dict[str, Any] | None = None, findings: Sequence[GroupFinding] = (), rebalances: Sequence[GroupRebalance] = ()
) -> GroupView:
    found = GroupPartition(topic="t", partition=0, committed=5)
    group = GroupSummary(group="g", partitions=1, members=1, **summary or {})
    detail = GroupDetail(at_ms=NOW_MS, summary=group, partitions=[found], findings=[*findings], rebalances=[*rebalances])
    return group_view(detail, Query(), Status(at_ms=NOW_MS, version="0", ready=True, verdict="", freshness=""))


def test_times_of_a_group_are_each_its_own() -> None:
    times = {"oldest_ms": NOW_MS - HOUR, "loss_ms": NOW_MS + 2 * HOUR, "last_commit_ms": NOW_MS - 3 * HOUR}
    facts = {each.name: each.value.text for each in viewed(summary=times).facts}
    assert [facts[head] for head in ("Oldest unread", "Next loss", "Last commit")] == ["1h ago", "in 2h", "3h ago"]


def test_the_facts_of_a_group_are_the_cells_of_its_row() -> None:
    row = {"lag_records_read_committed": 12_000, "unknown": 1, "verdict": "held", "severity": WARNING, "state": "Stable"}
    facts = {each.name: each.value for each in viewed(summary=row).facts}
    assert [*facts] == [*(each.heading for each in GROUPS.columns if each.name != "group"), "Clients", "Hosts", "Last rebalances"]
    assert facts["Records left"].text == "12,000+"
    assert (facts["State"].text, facts["Members"].text) == ("Stable", "1")
    assert (facts["Verdict"].text, facts["Verdict"].tone) == ("held", WARNING)


def test_the_last_three_rebalances_are_among_the_facts() -> None:
    some = [GroupRebalance(at_ms=NOW_MS - HOUR, generation=9 - number, members=2, joined_members=0, left_members=0) for number in range(5)]
    view = viewed(rebalances=some)
    facts = {each.name: each.value.text for each in view.facts}
    assert [each.name for each in view.facts if each.long] == ["Last rebalances"]
    assert [f"generation {number}" in facts["Last rebalances"] for number in (9, 8, 7, 6)] == [True, True, True, False]
    assert {each.name: each.value.text for each in viewed().facts}["Last rebalances"] == facts["Clients"], "nothing is known of either"


def test_findings_are_shown_as_severe_as_they_are_and_what_needs_nothing_is_not() -> None:
    findings = [
        GroupFinding(verdict="beyond_end", severity=WARNING, text="beyond the end"),
        GroupFinding(verdict="held", text="held up"),
        GroupFinding(verdict="unknown", text="not known: why"),
        GroupFinding(verdict="fine", text="nothing"),
    ]
    found = viewed(findings=findings).verdicts
    assert [(each.badge, each.tone, each.text) for each in found] == [
        ("beyond end", WARNING, "Beyond the end"),
        ("held", "", "Held up"),
        ("unknown", "", "Not known: why"),
    ]


def test_partitions_of_a_group_are_sorted_by_the_oldest_record_that_is_shown() -> None:
    times = ({"next_append_ms": NOW_MS - HOUR}, {"next_timestamp_ms": NOW_MS - 2 * HOUR}, {"next_append_ms": NOW_MS - 3 * HOUR}, {})
    parts = [GroupPartition(topic="t", partition=number, committed=5, **each) for number, each in enumerate(times)]
    detail = GroupDetail(at_ms=NOW_MS, summary=GroupSummary(group="g"), partitions=parts)
    status = Status(at_ms=NOW_MS, version="0", ready=True, verdict="", freshness="")
    table = group_view(detail, Query(values={"sort": "next_append_ms"}), status).table
    assert [row[0].text for row in table.rows] == ["t-2", "t-1", "t-0", "t-3"]
