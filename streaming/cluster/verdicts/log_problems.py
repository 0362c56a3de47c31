"""Problems of single logs in words: damaged bytes, records lost by elections, retention and compaction that do not go on, odd timestamps.

Which logs have them is decided in `streaming.cluster.verdicts.cases`; here they are taken together for a topic on a broker, or for a topic.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streaming.broker.protocol.group_messages import is_counted
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.cases import Cases, recent_elections
from streaming.cluster.verdicts.circumstances import Circumstances, LinkedProblem, Links, found, only, partitions_named, partitions_of
from streaming.cluster.verdicts.commands import FUTURE, NO_COMMAND, REMEDIES, Command, shows, wrong_unit
from streaming.cluster.view.late_arrivals import worst
from streaming.cluster.view.table import Snapshot
from streaming.common.arrays import Longs
from streaming.common.log_key import LogKey
from streaming.common.units import format_count, format_duration, format_name, format_size, format_time, format_word
from streaming.rules.expired_arrivals import LateLooks

_WAYS_OUT = (
    "message.timestamp.type=LogAppendTime keeps them by the broker's clock; message.timestamp.before.max.ms refuses them, so that their "
    "producer learns of it."
)

LOOKS_LIKE = {
    LateLooks.NO_TIME: "They are dated near 1970: it looks as if no time was set.",
    LateLooks.SECONDS: "They are dated in early 1970: it looks as if seconds were taken for milliseconds.",
    LateLooks.REPLAY: "They get less late: it looks like a replay or a mirror that catches up.",
    LateLooks.CLOCK: "They stay as late as they are: it looks like a wrong clock, or like timestamps that are copied, as of dead letters.",
    LateLooks.OLD: "Their order does not show why: old data, copied timestamps as of dead letters and retries, or single events.",
}

_OF_TOPICS = frozenset({kinds.IN_FUTURE, kinds.ARRIVES_EXPIRED})
"""Kinds that are about a topic, on whichever brokers its logs are."""


def log_problems(circumstances: Circumstances, cases: Sequence[Cases]) -> Iterator[LinkedProblem]:
    """Problems of single logs, together for a topic on a broker, or for a topic."""
    for each in cases:
        if each.kind is kinds.LIMITS_ASSUMED:
            yield from _assumed(circumstances, each)
        elif each.kind in _SAY:
            for logs in _by_topic(circumstances, each):
                said, partitions = _SAY[each.kind](circumstances, logs), _partitions(circumstances, logs.items)
                yield found(
                    each.kind,
                    f"{partitions_named(partitions)}{said.detail}",
                    broker=logs.broker,
                    topic=logs.topic,
                    partition=only(partitions),
                    since_ms=logs.since_ms,
                    holds_back=said.holds_back,
                    command=said.command,
                    links=Links(partitions=partitions_of(logs.topic, partitions), reason=logs.reason),
                    reason=logs.reason,
                )
    yield from _damaged_elsewhere(circumstances)
    yield from _unclean(circumstances)


def _assumed(circumstances: Circumstances, cases: Cases) -> Iterator[LinkedProblem]:
    observed = circumstances.view.observed
    brokers = observed.columns["broker"][cases.items]
    for broker in np.unique(brokers).tolist():
        items = cases.items[brokers == broker].tolist()
        topics = len({observed.names[item] for item in items})
        of = f"of {format_count(len(items), 'partition')} of {format_count(topics, 'topic')}"
        detail = f"{of}, because the broker's server.properties or the topics' settings are not known"
        yield found(kinds.LIMITS_ASSUMED, detail, broker=broker)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Logs:
    """The replicas of one problem, by their indexes in `Observed`."""

    broker: int  # -1 for those of a topic, on whichever brokers they are
    topic: str
    items: Longs
    since_ms: int  # -1 if that is not known
    reason: str  # as of its cases


class _Said(NamedTuple):
    """What is said of some replicas: ``detail`` behind their partitions; ``holds_back``: "" for what the kind costs."""

    detail: str
    command: Command = NO_COMMAND
    holds_back: str = ""


def _damaged(circumstances: Circumstances, logs: _Logs) -> _Said:
    command = circumstances.commands.verify(_directory(circumstances, _first(circumstances, logs.items)))
    return _Said("; the command reads the first of them", command)


def _blocked(circumstances: Circumstances, logs: _Logs) -> _Said:
    size = int(circumstances.view.observed.replica_offsets["size_bytes"][logs.items].sum())
    remedy = REMEDIES[logs.reason]
    return _Said(
        f", past the limit for {format_duration((circumstances.now_ms - logs.since_ms) / 1000)}" if logs.since_ms >= 0 else "",
        shows(logs.reason, circumstances.commands, logs.topic, _directory(circumstances, _first(circumstances, logs.items))),
        f"{remedy.why} All of these logs together: {format_size(size)}. {remedy.mend}",
    )


def _ahead(circumstances: Circumstances, logs: _Logs) -> _Said:
    """What shows the records that are furthest ahead: they, or some of them, block retention by time, too."""
    ahead = _kept(circumstances, "max_timestamp_ahead_ms", logs.items)
    furthest = logs.items[int(np.argmax(ahead))]
    its = {name: int(circumstances.view.observed.columns[name][furthest]) for name in ("partition", "broker")}
    latest = circumstances.now_ms + int(ahead.max())
    unit = wrong_unit(latest, circumstances.now_ms)
    return _Said(
        f", up to {format_time(latest)}; the command reads partition {its['partition']} on broker {its['broker']}",
        shows(FUTURE, circumstances.commands, logs.topic, _directory(circumstances, furthest)),
        " ".join(filter(None, (unit, kinds.IN_FUTURE.costs, REMEDIES[FUTURE].mend))),
    )


def _expired(circumstances: Circumstances, logs: _Logs) -> _Said:
    late = {each.item: each for each in circumstances.view.late}
    those = [late[item] for item in logs.items.tolist()]
    one, records, gone = worst(those), sum(each.records for each in those), sum(each.deleted for each in those)
    fate = "deleted by now" if gone == len(those) else "deleted at the next check" if not gone else "deleted by now or at the next check"
    return _Said(
        f": at least {format_count(records, 'record')}, {format_duration(one.delay_ms / 1000)} old where "
        f"{format_duration(one.limit_ms / 1000)} are kept, the last {circumstances.times.ago(one.last_ms)}; {fate}",
        circumstances.commands.date_by_broker(logs.topic),
        f"{LOOKS_LIKE[one.looks]} {_WAYS_OUT}",
    )


def _overdue(circumstances: Circumstances, logs: _Logs) -> _Said:
    size = int(_kept(circumstances, "retention_reclaimable_bytes", logs.items).sum())
    could = f"{format_size(size)} could go, the first of it for {format_duration((circumstances.now_ms - logs.since_ms) / 1000)}"
    began = circumstances.causes.of_deletion(logs.topic, logs.broker, circumstances.times)
    return _Said(f"; {could}{began}{circumstances.if_idle(logs.broker)}")


def _uncompacted(circumstances: Circumstances, logs: _Logs) -> _Said:
    size = int(np.maximum(_kept(circumstances, "dirty_bytes", logs.items), 0).sum())
    return _Said(f"; {format_size(size)} wait, for more than three hours")


def _kept(circumstances: Circumstances, name: str, items: Longs) -> Longs:
    """A column of `RetentionResults` for some of its replicas."""
    retention = circumstances.view.retention
    values: Longs = retention.columns[name][np.searchsorted(retention.items, items)]
    return values


def _first(circumstances: Circumstances, items: Longs) -> int:
    return int(items[np.argmin(circumstances.view.observed.columns["partition"][items])])


def _directory(circumstances: Circumstances, item: int) -> str:
    """The directory of a replica, "" if its log dir is not known."""
    observed = circumstances.view.observed
    number = int(observed.columns["log_dir"][item])
    return f"{observed.log_dirs[number][1]}/{observed.names[item]}-{observed.columns['partition'][item]}" if number >= 0 else ""


_SAY: dict[kinds.ProblemKind, Callable[[Circumstances, _Logs], _Said]] = {
    kinds.LOG_CORRUPT: _damaged,
    kinds.REPLICA_CORRUPT: _damaged,
    kinds.RETENTION_BLOCKED: _blocked,
    kinds.IN_FUTURE: _ahead,
    kinds.ARRIVES_EXPIRED: _expired,
    kinds.RETENTION_OVERDUE: _overdue,
    kinds.COMPACTION_STALLED: _uncompacted,
}


def _by_topic(circumstances: Circumstances, cases: Cases) -> Iterator[_Logs]:
    """The replicas of each topic, on each broker unless the kind is about whole topics."""
    observed = circumstances.view.observed
    brokers = np.full(len(cases.items), -1) if cases.kind in _OF_TOPICS else observed.columns["broker"][cases.items]
    topics: dict[tuple[int, str], list[int]] = {}
    for place, (broker, item) in enumerate(zip(brokers.tolist(), cases.items.tolist(), strict=True)):
        topics.setdefault((broker, observed.names[item]), []).append(place)
    for (broker, topic), places in topics.items():
        known = cases.since_ms[places][cases.since_ms[places] >= 0]
        since_ms = int(known.min()) if len(known) else -1
        yield _Logs(broker=broker, topic=topic, items=cases.items[places], since_ms=since_ms, reason=cases.reason)


def _partitions(circumstances: Circumstances, items: Longs) -> list[int]:
    partitions: list[int] = sorted(circumstances.view.observed.columns["partition"][items].tolist())
    return partitions


def _damaged_elsewhere(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    """Logs in which the scrub has found something, and which are not read yet: whether they lead is not known."""
    for replica in sorted(circumstances.view.scrubbed):
        if circumstances.export.has_topic(replica.topic) and not len(circumstances.items_of(replica)):
            detail = f"{partitions_named([replica.partition])}, by the scrub"
            yield found(kinds.LOG_CORRUPT, detail, broker=replica.broker, topic=replica.topic, partition=replica.partition)


def _unclean(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    recent = recent_elections(circumstances)
    for topic in dict.fromkeys(each.topic for each in recent):
        those = [each for each in recent if each.topic == topic]
        partitions = sorted(each.partition for each in those)
        last = max(each.last_ms for each in those)
        lost = [each.acknowledged for each in those if each.acknowledged >= 0]
        count = f"; {format_count(sum(lost), 'acknowledged offset')} lost at least" if lost else "; how many offsets are lost is not known"
        detail = f"{partitions_named(partitions)}, {circumstances.times.ago(last)}{count}"
        yield found(kinds.UNCLEAN, detail, topic=topic, partition=only(partitions), since_ms=last)


def why_uncounted(circumstances: Circumstances, snapshot: Snapshot, items: Sequence[int]) -> list[str]:
    """The reasons of some observed logs, clauses without a period, in their order.

    Args:
        items: indexes in `streaming.cluster.view.exported.Observed`.
    """
    unreadable = {
        LogKey(each.broker, each.topic, each.partition, each.topic_id): f"{format_word(each.path)}: {each.error}"
        for agent in circumstances.up
        for each in agent.unreadable_logs
    }
    down = {each.name for each in circumstances.agents} - {each.name for each in circumstances.up}
    return [_why(circumstances, snapshot, item, unreadable, down) for item in items]


def _why(circumstances: Circumstances, snapshot: Snapshot, item: int, unreadable: dict[LogKey, str], down: set[str]) -> str:
    observed = circumstances.view.observed
    columns, topic = observed.columns, observed.names[item]
    slot, directory, agent = (int(columns[name][item]) for name in ("slot", "log_dir", "agent"))
    key = LogKey(int(columns["broker"][item]), topic, int(columns["partition"][item]), snapshot.topic_ids[slot])
    if not is_counted(topic):
        return "agents do not count the metadata log, which grows all the time: `segtail count --log-dirs` does"
    if not circumstances.live:
        return "a reading of log dirs does not count records: `segtail count --log-dirs` does"
    if key in unreadable:
        return unreadable[key]
    if directory in snapshot.unread_dirs:
        return f"log dir {format_word(snapshot.log_dirs[directory][1])} cannot be read now"
    if observed.unreadable[item]:
        return "it cannot be read now"
    name = snapshot.agents[agent]
    if name in down:
        return f"its agent {format_name(name)} does not answer"
    if name in snapshot.uncounted.idle:
        return f"its agent {format_name(name)} counts no records: see its option ladder_rate"
    return snapshot.uncounted.errors.get(key) or f"its agent {format_name(name)} has not counted all of it yet"
