"""Groups that begin at the earliest record of a log while retention deletes its first segments: who reads away from that."""

from itertools import takewhile
from random import Random

import pytest

from streaming.cluster.consumers.group_counting import LASTING_MS
from tests.consumers.deleting import EVERY, NOW, ROUND, SEGMENT, Deleting
from tests.tables import each_row
from tests.worlds.seeds import seeds

FORETOLD = 60
"""Seconds before a loss by which it is told."""


@each_row("rate", seeds([0.5], [0.5, 1.0, 3.0]))
def test_a_new_group_at_the_earliest_record_that_reads_away_from_deletion_catches_up_with_a_time(rate: float) -> None:
    log = Deleting()
    found = list(log.read(rate, 40))
    assert not log.lost
    assert {severity for _, _, severity in found[4:]} == {""}
    assert found[4][1] == "catching_up"
    assert all("catches up in" in each.text for each in log.job.about().findings if each.verdict == "catching_up")


@each_row("rate", seeds([0.09], [0.0, 0.05, 0.09]))
def test_one_that_does_not_will_lose_records(rate: float) -> None:
    log = Deleting()
    found = list(log.read(rate, 60))
    assert {each[1:] for each in found[:4]} == {("will_lose", "critical")}
    assert all(severity in ("critical", "warning") for _, _, severity in found)
    assert log.lost


def test_a_group_that_is_reset_to_the_earliest_record_is_measured_anew() -> None:
    log = Deleting()
    log.committed = float(log.end(NOW) - 100)
    list(log.read(1.0, 30))
    log.committed = float(log.start(log.now))
    assert list(log.read(0.0, 3))[-1][1:] == ("will_lose", "critical")
    assert {severity for _, _, severity in list(log.read(1.0, 30))[4:]} == {""}


def test_a_group_that_no_longer_reads_is_in_danger_again() -> None:
    log = Deleting()
    assert list(log.read(0.5, 8))[-1][1:] == ("catching_up", "")
    assert list(log.read(0.0, 25))[-1][1:] == ("will_lose", "critical")


@pytest.mark.parametrize("seed", seeds([1, 8], range(12)))
def test_what_catches_up_loses_nothing(seed: int) -> None:
    """At whatever speed it reads, from wherever."""
    random = Random(seed)
    log, rate = Deleting(), random.choice((0.11, 0.15, 0.2, random.uniform(0.05, 2)))
    log.committed += random.randrange(3 * SEGMENT)
    list(log.read(0.0, random.randrange(20)))
    log.lost, log.committed = False, max(log.committed, float(log.start(log.now)))
    safe = [verdict != "will_lose" for _, verdict, _ in log.read(rate, 60)]
    if all(safe[5:]):
        assert not log.lost
    if rate <= 1 / EVERY:
        assert not safe[-1] or log.lost


def after_burst(count: int, segment: int = 100, begun: int = 15, *, every: int = 0) -> Deleting:
    """So many records within ten seconds, and then one every so many seconds, each kept for 15 minutes; a group begins so long after."""
    times = [NOW + 10 * number // count for number in range(count)] + (list(range(NOW + 10, NOW + 4000, every)) if every else [])
    return Deleting(sorted(times), kept=900, segment=segment, begun=NOW + begun)


def until_lost(log: Deleting, rate: float, until: int) -> list[tuple[int, str, str]]:
    return list(takewhile(lambda _: not log.lost, log.read(rate, -(-(NOW + until - log.now) // ROUND))))


def test_a_backlog_of_one_burst_that_is_read_in_time_is_no_danger() -> None:
    """It is through after ten minutes, and records are kept for fifteen: half of that time is over before."""
    log = after_burst(1200)
    assert log.loss(2.0, NOW + 2000) == -1
    found = until_lost(log, 2.0, 1500)
    assert {severity for _, _, severity in found[3:]} == {""}
    assert "catching_up" in {verdict for _, verdict, _ in found}


def test_a_backlog_of_one_burst_that_is_not_read_in_time_is_a_danger_long_before() -> None:
    log = after_burst(1200)
    assert NOW + 900 < log.loss(1.2, NOW + 2000) <= NOW + 930
    assert min(now for now, _, severity in until_lost(log, 1.2, 2000) if severity == "critical") <= NOW + 500


@each_row("rate", seeds([0.5], [0.2, 0.5]))
def test_a_group_that_is_far_too_slow_for_a_burst_will_lose_records_and_has_no_time_when_it_is_through(rate: float) -> None:
    """It would read 180, or 450, of 1,200 records before all of them go."""
    found = until_lost(after_burst(1200), rate, 900)
    settled = [each[1:] for each in found if each[0] > NOW + 150]
    assert {verdict for verdict, _ in settled} == {"will_lose"}
    assert (settled[0], settled[-1]) == (("will_lose", "info"), ("will_lose", "critical"))
    assert "catching_up" not in {verdict for _, verdict, _ in found[3:]}


def test_a_group_that_stops_in_a_burst_is_in_danger_when_its_rate_has_faded() -> None:
    """It has read a half in five minutes, and no more."""
    log = after_burst(600)
    found = [*log.read(1.0, 20), *until_lost(log, 0.0, 900)]
    critical = [now for now, _, severity in found if severity == "critical"]
    assert NOW + 450 < min(critical) <= NOW + 600
    assert critical == list(range(min(critical), NOW + 900, ROUND))


@pytest.mark.parametrize("seed", seeds([1, 2, 8], range(24)))
def test_every_loss_is_foretold_before_it_comes_and_who_is_fast_enough_is_in_no_danger(seed: int) -> None:
    """After a burst, with or without steady appends, at whatever rate."""
    random = Random(seed)
    count, every = random.choice((300, 900)), random.choice((0, 1, 3))
    segment = random.choice((50, 200))
    rate = random.choice((0.2, 0.4, 0.8, 1.0, 1.2, 1.5, 2.0)) * random.uniform(0.8, 1.2)
    log = after_burst(count, segment, random.choice((15, 300, 600)), every=every)
    begun, lost, in_time = log.now, log.loss(rate, NOW + 2000), log.loss(rate / 1.3, NOW + 3900) < 0
    found = until_lost(log, rate, 2000)
    if lost >= 0:
        assert all(severity == "critical" for now, _, severity in found if now > lost - FORETOLD)
    if in_time:
        assert {severity for now, _, severity in found if now > begun + LASTING_MS // 1000} <= {"", "info"}
