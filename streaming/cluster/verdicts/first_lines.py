"""The sentences that everything begins with: what is wrong, all in all, how fresh what is known is, and why it is not current."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from streaming.broker.protocol.group_json import GroupUse, GroupVerdict
from streaming.broker.protocol.status_json import CRITICAL, INFO, WARNING, Problem
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.group_judge import JudgedGroups
from streaming.cluster.verdicts.group_sentences import FEW_MARKERS
from streaming.cluster.verdicts.incidents import count
from streaming.cluster.view.observer import FAR_LAG_S
from streaming.cluster.view.taillag import StartProgress, StartStep
from streaming.common.units import format_age, format_be, format_count, format_duration, format_list, format_name, format_size, format_time
from streaming.rules.broker_process import AWAY

_STEPS = {
    StartStep.AGENTS: "Starting: no agent has answered yet",
    StartStep.SPARK: "Starting Spark, which counts what is on the disks",
    StartStep.READING: "Reading the disks",
    StartStep.COUNTING: "Counting what was on the disks",
}

OF_SIGHT = frozenset(
    {
        kinds.METADATA_UNREADABLE.name,
        kinds.BLIND.name,
        kinds.AGENT_DOWN.name,
        kinds.LOG_DIR_UNREADABLE.name,
        kinds.LOG_DIR_UNWATCHED.name,
        kinds.LOG_UNREADABLE.name,
        kinds.LAGGING.name,
    }
)
"""Kinds because of which something may be wrong that is not seen."""

_MOST_NAMED = 3
_NOT_ASKED = "No agent has been asked for half a minute"


def verdict(circumstances: Circumstances, all_problems: Sequence[Problem]) -> str:
    """The first line: what is wrong, all in all; of a job that starts, how far it is. A sentence without a period."""
    counts = count(all_problems)
    if circumstances.start is not None:
        return f"{start_sentence(circumstances.start)}{_so_far(all_problems)}"
    seen = f"{format_count(len(circumstances.view.logs.columns), 'partition')} of {format_count(_brokers(circumstances), 'broker')}"
    first = all_problems[0] if all_problems else None
    if first is None or first.gravity == INFO:
        notes = f", and {format_count(counts[INFO], 'note')}" if counts[INFO] else ""
        blind = any(True for _ in unknown(circumstances, all_problems))
        nobody = _nobody_reads(circumstances)
        well = "Nothing is critical" if nobody else "Nothing is wrong"
        sentence = f"{well}{', as far as is known' if blind else ''}: {seen}{nobody}{notes}"
    else:
        sentence = f"{_numbers(counts)} in {seen}. {first.summary or first.what}"
    return sentence


def start_sentence(start: StartProgress) -> str:
    """The first sentence of a job that starts, without a period: what it does, how far that is, and for how long it will take."""
    return f"{_STEPS[start.step]}{_how_far(start)}"


def _how_far(start: StartProgress) -> str:
    done, whole = start.done_bytes, start.all_bytes
    if whole <= 0:
        return f": {format_size(done)} so far" if done > 0 else ""
    if done < 0:
        return f": {format_size(whole)} are read"
    left = f", {format_duration(max(1.0, start.left_s))} left" if start.left_s > 0 else ""
    share = f"{100 * done // whole} %, " if done else ""  # while nothing is done, more is still found
    return f": {share}{format_size(done)} of {format_size(whole)}{left}"


def _so_far(all_problems: Sequence[Problem]) -> str:
    """What a job that starts has found already; nothing if that is not worth a word: it does not mean that all is well."""
    first = all_problems[0] if all_problems else None
    if first is None or first.gravity == INFO:
        return ""
    return f". So far: {_numbers(count(all_problems))}. {first.summary or first.what}"


def _numbers(counts: Mapping[str, int]) -> str:
    of_each = [format_count(counts[CRITICAL], "critical problem")] if counts[CRITICAL] else []
    of_each += [format_count(counts[WARNING], "warning")] if counts[WARNING] else []
    return " and ".join(of_each)


def _brokers(circumstances: Circumstances) -> int:
    return len(
        {broker for each in circumstances.agents for broker in each.brokers} | set(circumstances.view.logs.columns["broker"].tolist())
    )


def unknown(circumstances: Circumstances, all_problems: Sequence[Problem]) -> Iterator[str]:
    """What cannot be told, in sentences: something may be wrong there that is no problem here."""
    yield from (each.what for each in all_problems if each.kind in OF_SIGHT)
    if circumstances.stale:
        yield "The last reports of agents are older than half a minute, so the state of brokers and log dirs is not known now"
    reading = _reading(circumstances) if circumstances.start is None else []
    if reading:
        does = f"{format_be(len(reading))} still reading {'its disk' if len(reading) == 1 else 'their disks'}"
        yield f"{format_list(reading, _MOST_NAMED)} {does}: what is wrong there may not be known yet"
    late = circumstances.view.logs.late_omitted
    if late:
        yield f"{format_count(late, 'late transaction')} not listed, because there are more than late_limit"
    yield from _perhaps_lost(circumstances)


def _reading(circumstances: Circumstances) -> list[str]:
    """The agents that still read what was on their disks."""
    return [format_name(each.name) for each in circumstances.up if each.catching_up]


def _perhaps_lost(circumstances: Circumstances) -> Iterator[str]:
    """The groups that have likely lost records that are not on disk any more; one or two offsets were likely markers."""
    judged = circumstances.groups
    if judged is None:
        return
    rows, severity = judged.snapshot.rows, judged.commits.severity[GroupVerdict.PERHAPS_LOST]
    some = np.unique(rows.group[(severity != ABSENT) & (judged.snapshot.found.lags.below > FEW_MARKERS)]).tolist()
    names = sorted(name for name in (rows.group_names[each] for each in some) if _may_be_missed(circumstances, judged, name))
    if names:
        groups = f"{format_count(len(names), 'group')}: {format_list([format_name(each) for each in names], _MOST_NAMED)}"
        yield f"Offsets were deleted unread, and whether records were among them is not known, of {groups}"


def _may_be_missed(circumstances: Circumstances, judged: JudgedGroups, group: str) -> bool:
    nobodys = GroupUse.ABANDONED, GroupUse.THROW_AWAY
    return judged.usage[group].use not in nobodys and circumstances.export.has_consumer(group)


def _nobody_reads(circumstances: Circumstances) -> str:
    """Which groups have lost their members and have records left; "" if there are none whose losses matter."""
    judged = circumstances.groups
    if judged is None:
        return ""
    rows = judged.snapshot.rows
    missed = {name for name in judged.deserted if _may_be_missed(circumstances, judged, name)}
    if not missed:
        return ""
    some = np.array([name in missed for name in rows.group_names], np.bool_)[rows.group] & (judged.commits.lag > 0)
    unit = "record" if np.all(judged.snapshot.found.lags.left[some] >= 0) else "offset"
    have = "has" if len(missed) == 1 else "have"
    left = format_count(int(judged.commits.lag[some].sum()), unit)
    return f"; {format_count(len(missed), 'group')} {have} no members and {left} left to read"


def freshness(circumstances: Circumstances, newest_ms: int) -> str:
    """The second line: up to when what is known is whole, and by whom. A sentence without a period.

    Args:
        newest_ms: everything up to then is in the numbers, of all agents that are up; -1 not known.
    """
    down = [format_name(each.name) for each in circumstances.agents if not each.up]
    if not circumstances.live:
        return f"Read from log dirs as of {format_time(circumstances.now_ms)}{_idle(circumstances)}"
    if circumstances.start is not None and not circumstances.agents:
        return "Nothing is known yet"
    if circumstances.stale:
        return _NOT_ASKED
    if not circumstances.up:
        return _no_answer(down)
    agents = (
        f"{len(circumstances.up):,} of {format_count(len(circumstances.agents), 'agent')}"
        if down
        else format_count(len(circumstances.up), "agent")
    )
    without = f"; nothing new from {format_list(down, _MOST_NAMED)}" if down else ""
    if circumstances.start is not None:
        return f"Brokers and disks are known from {agents}{without}; partitions, transactions and groups follow"
    reading = _reading(circumstances)
    late = f"; still reading: {format_list(reading, _MOST_NAMED)}" if reading else ""
    if newest_ms < 0:
        return f"The age of the numbers of {agents} is not known yet{without}{late}"
    newest_ms = min(newest_ms, circumstances.now_ms)  # what has not been written cannot be counted
    age = format_age((circumstances.now_ms - newest_ms) / 1000)
    return f"Everything up to {format_time(newest_ms)} ({age}) is counted, of {agents}{without}{late}"


def _idle(circumstances: Circumstances) -> str:
    """Whether the brokers of log dirs that were read once are down: then no broker appends, deletes or aborts anything."""
    away = {broker: each.last_ms for broker, each in circumstances.processes.items() if each.state in AWAY}
    written = away | circumstances.checkpointed_ms
    if not circumstances.idle or len(circumstances.idle) < len(written):
        return ""
    age = format_duration((circumstances.now_ms - max(written.values())) / 1000)
    copy = ", or this is a copy" if any(map(circumstances.may_be_copy, circumstances.idle)) else ""
    return f"; no broker has written there for {age}: it is down{copy}"


def _no_answer(down: Sequence[str]) -> str:
    return f"No agent answers: {format_list(down, _MOST_NAMED) if down else 'none is known'}"


def not_current(circumstances: Circumstances, newest_ms: int) -> str:
    """Why nothing of what a job shows is current, in a sentence without a period; "" if some of it is, or it only starts.

    Args:
        newest_ms: as for `freshness`.
    """
    if not circumstances.live or circumstances.start is not None:
        return ""
    if circumstances.stale:
        return _NOT_ASKED
    if not circumstances.up:
        return _no_answer([format_name(each.name) for each in circumstances.agents])
    waits = [circumstances.lags.get(each.name, (None, 0.0))[1] for each in circumstances.up]
    if min(waits) <= FAR_LAG_S:
        return ""
    upto = f"since {format_time(newest_ms)} " if 0 <= newest_ms <= circumstances.now_ms else ""
    return f"Appends {upto}are not counted yet: the oldest has waited for {format_duration(max(waits))}"


def not_whole(circumstances: Circumstances) -> Iterator[str]:
    """Why no list is whole yet of a job that starts, in a sentence: what it does not list may be there, and wrong."""
    if circumstances.start is not None:
        yield f"This list is incomplete, because the job is starting. {start_sentence(circumstances.start)}"
