"""Scrapers of all kinds, on a clock that is moved by hand: how old what they see is, and how often the query looks for work."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.pace import FALLBACK_SECONDS, LATE_SECONDS, LONGEST_SECONDS, QUICK_SECONDS, PaceReason
from tests.pace.world import BEGIN, ScrapedQuery
from tests.scratch import scratch

LEARNED = 400.0
"""By then whoever has come every minute is known, and the first minute is long over."""

SLACK = 0.01


def steady(period: float, seconds: float, who: str = "prometheus", *, phase: float = 3.0) -> Iterator[tuple[float, str]]:
    at = phase
    while at < seconds:
        yield at, who
        at += period


@pytest.mark.parametrize("period", [5.0, 10.0, 15.0, 29.0, 30.0, 31.0, 60.0])
@pytest.mark.parametrize("took", [0.1, 0.8, 2.5])
def test_what_a_steady_scraper_sees_is_as_old_as_a_micro_batch_and_half_a_second(tmp_path: Path, period: float, took: float) -> None:
    world = ScrapedQuery(tmp_path, steady(period, 1000), took)
    world.run(1000)
    assert world.oldest("prometheus", LEARNED) <= took + 0.5 + SLACK
    each = -(-period // LONGEST_SECONDS)  # a pause that is too long is parted
    assert world.looks_between(400, 1000) <= (600 / period + 2) * each
    assert world.pacer.pace.reason is PaceReason.SCRAPE


def test_micro_batches_that_follow_each_other_are_all_through_when_a_scraper_comes(tmp_path: Path) -> None:
    world = ScrapedQuery(tmp_path, steady(15.0, 1000), 0.6, parts=4)
    world.run(1000)
    assert world.oldest("prometheus", LEARNED) <= 4 * 0.6 + 0.5 + SLACK
    assert world.looks_between(400, 1000) <= (600 / 15 + 2) * 4


def test_one_that_comes_every_five_minutes_is_met_too(tmp_path: Path) -> None:
    world = ScrapedQuery(tmp_path, steady(300, 3600))
    world.run(3600)
    assert world.oldest("prometheus", 1500) <= 0.3 + 0.5 + SLACK
    assert world.looks_between(1800, 3600) <= 62


def test_one_that_comes_every_second_is_served_as_by_a_trigger_of_one(tmp_path: Path) -> None:
    world = ScrapedQuery(tmp_path, steady(1, 600))
    world.run(600)
    assert min(world.pauses) >= QUICK_SECONDS
    assert world.oldest("prometheus", 70) <= 1.3 + QUICK_SECONDS
    assert world.pacer.pace.seconds == QUICK_SECONDS


def test_the_first_minute_runs_quickly_then_without_scrapers_it_is_the_fallback(tmp_path: Path) -> None:
    world = ScrapedQuery(tmp_path, ())
    world.run(300)
    assert world.looks_between(0, 60) >= 55
    assert world.looks_between(70, 300) <= 24
    assert max(world.pauses) <= FALLBACK_SECONDS + SLACK
    assert (world.pacer.pace.seconds, world.pacer.pace.reason) == (FALLBACK_SECONDS, PaceReason.FALLBACK)


def test_scrapers_that_are_due_within_two_seconds_share_a_micro_batch(tmp_path: Path) -> None:
    both = [*steady(15, 1000, "one"), *steady(15, 1000, "two", phase=4.8)]
    world = ScrapedQuery(tmp_path, both)
    world.run(1000)
    assert world.looks_between(400, 1000) <= 42
    assert world.oldest("one", LEARNED) <= 0.3 + 0.5 + SLACK
    assert world.oldest("two", LEARNED) <= 0.3 + 0.5 + LATE_SECONDS + SLACK


def test_scrapers_with_two_periods_are_met_each(tmp_path: Path) -> None:
    world = ScrapedQuery(tmp_path, [*steady(15, 1000, "one"), *steady(25, 1000, "two", phase=9.5)])
    world.run(1000)
    assert max(world.oldest(who, LEARNED) for who in ("one", "two")) <= 0.3 + 0.5 + LATE_SECONDS + SLACK


def test_a_pair_that_cannot_be_distinguished_is_met_each(tmp_path: Path) -> None:
    world = ScrapedQuery(tmp_path, [*steady(30, 1000), *steady(30, 1000, phase=14.0)])
    world.run(1000)
    assert world.oldest("prometheus", LEARNED) <= 0.3 + 0.5 + SLACK
    assert world.looks_between(400, 1000) <= 42


def test_one_that_stays_away_means_the_fallback_until_three_came_as_learned(tmp_path: Path) -> None:
    came = [at for at, _ in steady(30, 1300)]
    world = ScrapedQuery(tmp_path, [(at, "prometheus") for at in came if not 500 < at < 590])
    world.run(1300)
    gap = [pause for at, pause in zip(world.checks, world.pauses, strict=False) if 505 < at - BEGIN < 670]
    assert max(gap) <= FALLBACK_SECONDS + SLACK
    assert world.oldest("prometheus", 700) <= 0.3 + 0.5 + SLACK
    assert world.looks_between(700, 1300) <= 22


def test_a_visitor_makes_it_quicker_for_a_minute_and_is_forgotten(tmp_path: Path) -> None:
    world = ScrapedQuery(tmp_path, [*steady(30, 1000), (500.0, "curl")])
    world.run(1000)
    pauses = list(zip((at - BEGIN for at in world.checks), world.pauses, strict=False))
    assert max(pause for at, pause in pauses if 500 <= at < 545) <= FALLBACK_SECONDS + SLACK
    assert max(pause for at, pause in pauses if at > 570) > 2 * FALLBACK_SECONDS


def test_one_that_is_gone_does_not_keep_the_others_quick(tmp_path: Path) -> None:
    world = ScrapedQuery(tmp_path, [*steady(30, 1500, "one"), *steady(30, 600, "two", phase=12.0)])
    world.run(1500)
    assert world.looks_between(800, 1500) <= 26


def test_while_a_person_looks_it_is_quick(tmp_path: Path) -> None:
    world = ScrapedQuery(tmp_path, steady(30, 500))
    world.run(500)
    began = world.now - BEGIN
    world.pacer.watched()
    assert (world.pacer.pace.seconds, world.pacer.pace.reason) == (QUICK_SECONDS, PaceReason.LIVE)
    world.run(began + 10)
    assert world.looks_between(began, began + 10) >= 9


@pytest.mark.parametrize("late", [0.0, 0.45, 0.8, 1.0])
@pytest.mark.parametrize("period", [5.0, 15.0, 60.0])
def test_a_scraper_that_is_late_by_chance_sees_data_as_new(tmp_path: Path, late: float, period: float) -> None:
    random, ends = Random(7), 200 * period
    world = ScrapedQuery(tmp_path, [(3 + number * period + random.uniform(0, late), "prometheus") for number in range(200)])
    world.run(ends)
    ages = sorted(age for at, age in world.ages["prometheus"] if at > 15 * period + 60)
    assert ages[len(ages) // 2] <= 1.0 + 0.05
    assert ages[len(ages) * 99 // 100] <= 2.0
    each = 1.0 if period <= LONGEST_SECONDS else 2.7  # a pause that is too long is parted, in three if the scraper was early
    assert world.looks_between(ends / 2, ends) <= (100 + 2) * each, "and costs no micro-batch more"


@pytest.mark.parametrize("deviation", [0.2, 0.4])
def test_a_scraper_that_is_early_and_late_by_chance_seldom_sees_the_data_of_the_scrape_before(tmp_path: Path, deviation: float) -> None:
    random = Random(7)
    world = ScrapedQuery(tmp_path, [(3 + number * 15 + random.gauss(0, deviation), "prometheus") for number in range(500)])
    world.run(7500)
    ages = [age for at, age in world.ages["prometheus"] if at > LEARNED]
    assert sum(age > 5 for age in ages) <= len(ages) // 100


def test_a_scraper_that_waits_for_as_long_after_each_scrape_is_met_too(tmp_path: Path) -> None:
    random, at, visits = Random(7), 3.0, []
    while at < 4000:
        visits.append((at, "prometheus"))
        at += 15 + random.uniform(0, 0.3)
    world = ScrapedQuery(tmp_path, visits)
    world.run(4000)
    assert world.oldest("prometheus", LEARNED) <= 2.0


_scrapers = st.lists(
    st.tuples(
        st.floats(0.2, 400),  # period
        st.floats(0, 60),  # phase
        st.floats(0, 1),  # jitter, in parts of the period
        st.sets(st.integers(0, 60), max_size=20),  # scrapes left out
        st.sampled_from(["one", "two"]),
    ),
    max_size=4,
)


@given(_scrapers, st.floats(0.01, 70), st.randoms(use_true_random=False))
def test_whatever_scrapers_do_no_pause_is_longer_than_half_a_minute_and_none_is_spinning(
    scrapers: list[tuple[float, float, float, set[int], str]], took: float, random: Random
) -> None:
    visits = [
        (phase + number * period + random.random() * jitter * period, who)
        for period, phase, jitter, missing, who in scrapers
        for number in range(60)
        if number not in missing
    ]
    with scratch() as directory:
        world = ScrapedQuery(Path(directory), visits, took)
        world.run(600)
    assert all(QUICK_SECONDS - SLACK <= pause <= max(LONGEST_SECONDS, took) + SLACK for pause in world.pauses)


@pytest.mark.slow
@given(st.floats(4, 60), st.floats(0, 30), st.floats(0.05, 1.5), st.lists(st.floats(0, 0.25), min_size=175, max_size=175))
def test_a_steady_scraper_is_met_however_its_scrapes_jitter(period: float, phase: float, took: float, jitter: list[float]) -> None:
    visits = [(phase + number * period + late, "prometheus") for number, late in enumerate(jitter)]
    with scratch() as directory:
        world = ScrapedQuery(Path(directory), visits, took)
        world.run(700)
    seen = [age for at, age in world.ages["prometheus"] if LEARNED < at < min(700, visits[-1][0])]
    assert all(age <= took + 0.5 + 1.0 + SLACK for age in seen)
