"""A month of an ordinary cluster, and what an on-call engineer gets in it: ``python -m tests.month``, or ``make month``."""

import argparse
import sys
import time
from random import Random

from bench.measuring import show
from tests.month.alertmanager import Alertmanager, by_receiver
from tests.month.happenings import DAY
from tests.month.judging import Verdict, judge
from tests.month.running import run
from tests.month.usual_cluster import ABANDONED, cluster
from tests.month.usual_month import month

_SHOWN = 20
"""So many of what nobody had reason to get as a ticket are named."""


def main() -> int:
    """Print the table and the verdict. Returns the exit status: 1 if a critical had no reason, or something due was not sent."""
    parser = argparse.ArgumentParser(prog="python -m tests.month", description="What an on-call engineer gets in an ordinary month.")
    parser.add_argument("--days", type=int, default=30, help="of so many days (%(default)s)")
    parser.add_argument("--abandoned", type=int, default=ABANDONED, help="groups that nobody uses (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of names and moments (%(default)s)")
    given = parser.parse_args()
    until_s, began = given.days * DAY, time.monotonic()
    happenings = [each for each in month(Random(given.seed)) if each.ends_s <= until_s or each.at_s == 0]
    world = cluster(Random(given.seed), abandoned=given.abandoned)
    firings = run(
        world,
        happenings,
        until_s,
        lambda at_s: print(f"day {at_s // DAY:.0f}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True),
    )
    notifications = Alertmanager().sent(firings, until_s)
    verdict = judge(notifications, happenings)
    _print(verdict, given.days, {receiver: len(some) for receiver, some in by_receiver(notifications).items()})
    return 1 if verdict.wrong or verdict.missing else 0


def _print(verdict: Verdict, days: int, receivers: dict[str, int]) -> None:
    heads = ("alert", "severity", "notifications", "of these repeats", "subjects", "deserved")
    rows = [
        (each.alert, each.severity, str(each.notifications), str(each.repeats), str(each.subjects), str(each.deserved))
        for each in verdict.counts
    ]
    show(f"what was sent in {days} days", heads, rows)
    weeks = days / 7
    print(f"pages: {verdict.pages}, {verdict.pages / weeks:.1f} a week")
    print(f"tickets: {verdict.tickets}, {verdict.tickets / weeks:.1f} a week")
    print("sent to", ", ".join(f"{receiver}: {count}" for receiver, count in sorted(receivers.items())))
    for title, found in (
        ("CRITICAL WITHOUT A REASON", verdict.wrong),
        ("DUE AND NOT SENT SO", verdict.missing),
        ("ticket without a reason", verdict.needless),
    ):
        for each in found[:_SHOWN]:
            print(f"{title}: {each}")
        if len(found) > _SHOWN:
            print(f"{title}: {len(found) - _SHOWN} more")
    print("month: FAILED" if verdict.wrong or verdict.missing else "month: PASSED")


if __name__ == "__main__":
    sys.exit(main())
