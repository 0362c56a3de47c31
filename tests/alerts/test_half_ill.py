"""Where segtail is half ill, again and again, somebody is paged within a quarter of an hour, or what would be muted speaks.

Each fault here comes and goes, in stretches of all lengths. Transactions hang, are stuck and overdue meanwhile: three pages that wait for
minutes without a gap. One case of promtool for each fault asks which pages there were in the end.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.alerts.promtool import answers
from tests.alerts.rendering import CONF

ILL_S = 1_200
"""Since then there are faults and transactions; before that all is well."""
MINUTES = 17
"""Within so many somebody is paged: a quarter of an hour, and a minute each for what three deployments take and for the evaluation."""
ENDS_S = ILL_S + (MINUTES + 1) * 60

SPOKEN = frozenset({"TransactionHanging", "TransactionStuck", "TransactionOverdue"})
"""The pages that must not be silent without another that says why."""
OF_OBSERVER = frozenset({"AgentDown", "ObserverDown", "ObserverLagging"})

GAPS = [(15, 60), (15, 105), (30, 90), (45, 105), (60, 60), (60, 120), (120, 120), (180, 120), (270, 120), (240, 60), (300, 60), (540, 60)]
"""Seconds for which a fault is there, and for which it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One that is there for so many seconds, and then away for so many; looked at by a scrape each ``interval`` seconds."""

    what: str
    bad: int
    good: int
    interval: int

    @property
    def name(self) -> str:
        return f"{self.what} for {self.bad} s, then {self.good} s without, scraped each {self.interval} s"

    def is_bad(self, at: int) -> bool:
        return at >= ILL_S and (at - ILL_S) % (self.bad + self.good) < self.bad


FAULTS = [
    Fault(what=what, bad=bad, good=good, interval=interval)
    for what in ("no scrape succeeds", "the only agent is away", "the metrics are behind")
    for bad, good in GAPS
    for interval in (15, 60)
    if bad % interval == 0 and good % interval == 0
]


def _series(fault: Fault) -> Mapping[str, Callable[[int, bool], object]]:
    """What each scrape says at a time, while the fault is there and while it is not."""
    away, behind = fault.what == "the only agent is away", fault.what == "the metrics are behind"
    return {
        'segtail_build_info{X,version="1"}': lambda at, bad: 1,
        'segtail_query_last_look_timestamp_seconds{X,query="segtail"}': lambda at, bad: at,
        'segtail_config_threshold_seconds{X,name="trigger"}': lambda at, bad: 30,
        'segtail_agent_up{X,broker="1",agent="b1"}': lambda at, bad: int(not (away and bad)),
        'segtail_broker_catching_up{X,broker="1"}': lambda at, bad: int(behind and bad),
        'segtail_tail_lag_seconds{X,broker="1"}': lambda at, bad: 60 if behind and bad else 1,
        'segtail_partition_hanging_transactions{X,broker="1",topic="h",partition="0"}': lambda at, bad: int(at >= ILL_S),
        'segtail_partition_stuck_transactions{X,broker="1",topic="s",partition="0"}': lambda at, bad: int(at >= ILL_S),
        'segtail_coordinator_overdue_transactions{X,broker="1"}': lambda at, bad: int(at >= ILL_S),
    }


def _case(fault: Fault) -> dict[str, object]:
    of_target, times = 'job="segtail",instance="a"', range(0, ENDS_S, fault.interval)
    scraped = [not (fault.what == "no scrape succeeds" and fault.is_bad(at)) for at in times]
    series = [{"series": f"up{{{of_target}}}", "values": " ".join(str(int(each)) for each in scraped)}]
    for name, value in _series(fault).items():
        reported = [str(value(at, fault.is_bad(at))) if ok else "stale" for at, ok in zip(times, scraped, strict=True)]
        series.append({"series": name.replace("X", of_target), "values": " ".join(reported)})
    asked = f'count by (alertname) (max_over_time(ALERTS{{alertstate="firing",severity="critical"}}[{MINUTES}m]))'
    nothing = {"expr": asked, "eval_time": f"{ILL_S // 60 + MINUTES}m", "exp_samples": [{"labels": '{none="named"}', "value": 1}]}
    return {"name": fault.name, "interval": f"{fault.interval}s", "input_series": series, "promql_expr_test": [nothing]}


def _pages(directory: Path) -> dict[str, frozenset[str]]:
    """The pages of each fault: promtool is asked for what cannot be, and tells what there is."""
    names = sorted(SPOKEN | OF_OBSERVER)
    rules = [str(CONF / "rules" / "currency.yaml"), *(str(CONF / "alerts" / f"{name}.yaml") for name in names)]
    cases = [_case(fault) for fault in FAULTS]
    document = {"rule_files": rules, "evaluation_interval": "15s", "group_eval_order": ["currency", *names], "tests": cases}
    printed = answers(document, directory)
    got = [each.rpartition("got:")[2] for each in re.split(r"\bexpr: ", printed)[1:]]  # in the order of the cases
    assert len(got) == len(FAULTS), printed
    return {fault.name: frozenset(re.findall(r'alertname="(\w+)"', text)) for fault, text in zip(FAULTS, got, strict=True)}


@pytest.mark.programs
@pytest.mark.slow
def test_somebody_is_paged_or_what_is_muted_speaks(tmp_path: Path) -> None:
    silent = {name: sorted(SPOKEN - found) for name, found in _pages(tmp_path).items() if not (found >= SPOKEN or found & OF_OBSERVER)}
    assert silent == {}
