"""Cases of alerts as they would be if scrapes failed now and then, if two jobs watched the cluster, or if segtail were started again.

They are made of each alert's own cases, so that no alert is without them. Values are in the notation of promtool's unit tests
(https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.alerts.shortening import seconds_of

FAILS = 5
"""One scrape of so many fails."""

AWAY = 2
"""So many scrapes are missing while segtail is started again."""

_RUN = re.compile(r"(_|stale|[-+]?[0-9.eE]+?)(?:([-+][0-9.]+))?x(\d+)")

Changed = Callable[[list[str]], list[str]]


def expanded(values: str) -> list[str]:
    """One item for each sample: a number, ``_`` for none, or ``stale``."""
    found: list[str] = []
    for word in values.split():
        run = _RUN.fullmatch(word)
        if run is None:
            found.append(word)
        elif run[1] == "_":
            found += ["_"] * int(run[3])
        else:
            start, step = float(run[1]), float(run[2] or 0)
            found += [repr(start + number * step) for number in range(int(run[3]) + 1)]
    return found


def failing(samples: list[str]) -> list[str]:
    """Every so many scrapes one fails: Prometheus ends the series there."""
    return ["stale" if number % FAILS == FAILS - 1 and each != "_" else each for number, each in enumerate(samples)]


def away(after: int) -> Changed:
    """Segtail is started again after so many scrapes."""

    def changed(samples: list[str]) -> list[str]:
        gone = ["stale", *["_"] * (AWAY - 1)]
        return [*samples[:after], *gone, *samples[after + AWAY :]] if len(samples) > after + AWAY else samples

    return changed


def with_faults(case: Mapping[str, Any], changed: Changed) -> list[dict[str, str]]:
    """The series of a case, each changed so, and what Prometheus says of the scrapes."""
    series = [each | {"values": " ".join(changed(expanded(str(each["values"]))))} for each in case["input_series"]]
    scrapes = [
        "0" if each in ("stale", "_") else "1" for each in changed(["1"] * max(len(expanded(str(each["values"]))) for each in series))
    ]
    targets = sorted({found[0] for each in series if (found := re.search(r'job="[^"]*",instance="[^"]*"', each["series"]))})
    known = {each["series"] for each in series}
    return series + [{"series": name, "values": " ".join(scrapes)} for target in targets if (name := f"up{{{target}}}") not in known]


def with_twin(case: Mapping[str, Any]) -> list[dict[str, str]]:
    """The series of a case, of a second job, too."""
    twins = [each | {"series": each["series"].replace('instance="a"', 'instance="twin"')} for each in case["input_series"]]
    return [*case["input_series"], *(each for each in twins if 'instance="twin"' in each["series"])]


def firing_cases(cases: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], int, int]]:
    """The cases with a scrape each minute in which an alert fires, each with the first minute of that, and how many alerts fire then."""
    for case in cases:
        fires = next((each for each in case["alert_rule_test"] if each.get("exp_alerts")), None)
        if case["interval"] == "1m" and fires is not None:
            yield case, seconds_of(str(fires["eval_time"])) // 60, len(fires["exp_alerts"])
