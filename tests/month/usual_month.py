"""What happens in an ordinary month: deployments and noise that deserve nothing, and a few things that somebody has to be told."""

from collections.abc import Iterator
from functools import partial
from random import Random
from uuid import UUID

from streaming.kafka.formats.metadata_brokers import Phase
from tests.month.cluster_month import ClusterMonth
from tests.month.happenings import DAY, HOUR, MINUTE, Change, Due, Happening
from tests.month.hosts import CAPACITY
from tests.month.readers import AT_ONCE, Job, Reader
from tests.month.usual_cluster import IN_USE, throw_away, topic_of

CRITICAL, WARNING = "critical", "warning"
SOON_S = 30 * MINUTE
DECOMMISSIONED_S, DECOMMISSIONED = 12 * DAY + 12 * HOUR, [f"app-{number:03}" for number in (72, 73, 75, 76, 77)]
"""When some applications are taken out of service, and which: nobody deploys them again."""


def month(random: Random) -> list[Happening]:
    """All of it, in its order."""
    found = [*_noise(random), *_weekly(), *_deserving()]
    return sorted(found, key=lambda each: each.at_s)


def _weekly() -> Iterator[Happening]:
    for week in range(4):
        tuesday = (7 * week + 1) * DAY
        yield consumers_deployed(tuesday + 10 * HOUR, week)
        yield brokers_restarted(tuesday + DAY + 22 * HOUR)
        yield segtail_deployed(tuesday + 2 * DAY + 14 * HOUR, times=3 if week == 2 else 1)
        yield flink_restarted(tuesday + 3 * DAY + 9 * HOUR, topic_of(8), 15 * MINUTE)


def _noise(random: Random) -> Iterator[Happening]:
    yield from _failed_scrapes(random)
    yield Happening(name="somebody looks with a console consumer", at_s=0, lasts_s=30 * DAY, close_s=0, changes=[*_console(random)])
    yield Happening(
        name="groups that nobody uses", at_s=0, lasts_s=30 * DAY, close_s=0, due=[Due(alert="GroupsAbandoned", severity="info")]
    )
    yield topic_remade(9 * DAY + 11 * HOUR, topic_of(5))
    yield reset_to_earliest(3 * DAY + 9 * HOUR, "app-000", 60)
    yield reset_to_earliest(10 * DAY + 9 * HOUR, "app-001", 40)
    yield new_at_earliest(4 * DAY + 10 * HOUR, topic_of(12), "new-of-a-week", 60)
    yield new_at_earliest(13 * DAY + 10 * HOUR, topic_of(13), "new-of-a-day", 12)
    yield new_at_earliest(20 * DAY + 10 * HOUR, topic_of(15), "new-of-two-hours", 6)
    yield flink_restarted(17 * DAY + 9 * HOUR, topic_of(16), HOUR)
    yield decommissioned(DECOMMISSIONED_S, DECOMMISSIONED)


def _deserving() -> Iterator[Happening]:
    yield poison_pill(2 * DAY + 15 * HOUR, "app-012")
    yield crash_loop(3 * DAY + 15 * HOUR, "app-021")
    yield slow_consumer(5 * DAY + 6 * HOUR, "app-002", topic_of(2))
    yield hourly_job_fails(8 * DAY + 1 * HOUR, "hourly-014")
    yield exactly_once_dies(11 * DAY + 3 * HOUR, "app-020", topic_of(4))
    yield host_dies(15 * DAY + 4 * HOUR)
    yield disk_fills(18 * DAY + 1 * HOUR)
    yield agents_die(22 * DAY + 13 * HOUR)
    yield agent_dies_unseen(23 * DAY + 13 * HOUR)
    yield job_dies(24 * DAY + 2 * HOUR)
    yield job_lags(25 * DAY + 3 * HOUR)


# --- noise


def _failed_scrapes(random: Random) -> Iterator[Happening]:
    """One a day. Each minute around it is looked at: where only each tenth is, a scrape that fails is away for ten."""

    def fail(cluster: ClusterMonth, _: float, fails: bool) -> None:
        cluster.scrapes_fail = fails

    for day in range(30):
        at_s = day * DAY + random.randrange(HOUR, 23 * HOUR) // MINUTE * MINUTE
        changes = [(at_s, partial(fail, fails=True)), (at_s + MINUTE, partial(fail, fails=False))]
        yield Happening(name="a scrape fails", at_s=at_s, lasts_s=10 * MINUTE, changes=changes)


def _console(random: Random) -> Iterator[tuple[float, Change]]:
    for number in range(60):
        at_s = random.uniform(0, 30 * DAY)
        name = (
            f"console-consumer-{random.randrange(1_000, 9_999)}"
            if number % 2
            else f"anonymous.{UUID(int=random.getrandbits(128), version=4)}"
        )
        topic = topic_of(random.randrange(24))
        yield at_s, lambda cluster, now_s, name=name, topic=topic: cluster.add(throw_away(cluster.streams[topic, 0], name, now_s))


def consumers_deployed(at_s: float, week: int, in_use: int = IN_USE) -> Happening:
    """A third of the applications get a new version, a member after the other: for a minute nobody commits, twice."""
    names = [f"app-{number:03}" for number in range(in_use) if number % 3 == week % 3 and number % 10 not in (4, 9)]
    names = [name for name in names if name not in DECOMMISSIONED or at_s < DECOMMISSIONED_S]
    changes: list[tuple[float, Change]] = []
    for place, name in enumerate(names):
        for member in range(2):
            begins = at_s + place * MINUTE + member * 3 * MINUTE
            changes.append((begins, partial(_set, name=name, commits=False, members=1)))
            changes.append((begins + MINUTE, partial(_set, name=name, commits=True, members=2)))
    return Happening(name="consumers are deployed", at_s=at_s, lasts_s=HOUR, close_s=40 * MINUTE, changes=changes)


def brokers_restarted(at_s: float) -> Happening:
    """One after the other: each stops for two minutes, and starts for two."""
    changes: list[tuple[float, Change]] = []
    for place, number in enumerate((1, 2, 3)):
        begins = at_s + place * 8 * MINUTE
        for after_s, phase in ((0, Phase.STOPPING), (2 * MINUTE, Phase.STARTING), (4 * MINUTE, Phase.RUNNING)):
            changes.append((begins + after_s, partial(_phase, number=number, phase=phase)))
    return Happening(name="brokers are restarted", at_s=at_s, lasts_s=HOUR, close_s=40 * MINUTE, changes=changes)


def segtail_deployed(at_s: float, times: int) -> Happening:
    """Its agents, one after the other, for a minute each; then the job, for two."""
    changes: list[tuple[float, Change]] = []
    for number in (1, 2, 3):
        changes.append((at_s + 2 * number * MINUTE, partial(_agent, number=number, up=False)))
        changes.append((at_s + (2 * number + 1) * MINUTE, partial(_agent, number=number, up=True)))
    for time in range(times):
        begins = at_s + (8 + 5 * time) * MINUTE
        changes.append((begins, lambda cluster, _: setattr(cluster, "job_up", False)))
        changes.append((begins + 2 * MINUTE, lambda cluster, now_s: cluster.start_job(now_s)))
    name = "segtail is deployed" if times == 1 else f"segtail is deployed {times} times within a quarter of an hour"
    return Happening(name=name, at_s=at_s, lasts_s=HOUR, close_s=45 * MINUTE, changes=changes)


def topic_remade(at_s: float, topic: str) -> Happening:
    """Deleted and made anew; its consumers find that after two minutes."""

    def remake(cluster: ClusterMonth, now_s: float) -> None:
        cluster.remake(topic, now_s)
        for reader in _readers_of(cluster, topic):
            reader.commits = False

    def find(cluster: ClusterMonth, _: float) -> None:
        for reader in _readers_of(cluster, topic):
            reader.commits = True

    return Happening(
        name="a topic is deleted and made anew", at_s=at_s, lasts_s=2 * HOUR, changes=[(at_s, remake), (at_s + 2 * MINUTE, find)]
    )


def reset_to_earliest(at_s: float, name: str, speed: float) -> Happening:
    """Somebody reads again whatever is there, and catches up."""

    def reset(cluster: ClusterMonth, now_s: float) -> None:
        reader = cluster.readers[name]
        reader.position_s, reader.speed = reader.streams[0].first_s(now_s) + 1, speed

    done = (at_s + 8 * HOUR, partial(_set, name=name, speed=AT_ONCE))
    return Happening(
        name="a group is reset to earliest, and catches up", at_s=at_s, lasts_s=8 * HOUR, close_s=HOUR, changes=[(at_s, reset), done]
    )


def new_at_earliest(at_s: float, topic: str, name: str, speed: float) -> Happening:
    """A new application reads all that is there, and catches up."""

    def begin(cluster: ClusterMonth, now_s: float) -> None:
        stream = cluster.streams[topic, 0]
        cluster.add(Reader(name=name, streams=[stream], position_s=stream.first_s(now_s) + 1, lived_s=now_s, speed=speed))

    return Happening(
        name="a new group begins at earliest, and catches up", at_s=at_s, lasts_s=8 * HOUR, close_s=HOUR, changes=[(at_s, begin)]
    )


def flink_restarted(at_s: float, topic: str, timeout_s: int) -> Happening:
    """Its new process takes other transactional ids, so the transaction of the old one is open until its timeout.

    For a quarter of an hour nobody has to know. For an hour readers stand still, and somebody may.
    """
    due = (
        Due(alert="TransactionStuck", severity=CRITICAL, labels=(("topic", topic),)),
        Due(alert="LastStableOffsetStalled", severity=WARNING, labels=(("topic", topic),)),
        Due(alert="GroupHeldUp", severity=WARNING, labels=(("topic", topic),)),
    )
    return Happening(
        name=f"a Flink job restarts and leaves a transaction for {timeout_s // 60} minutes",
        at_s=at_s,
        lasts_s=timeout_s + HOUR,
        changes=[
            (at_s, lambda cluster, now_s: cluster.open_transaction(topic, "flink-1", timeout_s, now_s)),
            (at_s + timeout_s, lambda cluster, _: cluster.end_transaction(topic)),
        ],
        due=due if timeout_s > 20 * MINUTE else (),
    )


def decommissioned(at_s: float, names: list[str]) -> Happening:
    """Applications end for good, and nobody deletes their groups: for a day that looks like an outage, which may be a ticket."""
    changes: list[tuple[float, Change]] = [(at_s, partial(_set, name=name, commits=False, members=0)) for name in names]
    due = [
        Due(alert=alert, severity=WARNING, labels=(("group", name),))
        for name in names
        for alert in ("GroupStopped", "GroupWillLoseData", "GroupLostData")
    ]
    return Happening(name="applications are taken out of service", at_s=at_s, lasts_s=36 * HOUR, close_s=HOUR, changes=changes, due=due)


# --- what deserves that somebody is told


def poison_pill(at_s: float, name: str) -> Happening:
    """Its consumer lives and commits, but does not get beyond a record."""
    return Happening(
        name="a poison pill",
        at_s=at_s,
        lasts_s=4 * HOUR,
        close_s=HOUR,
        changes=[(at_s, partial(_set, name=name, moves=False)), (at_s + 3 * HOUR, partial(_set, name=name, moves=True))],
        due=[Due(alert="GroupStopped", severity=WARNING, labels=(("group", name),), within_s=SOON_S)],
    )


def crash_loop(at_s: float, name: str) -> Happening:
    """One of its members ends every few minutes, and is started again."""
    changes: list[tuple[float, Change]] = []
    for again in range(15):
        begins = at_s + again * 4 * MINUTE
        changes.append((begins, partial(_set, name=name, members=1)))
        changes.append((begins + 2 * MINUTE, partial(_set, name=name, members=2)))
    due = [Due(alert="GroupRebalanceStorm", severity=WARNING, labels=(("group", name),), within_s=HOUR // 2)]
    return Happening(name="a crash loop", at_s=at_s, lasts_s=2 * HOUR, close_s=HOUR, changes=changes, due=due)


def slow_consumer(at_s: float, name: str, topic: str) -> Happening:
    """It reads half of what is written, until retention overtakes it; then somebody gives it more members."""
    overtaken = at_s + 2 * DAY
    labels = (("group", name), ("topic", topic))
    return Happening(
        name="a consumer that is slower than its producer",
        at_s=at_s,
        lasts_s=overtaken + 8 * HOUR - at_s,
        close_s=0,
        changes=[(at_s, partial(_set, name=name, speed=0.5)), (overtaken + 4 * HOUR, partial(_set, name=name, speed=20.0))],
        due=[
            Due(alert="GroupWillLoseData", severity=CRITICAL, labels=labels, within_s=2 * DAY),
            Due(alert="GroupLostData", severity=WARNING, labels=labels),  # says no more than the page
        ],
    )


def hourly_job_fails(at_s: float, name: str) -> Happening:
    """Its scheduler does not start it for half a day."""

    def late(cluster: ClusterMonth, _: float, *, is_late: bool) -> None:
        reader = cluster.readers[name]
        assert isinstance(reader, Job)
        reader.late = is_late

    return Happening(
        name="an hourly job is not started for half a day",
        at_s=at_s,
        lasts_s=14 * HOUR,
        close_s=0,
        changes=[(at_s, partial(late, is_late=True)), (at_s + 12 * HOUR, partial(late, is_late=False))],
        due=[
            Due(alert="GroupStopped", severity=WARNING, labels=(("group", name),), within_s=4 * HOUR),
            Due(alert="GroupWillLoseData", severity=WARNING, labels=(("group", name),)),
        ],
    )


def exactly_once_dies(at_s: float, name: str, topic: str) -> Happening:
    """An application that reads and writes in transactions dies in one, for five hours: one page, about the topic that it writes."""

    def die(cluster: ClusterMonth, now_s: float) -> None:
        cluster.open_transaction(topic, f"{name}-1", 12 * HOUR, now_s, reader=name)
        _set(cluster, now_s, name=name, commits=False, members=0)

    def back(cluster: ClusterMonth, now_s: float) -> None:
        cluster.end_transaction(topic, reader=name)
        _set(cluster, now_s, name=name, commits=True, members=2)

    own = (("group", name),)
    return Happening(
        name="an application with exactly-once dies in a transaction",
        at_s=at_s,
        lasts_s=6 * HOUR,
        close_s=HOUR,
        changes=[(at_s, die), (at_s + 5 * HOUR, back)],
        due=[
            Due(alert="TransactionStuck", severity=CRITICAL, labels=(("topic", topic),), within_s=45 * MINUTE),
            Due(alert="LastStableOffsetStalled", severity=WARNING, labels=(("topic", topic),)),
            Due(alert="GroupHeldUp", severity=WARNING, labels=(("topic", topic),)),
            *(Due(alert=alert, severity=WARNING, labels=own) for alert in ("GroupHeldUp", "GroupStopped", "GroupWillLoseData")),
        ],
    )


def host_dies(at_s: float) -> Happening:
    """A broker and its agent, for two hours."""

    def die(cluster: ClusterMonth, now_s: float) -> None:
        _phase(cluster, now_s, number=3, phase=Phase.DOWN)
        _agent(cluster, now_s, number=3, up=False)

    def back(cluster: ClusterMonth, now_s: float) -> None:
        _phase(cluster, now_s, number=3, phase=Phase.RUNNING)
        _agent(cluster, now_s, number=3, up=True)

    return Happening(
        name="a broker's host dies",
        at_s=at_s,
        lasts_s=3 * HOUR,
        close_s=90 * MINUTE,
        changes=[(at_s, die), (at_s + 2 * HOUR, back)],
        due=[
            Due(alert="BrokerDown", severity=CRITICAL, labels=(("broker", "3"),), within_s=10 * MINUTE),
            Due(alert="UnderReplicated", severity=WARNING),
        ],
    )


def disk_fills(at_s: float) -> Happening:
    """Somebody writes ten times as much; after ten hours the disk is larger."""

    def fills(cluster: ClusterMonth, _: float) -> None:
        cluster.hosts.host(2).fills = 0.5 * CAPACITY / (12 * HOUR)

    def grown(cluster: ClusterMonth, _: float) -> None:
        host = cluster.hosts.host(2)
        host.fills, host.free = 0.0, 0.5 * CAPACITY

    return Happening(
        name="a disk fills",
        at_s=at_s,
        lasts_s=12 * HOUR,
        close_s=0,
        changes=[(at_s, fills), (at_s + 10 * HOUR, grown)],
        due=[Due(alert="LogDirFillingUp", severity=CRITICAL, labels=(("broker", "2"),), within_s=9 * HOUR)],
    )


def agents_die(at_s: float) -> Happening:
    """Two of three, for two hours: the alerts about most of the cluster stay quiet. Of one alone somebody may be told by a ticket."""
    return Happening(
        name="two agents of three die",
        at_s=at_s,
        lasts_s=3 * HOUR,
        close_s=90 * MINUTE,
        changes=[
            (when_s, partial(_agent, number=number, up=up)) for number in (2, 3) for when_s, up in ((at_s, False), (at_s + 2 * HOUR, True))
        ],
        due=[
            Due(alert="AgentDown", severity=CRITICAL, within_s=15 * MINUTE),
            Due(alert="ObserverBlind", severity=WARNING),
        ],
    )


def agent_dies_unseen(at_s: float) -> Happening:
    """The same, while every second scrape fails: whatever waits for its ``for`` begins again each time, and somebody has to know that."""
    changes: list[tuple[float, Change]] = []
    for minute in range(60):
        fails = minute % 2 == 0
        changes.append((at_s + minute * MINUTE, lambda cluster, _, fails=fails: setattr(cluster, "scrapes_fail", fails)))
    changes += [(at_s, partial(_agent, number=2, up=False)), (at_s + 55 * MINUTE, partial(_agent, number=2, up=True))]
    return Happening(
        name="an agent dies while every second scrape fails",
        at_s=at_s,
        lasts_s=2 * HOUR,
        changes=changes,
        due=[
            Due(alert="ObserverDown", severity=CRITICAL, within_s=20 * MINUTE),
            Due(alert="AgentDown", severity=CRITICAL, labels=(("broker", "2"),)),
        ],
    )


def job_dies(at_s: float) -> Happening:
    """For two hours nobody watches."""
    return Happening(
        name="segtail's job dies",
        at_s=at_s,
        lasts_s=3 * HOUR,
        close_s=90 * MINUTE,
        changes=[
            (at_s, lambda cluster, _: setattr(cluster, "job_up", False)),
            (at_s + 2 * HOUR, lambda cluster, now_s: cluster.start_job(now_s)),
        ],
        due=[Due(alert="ObserverDown", severity=CRITICAL, within_s=15 * MINUTE)],
    )


def job_lags(at_s: float) -> Happening:
    """It is a minute late all the time: that mutes whatever judges partitions by time."""
    return Happening(
        name="segtail's job is a minute late for two hours",
        at_s=at_s,
        lasts_s=3 * HOUR,
        close_s=90 * MINUTE,
        changes=[
            (at_s, lambda cluster, _: setattr(cluster, "lag_s", 60.0)),
            (at_s + 2 * HOUR, lambda cluster, _: setattr(cluster, "lag_s", 0.0)),
        ],
        due=[Due(alert="ObserverLagging", severity=CRITICAL, within_s=20 * MINUTE)],
    )


# --- changes


def _set(cluster: ClusterMonth, _: float, *, name: str, **values: object) -> None:
    for field, value in values.items():
        setattr(cluster.readers[name], field, value)


def _phase(cluster: ClusterMonth, now_s: float, *, number: int, phase: Phase) -> None:
    cluster.hosts.host(number).change(phase, now_s)


def _agent(cluster: ClusterMonth, _: float, *, number: int, up: bool) -> None:
    cluster.hosts.host(number).agent_up = up


def _readers_of(cluster: ClusterMonth, topic: str) -> list[Reader]:
    """Those that are in use."""
    return [each for each in cluster.readers.values() if each.members and each.streams[0].topic == topic and not isinstance(each, Job)]
