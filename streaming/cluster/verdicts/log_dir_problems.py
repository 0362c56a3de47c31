"""Problems of log dirs: full, given up by their broker, not readable, not watched, and what the scrub finds in them."""

from collections.abc import Iterator
from functools import partial

from streaming.broker.protocol.status_json import CRITICAL, WARNING
from streaming.broker.protocol.status_messages import LogDirStatus, ScrubStatus
from streaming.cluster.usage.disk_answer import full_phrase
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.circumstances import NOT_WRITING_MS, Circumstances, LinkedProblem, found
from streaming.cluster.verdicts.commands import Command
from streaming.cluster.view.broker_status import each_scrub, is_given_up, unwatched_log_dirs
from streaming.cluster.view.host_families import is_checkpointed
from streaming.cluster.view.observer import watched_by
from streaming.common.formatting import format_count, format_duration, format_list, format_name, format_size

LEAST_FREE = 3
"""Whatever the forecast, a log dir is a problem with so much less free than ``free_ratio``, as a part of that."""

CRITICAL_FREE = 0.02
"""With a smaller part of it free a log dir may be full at any moment."""

SCRUB_WAITS_S = 300.0
"""A call of the scrub that has not come back for longer does not come back."""


def log_dir_problems(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    """Problems of the log dirs that agents watch."""
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
    if log_dir.registered is False:
        detail = "the broker's registration does not list it: after an I/O error it stays away until the broker is started again"
        yield found(kinds.LOG_DIR_OFFLINE, detail, broker=broker, log_dir=path)
    elif is_given_up(log_dir, circumstances.processes):
        detail = "the broker runs, and has let go of its lock: after an I/O error it stays away until the broker is started again"
        yield found(kinds.LOG_DIR_OFFLINE, detail, broker=broker, log_dir=path)
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


def _of_space(circumstances: Circumstances, log_dir: LogDirStatus) -> Iterator[LinkedProblem]:
    """By the forecast, as `segtail disk` makes it, and by what is free now, because a flood is no forecast before it lasts."""
    if log_dir.capacity <= 0 or log_dir.free < 0:
        return
    detail = f"{format_size(log_dir.free)} of {format_size(log_dir.capacity)} are free, {100 * log_dir.free / log_dir.capacity:.1f} %"
    full = circumstances.full.get((log_dir.broker, log_dir.log_dir))
    soon = full is not None and 1000 * full - circumstances.now_ms < circumstances.thresholds.full_within_ms
    if soon or log_dir.free < circumstances.thresholds.free_ratio / LEAST_FREE * log_dir.capacity:
        if full is not None:
            detail = f"{full_phrase(round(full * 1000), circumstances.times)}, with what retention frees by then; {detail}"
        deadline_ms = -1 if full is None else round(full * 1000)
        severity = CRITICAL if soon or log_dir.free < CRITICAL_FREE * log_dir.capacity else WARNING
        yield found(kinds.LOG_DIR_FULL, detail, severity=severity, broker=log_dir.broker, log_dir=log_dir.log_dir, deadline_ms=deadline_ms)


def _writes(circumstances: Circumstances, broker: int) -> bool:
    """Whether the broker runs and writes elsewhere."""
    last = max(circumstances.checkpointed_ms.get(broker, -1), circumstances.appended_ms.get(broker, -1))
    return circumstances.runs(broker) and circumstances.now_ms - last <= NOT_WRITING_MS


def _unwatched(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    watched = watched_by(circumstances.agents)
    if not watched.complete:
        return
    for broker, count in unwatched_log_dirs(circumstances.brokers, watched.directories, watched.unnamed).items():
        if count:
            detail = f"{format_count(count, 'log dir')} of it, which no agent has in its log_dirs"
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
