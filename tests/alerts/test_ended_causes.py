"""What is about now is sent while it is so: no alert begins after the end of its cause, nor stands for long after it.

A cause lasts for so many minutes and is then gone at once. promtool says when the alert fired for the first time, and for the last.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.alerts.promtool import answers
from tests.alerts.rendering import CONF

BEGINS_S = 1_800
EVERY_S = 15
LASTS_MINUTES = (1, 5, 9, 10, 10.5, 11, 11.5, 12, 13, 30)
BRIDGED_S = 180
"""The last value within three minutes counts where a scrape fails, so that what is counted is over three minutes later."""

Values = Callable[[float, float, bool], object]
"""What a scrape says so many seconds after the begin of a cause that lasts for so many seconds, while it is there and while it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One that an alert is about now."""

    what: str
    alert: str
    series: Mapping[str, Values]
    late_s: float = 0
    """So much after its end the alert may begin."""


def _lag(what: str, lag: Values) -> Cause:
    series: dict[str, Values] = {
        'segtail_tail_lag_seconds{X,broker="1"}': lag,
        'segtail_broker_catching_up{X,broker="1"}': lambda at, lasts, there: int(there),
        'segtail_agent_up{X,broker="1",agent="b1"}': lambda at, lasts, there: 1,
    }
    return Cause(what=what, alert="ObserverLagging", series=series)


CAUSES = [
    _lag("a lag that grows", lambda at, lasts, there: at + 15 if there else 2),
    _lag("a lag that shrinks", lambda at, lasts, there: lasts - at + 60 if there else 2),
    _lag("an agent that reads what was on its disks", lambda at, lasts, there: 2),
    Cause(
        what="series that are left out",
        alert="ObserverBlind",
        series={
            'segtail_series_dropped_total{X,reason="partition_series"}': lambda at, lasts, there: 10 * max(0, min(at, lasts) // EVERY_S),
        },
        late_s=BRIDGED_S,
    ),
]


def _case(cause: Cause, lasts: float) -> dict[str, object]:
    times = range(-BEGINS_S, int(lasts) + BEGINS_S, EVERY_S)
    series = [
        {
            "series": name.replace("X", 'job="segtail",instance="a"'),
            "values": " ".join(str(value(at, lasts, 0 <= at < lasts)) for at in times),
        }
        for name, value in cause.series.items()
    ]
    fired = f'timestamp(ALERTS{{alertname="{cause.alert}",alertstate="firing"}})[2h:{EVERY_S}s]'
    nothing = {"eval_time": f"{int(lasts) + 2 * BEGINS_S - EVERY_S}s", "exp_samples": [{"labels": '{none="named"}', "value": 1}]}
    asked = [{"expr": f"{which}({which}_over_time({fired}))"} | nothing for which in ("min", "max")]
    return {"interval": f"{EVERY_S}s", "input_series": series, "promql_expr_test": asked}


@pytest.mark.programs
@pytest.mark.slow
@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.what)
def test_no_alert_begins_after_its_cause_is_over_or_stands_for_long(cause: Cause, tmp_path: Path) -> None:
    rules = [str(CONF / "rules" / "currency.yaml"), str(CONF / "alerts" / f"{cause.alert}.yaml")]
    cases = [_case(cause, 60 * minutes) for minutes in LASTS_MINUTES]
    document = {"rule_files": rules, "evaluation_interval": f"{EVERY_S}s", "group_eval_order": ["currency", cause.alert], "tests": cases}
    printed = answers(document, tmp_path)
    got = [re.findall(r"\S+$", each.rpartition("got:")[2].strip()) for each in re.split(r"\bexpr: ", printed)[1:]]
    assert len(got) == 2 * len(LASTS_MINUTES), printed
    told = {
        minutes: (float(first[0]) - BEGINS_S - 60 * minutes, float(last[0]) - BEGINS_S - 60 * minutes)
        for minutes, first, last in zip(LASTS_MINUTES, got[::2], got[1::2], strict=True)
        if first != ["nil"]
    }
    assert told.keys() >= {30}  # seconds after the end of what lasts so long
    assert {minutes: (first, last) for minutes, (first, last) in told.items() if first > cause.late_s or last > cause.late_s + 360} == {}
