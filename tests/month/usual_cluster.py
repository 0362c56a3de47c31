"""An ordinary cluster: its topics, the groups that are in use, those that nobody uses any more, and those whose names are thrown away."""

from collections.abc import Iterator
from random import Random
from uuid import UUID

from tests.month.cluster_month import ClusterMonth
from tests.month.happenings import DAY, HOUR, MINUTE
from tests.month.readers import Job, Reader
from tests.month.rule_run import needed_metrics
from tests.month.streams import Stream

TOPICS = 24
IN_USE, ABANDONED = 100, 300

_LIMITS = ((7 * DAY, 6 * HOUR), (DAY, HOUR), (DAY, HOUR), (2 * HOUR, 20 * MINUTE))
"""Retention and the time after which segments roll, by turns: of Kafka's defaults, of a day, and of what is read at once."""


def cluster(random: Random, *, in_use: int = IN_USE, abandoned: int = ABANDONED) -> ClusterMonth:
    """One whose topics have been written to for ten days."""
    streams = [_stream(number) for number in range(TOPICS)]
    readers = [*_used(streams, in_use), *_unused(streams, abandoned, random)]
    return ClusterMonth(streams, readers, needed_metrics())


def topic_of(number: int) -> str:
    """The name of a topic."""
    return f"topic-{number:02}"


def throw_away(topic: Stream, name: str, at_s: float) -> Reader:
    """A group that somebody used once, and left."""
    return Reader(name=name, streams=[topic], members=0, commits=False, position_s=at_s, lived_s=at_s)


def _stream(number: int) -> Stream:
    retention_s, segment_s = _LIMITS[number % len(_LIMITS)]
    rate = 1 / 600 if number == TOPICS - 4 else 2.0 + number % 5  # one is written to every ten minutes
    return Stream(topic=topic_of(number), partition=0, rate=rate, retention_s=retention_s, segment_s=segment_s, born_s=-10.0 * DAY)


def _used(streams: list[Stream], count: int) -> Iterator[Reader]:
    """Eight of ten follow their topics, one runs every hour, and one every night; none of these where retention is shorter."""
    for number in range(count):
        topic = [streams[number % TOPICS]]
        if number % 10 == 4:
            yield Job(name=f"hourly-{number:03}", streams=[streams[number // 10 * 4 % TOPICS]], period_s=HOUR, offset_s=number % 6 * 600)
        elif number % 10 == 9:
            yield Job(
                name=f"nightly-{number:03}", streams=[streams[number // 10 * 4 % TOPICS]], period_s=DAY, offset_s=2 * HOUR, runs_s=HOUR
            )
        else:
            yield Reader(name=f"app-{number:03}", streams=topic)


def _unused(streams: list[Stream], count: int, random: Random) -> Iterator[Reader]:
    """Seven of ten have names of applications, the others were made anew by each start."""
    for number in range(count):
        name = f"former-{number:03}"
        if number % 10 == 7:
            name = f"console-consumer-{random.randrange(10_000, 99_999)}"
        elif number % 10 > 7:
            name = f"anonymous.{UUID(int=random.getrandbits(128), version=4)}"
        age_s = random.uniform(2 * DAY, 9 * DAY) if name.startswith("former") else random.uniform(0, 9 * DAY)
        yield throw_away(streams[number % TOPICS], name, -age_s)
