"""Runs a month: pages every ten minutes, and every minute of what is looked at closely; alerts over both, joined to one timeline."""

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tests.month.cluster_month import ClusterMonth
from tests.month.happenings import Happening
from tests.month.rule_run import Firing, firing
from tests.month.samples import Recording

COARSE_S, FINE_S = 600, 60
JOB = "segtail"

_BEFORE_S = 1_200
"""So long before something happens each minute counts, so that what an alert waits for is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closely:
    """A stretch of time of which each minute is looked at; ``begins_s`` to ``since_s`` leads to it."""

    begins_s: int
    since_s: int
    until_s: int


def stretches(happenings: Sequence[Happening], until_s: int) -> list[Closely]:
    """Those of happenings that have any, joined where they overlap."""
    found: list[Closely] = []
    for since, until in sorted(each.watched for each in happenings if each.watched[1] > each.watched[0]):
        begins = max(int(since - _BEFORE_S) // COARSE_S * COARSE_S, 0)
        until_whole = min(-int(-until // COARSE_S) * COARSE_S, until_s)
        if begins >= until_s:
            continue
        if found and begins <= found[-1].until_s:
            found[-1] = replace(found[-1], until_s=max(found[-1].until_s, until_whole))
        else:
            found.append(Closely(begins_s=begins, since_s=max(int(since), begins), until_s=until_whole))
    return found


def run(
    cluster: ClusterMonth, happenings: Sequence[Happening], until_s: int, say: Callable[[float], None] = lambda _: None
) -> list[Firing]:
    """All alerts that fire up to a time. ``say``: is called now and then, with how far it is."""
    close = stretches(happenings, until_s)
    changes = sorted((change for each in happenings for change in each.changes), key=lambda change: change[0])
    with tempfile.TemporaryDirectory(prefix="segtail-month-") as scratch, ThreadPoolExecutor(1) as beside:
        coarse = Recording(JOB)
        fine: list[tuple[Closely, Future[list[Firing]]]] = []
        watched: Recording | None = None
        for now_s in _times(close, until_s):
            while changes and changes[0][0] <= now_s:
                changes.pop(0)[1](cluster, now_s)
            inside = next((each for each in close if each.begins_s <= now_s <= each.until_s), None)
            page = [*cluster.page(now_s)]
            if now_s % COARSE_S == 0:
                coarse.page(iter(page))
            if inside is not None:
                watched = watched or Recording(JOB, now_s)
                watched.page(iter(page))
                if now_s == inside.until_s:
                    directory = Path(scratch, f"{inside.begins_s}")
                    directory.mkdir()
                    fine.append((inside, beside.submit(firing, watched, FINE_S, inside.begins_s, directory)))
                    watched = None
            if now_s % 86_400 == 0:
                say(now_s)
        found = firing(coarse, COARSE_S, 0, Path(scratch))
        for stretch, future in fine:
            found = joined(found, future.result(), stretch)
    return found


def joined(coarse: Sequence[Firing], fine: Sequence[Firing], stretch: Closely) -> list[Firing]:
    """What was seen closely takes the place of the rest; an alert that fires across an edge is one alert."""
    parts = []
    for each in coarse:
        parts += [replace(each, until_s=min(each.until_s, stretch.since_s)), replace(each, since_s=max(each.since_s, stretch.until_s))]
    for each in fine:
        parts.append(replace(each, since_s=max(each.since_s, stretch.since_s), until_s=min(each.until_s, stretch.until_s)))
    found: list[Firing] = []
    for each in sorted((each for each in parts if each.since_s < each.until_s), key=lambda each: (sorted(each.labels), each.since_s)):
        if found and found[-1].labels == each.labels and each.since_s <= found[-1].until_s:
            found[-1] = replace(found[-1], until_s=max(each.until_s, found[-1].until_s))
        else:
            found.append(each)
    return found


def _times(close: Sequence[Closely], until_s: int) -> list[int]:
    coarse = {*range(0, until_s + 1, COARSE_S)}
    return sorted(coarse.union(*(range(each.begins_s, each.until_s + 1, FINE_S) for each in close)))
