"""The model of Alertmanager: by itself, and against the real one over the same alerts."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.alerts.monitoring import PROGRAMS, Page, free_addresses, monitoring
from tests.alerts.rendering import Addresses
from tests.month.alertmanager import Alertmanager, Notification, matchers
from tests.month.rule_run import Firing, Labels
from tests.processes import until
from tests.tools import require_tool

HOUR = 3_600.0
STEP_S = 1_000.0
"""Between two steps, longer than whatever a group waits for."""

CONFIG = """\
route:
  receiver: tickets
  group_by: [alertname, job]
  group_wait: 30s
  group_interval: 5m
  repeat_interval: 12h
  routes:
    - matchers: [severity = "critical"]
      receiver: pager
      repeat_interval: 4h
receivers:
  - name: pager
    webhook_configs: [{url: "http://127.0.0.1:1/"}]
  - name: tickets
    webhook_configs: [{url: "http://127.0.0.1:1/", send_resolved: false}]
inhibit_rules:
  - source_matchers: [alertname = "Cause"]
    target_matchers: ['alertname =~ "Effect|Cause"']
    equal: [job, topic]
"""


def alert(name: str, since_s: float, until_s: float, severity: str = "critical", **labels: str) -> Firing:
    own = {"alertname": name, "severity": severity, "job": "k", **labels}
    return Firing(labels=frozenset(own.items()), since_s=since_s, until_s=until_s)


@pytest.fixture
def model(tmp_path: Path) -> Alertmanager:
    path = tmp_path / "alertmanager.yml"
    path.write_text(CONFIG)
    return Alertmanager(path)


def times_of(notifications: Sequence[Notification]) -> list[tuple[float, int, int]]:
    return [(each.at_s, len(each.firing), len(each.resolved)) for each in notifications]


def test_a_page_goes_out_after_its_wait_is_repeated_and_ends(model: Alertmanager) -> None:
    found = model.sent([alert("A", 0, 9 * HOUR)], 20 * HOUR)
    assert times_of(found) == [(30, 1, 0), (30 + 4 * HOUR + 300, 1, 0), (30 + 8 * HOUR + 600, 1, 0), (30 + 9 * HOUR, 0, 1)]
    assert {each.receiver for each in found} == {"pager"}


def test_what_joins_a_group_is_sent_at_its_next_interval_with_what_it_has(model: Alertmanager) -> None:
    found = model.sent([alert("A", 0, HOUR, topic="s"), alert("A", 60, 2 * HOUR, topic="t")], 3 * HOUR)
    assert times_of(found)[:2] == [(30, 1, 0), (330, 2, 0)]
    assert [len(each.new) for each in found] == [1, 1, 0, 0]
    assert times_of(found)[2:] == [(30 + HOUR, 1, 1), (30 + 2 * HOUR, 0, 1)]


def test_one_that_ends_before_its_group_waited_is_never_sent(model: Alertmanager) -> None:
    assert model.sent([alert("A", 0, 20)], HOUR) == []


def test_a_receiver_that_hears_of_no_end_gets_a_ticket_once(model: Alertmanager) -> None:
    assert times_of(model.sent([alert("A", 0, HOUR, "warning"), alert("A", 2 * HOUR, 3 * HOUR, "warning")], 4 * HOUR)) == [
        (30, 1, 0),
        (30 + HOUR, 0, 1),
        (2 * HOUR + 30, 1, 0),
        (2 * HOUR + 30 + HOUR, 0, 1),
    ]


def test_a_cause_mutes_its_effect_and_not_itself_nor_what_is_about_others(model: Alertmanager) -> None:
    cause = alert("Cause", 0, HOUR, topic="t")
    found = model.sent([cause, alert("Effect", 0, 2 * HOUR, topic="t"), alert("Effect", 0, HOUR, topic="u")], HOUR / 2)
    assert [(each.at_s, sorted(dict(one.labels)["topic"] for one in each.firing)) for each in found] == [(30, ["t"]), (30, ["u"])]
    later = model.sent([cause, alert("Effect", 0, 2 * HOUR, topic="t")], 1.5 * HOUR)
    assert [(each.at_s, [one.name for one in each.firing]) for each in later] == [
        (30, ["Cause"]),
        (30 + HOUR, []),
        (30 + HOUR, ["Effect"]),
    ]


def test_matchers_that_the_model_does_not_know_are_an_error() -> None:
    assert [each.holds({"a": "xy"}) for each in matchers(['a =~ "x."', 'a != "x"', 'b = ""'])] == [True, True, True]
    with pytest.raises(ValueError, match="no matcher"):
        matchers(["a"])


# --- the real one

DOWN = {"alertname": "BrokerDown", "severity": "critical", "scope": "broker", "job": "k", "broker": "3"}
AGENT = {"alertname": "AgentDown", "severity": "critical", "scope": "observer", "job": "k", "broker": "3", "agent": "a3"}
STOPPED = {"alertname": "GroupStopped", "severity": "warning", "scope": "group", "job": "k", "group": "g", "topic": "t"}
OTHER = STOPPED | {"group": "h"}

STEPS: Sequence[tuple[tuple[dict[str, str], ...], bool]] = (
    ((DOWN, AGENT, STOPPED), False),
    ((OTHER,), False),
    ((STOPPED,), True),
    ((DOWN,), True),
    ((AGENT, OTHER), True),
)
"""What begins (False) and ends (True), one step after the other; in each there is something to be sent."""


def expected(model: Alertmanager, steps: int) -> Counter[tuple[str, Labels]]:
    """What the model sends of the first steps: each alert of each notification."""
    since: dict[Labels, float] = {}
    found: list[Firing] = []
    for number, (alerts, ended) in enumerate(STEPS[:steps]):
        for each in alerts:
            labels = frozenset(each.items())
            if ended:
                found.append(Firing(labels=labels, since_s=since.pop(labels), until_s=number * STEP_S))
            else:
                since[labels] = number * STEP_S
    found += [Firing(labels=labels, since_s=each, until_s=1e9) for labels, each in since.items()]
    sent = model.sent(found, steps * STEP_S - 1)
    return Counter(
        (status, each.labels)
        for notification in sent
        for status, some in (("firing", notification.firing), ("resolved", notification.resolved))
        for each in some
    )


@pytest.mark.programs
@pytest.mark.slow
def test_the_real_one_sends_what_the_model_sends(tmp_path: Path) -> None:
    for program in PROGRAMS:
        require_tool(program)
    pages: list[Page] = []
    names = ("target", "prometheus", "alertmanager", "webhook")
    addresses = Addresses(**dict(zip(names, free_addresses(4), strict=True)))

    def sent() -> Counter[tuple[str, Labels]]:
        return Counter((page.status, frozenset(page.labels.items())) for page in pages if page.labels.get("job") == "k")

    with monitoring(tmp_path, addresses, pages.append, hurried=True) as running:
        model = Alertmanager(tmp_path / "alertmanager.yml")
        for number, (alerts, ended) in enumerate(STEPS, start=1):
            running.post_alerts(*alerts, ended=ended)
            until(f"step {number} is sent", lambda number=number: sent() == expected(model, number), saw=sent)
    assert sum(expected(model, len(STEPS)).values()) > len(STEPS)
