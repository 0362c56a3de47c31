"""Problems of the watching itself, which are of agents, logs that cannot be read and segtail; and problems of log dirs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.status_json import CRITICAL, WARNING
from streaming.broker.protocol.status_messages import LogDirStatus, ScrubStatus
from streaming.cluster.usage.disk_answer import full_phrase
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.circumstances import NOT_WRITING_MS, Circumstances, LinkedProblem, Links, found, is_full
from streaming.cluster.verdicts.commands import Command
from streaming.cluster.view.broker_status import each_scrub, is_given_up, unwatched_log_dirs
from streaming.cluster.view.host_families import is_checkpointed, unobserved
from streaming.cluster.view.observer import FAR_LAG_S, AgentStatus, watched_by
from streaming.common.units import format_count, format_duration, format_list, format_name, format_size

_NOT_USED = frozenset({"same_name", "other_cluster", "stuck", "twin_consumer", "unauthorized", "untrusted", "protocol", "failed", "busy"})
"""Reasons of agents that answer, and are not used all the same."""

MANY_DOWN = 0.34
"""More than a third of the agents, or the only one: with fewer away, other replicas are read in place of those beside them."""

UNKNOWN = {
    "metadata_unreadable": "The metadata log of broker {broker} cannot be read: segtail lacks its copy of leaders, replicas, topics and "
    "options.",
    "snapshot_unreadable": "The newest snapshot of the metadata of broker {broker} may not be read (its mode is 0400): after its next "
    "start the agent knows nothing of the cluster.",
    "coordinators_unreadable": "Partitions of __transaction_state that cannot be read from a current replica: {value}.",
    "entries_not_understood": "Entries of __transaction_state that are damaged, or of a version that this segtail does not know: {value}.",
    "broker_unwatched": "Broker {broker} leads partitions and has no agent: {value}.",
    "shared_log_dir": "Agent {agent} watches a log dir that another agent watches too: appends after a log was cut off there may be "
    "counted twice.",
    "clock": "The clock of agent {agent} differs from the job's by more than ten seconds: ages are wrong by as much, and so are alerts "
    "that judge by time.",
    "groups_unread": "Partitions of {topic} that no agent has read to their ends: {value}.",
    "groups_not_understood": "Records in {topic} that are damaged, or of a version that this segtail does not know: {value}.",
    "groups_checkpoints_unread": "Checkpoints of streaming queries that cannot be read: {value}.",
    "groups_omitted": "Consumer groups that are not followed, because there are more than groups_limit: {value}.",
}
"""What segtail does not see, in the words of the alert ObserverBlind."""

LEAST_FREE = 3
"""Whatever the forecast, a log dir is a problem with so much less free than ``free_ratio``, as a part of that."""

CRITICAL_FREE = 0.02
"""With a smaller part of it free a log dir may be full at any moment."""

SCRUB_WAITS_S = 300.0
"""A call of the scrub that has not come back for longer does not come back."""

FULL = "full"
"""The reason of a log dir that has no room left: whatever its broker cannot do there has this cause."""


def observer_problems(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    """Problems of the watching itself."""
    many = _are_many_down(circumstances.agents)
    for agent in circumstances.agents:
        yield from _agent(circumstances, agent, CRITICAL if many else WARNING)
    yield from _unreadable(circumstances)
    if circumstances.start is not None:
        return  # what is not known yet is no problem: the first sentence says how far the start is
    if circumstances.live:
        yield from _lagging(circumstances)
    yield from _metadata(circumstances)
    yield from _blind(circumstances)
    yield from _blind_to_groups(circumstances)


def _are_many_down(agents: Sequence[AgentStatus]) -> bool:
    """Whether so many agents are away that partitions without any replica that is read are likely."""
    down = sum(len(each.brokers) or 1 for each in agents if not each.up)
    return down > MANY_DOWN * sum(len(each.brokers) or 1 for each in agents)


def _agent(circumstances: Circumstances, agent: AgentStatus, severity: str) -> Iterator[LinkedProblem]:
    if agent.up or (
        agent.brokers and all(broker in circumstances.phases and not _is_there(circumstances, broker) for broker in agent.brokers)
    ):
        return
    is_used = not _NOT_USED.intersection(agent.problems)
    brokers = f" of broker {', '.join(map(str, agent.brokers))}" if agent.brokers else ""
    yield found(
        kinds.AGENT_DOWN,
        agent.explanation.rstrip(".") or "its host is down, the agent has ended, or the network is cut",
        severity=severity,
        broker=agent.brokers[0] if len(agent.brokers) == 1 else -1,
        agent=agent.name,
        does="does not answer" if is_used else "answers but is not used",
        holds_back=f"segtail gets no new data{brokers or ' from this agent'}.",
        links=Links(brokers=tuple(agent.brokers)),
    )


def _is_there(circumstances: Circumstances, broker: int) -> bool:
    """Whether a broker was not shut down in an orderly way, so that its agent should be there, too."""
    return circumstances.phases[broker].phase.value != "stopping"


def _unreadable(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    counts: Counter[int] = Counter()
    for agent in circumstances.up:
        for each in agent.unreadable:
            counts[each.broker] += each.logs
    named_logs = [
        log for agent in reversed(circumstances.up) for log in reversed(agent.unreadable_logs) if circumstances.export.has_topic(log.topic)
    ]
    first = {log.broker: log for log in named_logs}
    named = Counter(log.broker for agent in circumstances.up for log in agent.unreadable_logs)
    for broker in sorted(counts.keys() | named.keys()):
        log, count = first.get(broker), max(counts[broker], named[broker])
        if count:
            detail = "" if log is None else f"{format_name(log.path, 500)}: {format_name(log.error, 500)}"
            topic, partition = (log.topic, log.partition) if log is not None and count == 1 else ("", -1)
            yield found(kinds.LOG_UNREADABLE, detail, broker=broker, topic=topic, partition=partition, value=count)


def _lagging(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    for agent in circumstances.agents:
        if not agent.up:
            continue
        size, seconds = circumstances.lags.get(agent.name, (None, 0.0))
        if seconds <= FAR_LAG_S:
            continue
        waits = "events" if size is None else format_size(size)
        since_ms = circumstances.now_ms - round(seconds * 1000)
        for broker in agent.brokers:
            detail = f"{waits} wait, the oldest for {format_duration(seconds)}"
            yield found(kinds.LAGGING, detail, broker=broker, agent=agent.name, since_ms=since_ms)


def _metadata(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    expected = [status for status in circumstances.brokers if status.expected]
    if expected and not any(status.readable for status in expected):
        yield found(kinds.METADATA_UNREADABLE, "leaders, replicas, topics, options and the state of brokers are not known")


def _blind(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    expected = sorted((status for status in circumstances.brokers if status.expected), key=lambda status: status.broker)
    if any(status.readable for status in expected):
        yield from (_unseen("metadata_unreadable", broker=status.broker) for status in expected if not status.readable)
    yield from (_unseen("snapshot_unreadable", broker=status.broker) for status in expected if status.readable and not status.snapshot)
    coordinators = circumstances.view.observed.coordinators
    missing = 0 if coordinators.partitions is None else coordinators.partitions - len(coordinators.readable_partitions)
    if missing > 0:
        yield _unseen("coordinators_unreadable", value=missing, costs="segtail reports no transaction as hanging.")
    if coordinators.coordinators.not_understood:
        yield _unseen(
            "entries_not_understood", value=coordinators.coordinators.not_understood, costs="segtail reports no transaction as hanging."
        )
    for broker, count in sorted(unobserved(circumstances.brokers, watched_by(circumstances.agents).brokers).items()):
        if count and circumstances.live:
            yield _unseen("broker_unwatched", broker=broker, value=count, costs="segtail knows nothing of their logs.")
    for agent in circumstances.agents:
        for reason in (Reason.SHARED_LOG_DIR, Reason.CLOCK):
            if reason in agent.problems:
                yield _unseen(str(reason), agent=agent.name)


def _unseen(
    reason: str,
    *,
    severity: str = WARNING,
    broker: int = -1,
    topic: str = "",
    agent: str = "",
    value: int = 0,
    costs: str = "",
) -> LinkedProblem:
    detail = UNKNOWN[reason].format(broker=broker, topic=format_name(topic), agent=format_name(agent), value=value).rstrip(".")
    return found(
        kinds.BLIND,
        detail,
        severity=severity,
        broker=broker,
        topic=topic,
        agent=agent,
        reason=reason,
        holds_back=costs,
        links=Links(reason=reason),
    )


def _blind_to_groups(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    """Consumer groups of which nothing is known: whatever they lose, no alert reports it."""
    if circumstances.groups is None or any(each.catching_up for each in circumstances.up):
        return
    snapshot = circumstances.groups.snapshot
    for reason, counts in (("groups_unread", snapshot.unread), ("groups_not_understood", snapshot.not_understood)):
        for topic, count in counts.items():
            if count:
                yield _unseen(reason, severity=CRITICAL, topic=topic, value=count, costs="What their groups will lose is not known.")
    if snapshot.checkpoints_unread:
        costs = "What their queries will lose is not known."
        yield _unseen("groups_checkpoints_unread", severity=CRITICAL, value=snapshot.checkpoints_unread, costs=costs)
    if snapshot.omitted:
        yield _unseen("groups_omitted", severity=CRITICAL, value=snapshot.omitted)


def log_dir_problems(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    """Problems of the log dirs that agents watch.

    Problems of log dirs: full, given up by their broker, not readable, not watched, and what the scrub finds in them.
    """
    files = sorted((each for agent in circumstances.up for each in agent.blocked), key=lambda each: each.seconds)
    blocked = {(each.broker, each.log_dir): each for each in files}
    for log_dir in circumstances.log_dirs:
        hanging = blocked.pop((log_dir.broker, log_dir.log_dir), None)
        if hanging is not None and not log_dir.up:  # another agent may read it all the same
            yield _blocked(circumstances, hanging.broker, hanging.log_dir, hanging.path, hanging.seconds)
        else:
            yield from _of_log_dir(circumstances, log_dir)
    for left in blocked.values():
        yield _blocked(circumstances, left.broker, left.log_dir, left.path, left.seconds)
    yield from _unwatched(circumstances)
    for scrub in each_scrub(scrub for agent in circumstances.up for scrub in agent.scrubs):
        yield from _of_scrub(circumstances, scrub)


def _blocked(circumstances: Circumstances, broker: int, log_dir: str, path: str, seconds: float) -> LinkedProblem:
    detail = f"a call to {format_name(path, 500)} has not come back for {format_duration(seconds)}"
    since_ms = circumstances.now_ms - round(seconds * 1000)
    return found(kinds.LOG_DIR_UNREADABLE, detail, broker=broker, log_dir=log_dir, since_ms=since_ms)


def _of_log_dir(circumstances: Circumstances, log_dir: LogDirStatus) -> Iterator[LinkedProblem]:
    broker, path = log_dir.broker, log_dir.log_dir
    if not log_dir.up:
        command = circumstances.commands.list_directory(path)
        yield found(kinds.LOG_DIR_UNREADABLE, format_name(log_dir.problem, 500), broker=broker, log_dir=path, command=command)
        return
    error = f"{'it is full, and after such' if is_full(log_dir) else 'after'} an I/O error it stays away until the broker is started again"
    if log_dir.registered is False:
        yield found(kinds.LOG_DIR_OFFLINE, f"the broker's registration does not list it: {error}", broker=broker, log_dir=path)
    elif is_given_up(log_dir, circumstances.processes):
        yield found(kinds.LOG_DIR_OFFLINE, f"the broker runs, and has let go of its lock: {error}", broker=broker, log_dir=path)
    elif (
        circumstances.live
        and is_checkpointed(log_dir)
        and circumstances.now_ms - log_dir.checkpoint_ms > NOT_WRITING_MS
        and _writes(circumstances, broker)
    ):
        age = format_duration((circumstances.now_ms - log_dir.checkpoint_ms) / 1000)
        detail = f"the broker runs, and has written no checkpoint there for {age}"
        yield found(kinds.LOG_DIR_OFFLINE, detail, broker=broker, log_dir=path, since_ms=log_dir.checkpoint_ms)
    if log_dir.stray_only or log_dir.unnamed:
        parts = {"stray_only": "with perhaps the only copy of their records", "unnamed": "without partition.metadata"}
        counts = {name: getattr(log_dir, name) for name in parts}
        detail = " and ".join(f"{format_count(count, 'log')} {parts[name]}" for name, count in counts.items() if count)
        some = format_list([format_name(each) for each in log_dir.set_aside], 3)
        yield found(kinds.LOG_SET_ASIDE, f"{detail}: {some}", broker=broker, log_dir=path, command=circumstances.commands.disk(path))
    yield from _of_space(circumstances, log_dir)


def _writes(circumstances: Circumstances, broker: int) -> bool:
    """Whether the broker runs and writes elsewhere."""
    last = max(circumstances.checkpointed_ms.get(broker, -1), circumstances.appended_ms.get(broker, -1))
    return circumstances.runs(broker) and circumstances.now_ms - last <= NOT_WRITING_MS


def _of_space(circumstances: Circumstances, log_dir: LogDirStatus) -> Iterator[LinkedProblem]:
    """A log dir that is full or will be: by the forecast of `segtail disk`, and by what is free now, as a flood is no forecast at first."""
    if log_dir.capacity <= 0 or log_dir.free < 0:
        return
    full_of = partial(found, kinds.LOG_DIR_FULL, broker=log_dir.broker, log_dir=log_dir.log_dir)
    detail = f"{format_size(log_dir.free)} of {format_size(log_dir.capacity)} are free, {100 * log_dir.free / log_dir.capacity:.1f} %"
    if is_full(log_dir):
        costs = "Kafka takes a log dir offline when it cannot write to it, or stops if it has no other."
        yield full_of(detail, severity=CRITICAL, does="is full", holds_back=costs, links=Links(reason=FULL))
        return
    full = circumstances.full.get((log_dir.broker, log_dir.log_dir))
    soon = full is not None and 1000 * full - circumstances.now_ms < circumstances.thresholds.full_within_ms
    if soon or log_dir.free < circumstances.thresholds.free_ratio / LEAST_FREE * log_dir.capacity:
        if full is not None:
            detail = f"{full_phrase(round(full * 1000), circumstances.times)}, with what retention frees by then; {detail}"
        deadline_ms = -1 if full is None else round(full * 1000)
        severity = CRITICAL if soon or log_dir.free < CRITICAL_FREE * log_dir.capacity else WARNING
        yield full_of(detail, severity=severity, does="is filling up" if soon else "is nearly full", deadline_ms=deadline_ms)


def _unwatched(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    watched = watched_by(circumstances.agents)
    if not watched.complete:
        return
    for broker, count in unwatched_log_dirs(circumstances.brokers, watched.directories, watched.unnamed).items():
        if count:
            unseen = "no agent has in its log_dirs" if circumstances.live else "nobody named"
            detail = f"{format_count(count, 'log dir')} of broker {broker}, which {unseen}"
            yield found(kinds.LOG_DIR_UNWATCHED, detail, broker=broker)


def _of_scrub(circumstances: Circumstances, scrub: ScrubStatus) -> Iterator[LinkedProblem]:
    report = partial(found, broker=scrub.broker, log_dir=scrub.log_dir)
    if scrub.corrupt:
        count = "1 damaged batch" if scrub.corrupt == 1 else f"{scrub.corrupt:,} damaged batches"
        first = scrub.corrupt_batches[:1]
        places = [f"{format_name(each.path, 500)} from byte {each.position} on, offset {each.offset}: {each.fault}" for each in first]
        command = circumstances.commands.verify(first[0].path) if first else Command()
        yield report(kinds.SCRUB_CORRUPT, "; ".join([count, *places]), command=command)
    if scrub.unreadable:
        files = [f"{format_name(each.path, 500)}: {format_name(each.error, 500)}" for each in scrub.unreadable_files[:1]]
        yield report(kinds.SCRUB_UNREADABLE, "; ".join([format_count(scrub.unreadable, "file"), *files]))
    elif scrub.waits_at and scrub.waits_seconds > SCRUB_WAITS_S:
        detail = f"a call to {format_name(scrub.waits_at, 500)} has not come back for {format_duration(scrub.waits_seconds)}"
        yield report(kinds.SCRUB_UNREADABLE, detail)
    last = scrub.ended_ms if scrub.ended_ms >= 0 else scrub.began_ms
    if last >= 0 and circumstances.now_ms - last > circumstances.thresholds.scrub_overdue_after_ms:
        yield report(kinds.SCRUB_OVERDUE, f"no pass has ended for {format_duration((circumstances.now_ms - last) / 1000)}", since_ms=last)
