"""The two sentences that everything begins with: what is wrong, all in all, and how fresh what is known is."""

from collections.abc import Iterator, Sequence

from streaming.broker.protocol.problem_json import CRITICAL, INFO, WARNING, Problem
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.all_problems import count
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.common.formatting import format_age, format_count, format_duration, format_list, format_name, format_time

_OF_SIGHT = frozenset(
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


def verdict(of: Circumstances, all_problems: Sequence[Problem], *, ready: bool = True) -> str:
    """The first line: what is wrong, all in all. A sentence without a period.

    Args:
        ready: everything that was on the disks at the start is in the numbers.
    """
    counts = count(all_problems)
    seen = f"{format_count(len(of.shown.logs.columns), 'partition')} of {format_count(_brokers(of), 'broker')}"
    first = all_problems[0] if all_problems else None
    if first is None or first.severity == INFO:
        notes = f", and {format_count(counts[INFO], 'note')}" if counts[INFO] else ""
        blind = any(True for _ in unknown(of, all_problems))
        sentence = f"Nothing is wrong{', as far as is known' if blind else ''}: {seen}{notes}"
    else:
        of_each = [format_count(counts[CRITICAL], "critical problem")] if counts[CRITICAL] else []
        of_each += [format_count(counts[WARNING], "warning")] if counts[WARNING] else []
        sentence = f"{' and '.join(of_each)} in {seen}. {first.what}"
    return sentence if ready else f"What was on the disks is still being read. {sentence}"


def _idle(of: Circumstances) -> str:
    """Whether the brokers of log dirs that were read once seem to be down: then nobody appends, deletes or aborts anything."""
    if not of.idle or len(of.idle) < len(of.checkpointed_ms):
        return ""
    return f"; no broker has written there for {format_duration((of.now_ms - max(of.checkpointed_ms.values())) / 1000)}: it is down"


def freshness(of: Circumstances, newest_ms: int) -> str:
    """The second line: up to when what is known is whole, and by whom. A sentence without a period.

    Args:
        newest_ms: everything up to then is in the numbers, of all agents that are up; -1 not known.
    """
    down = [format_name(each.name) for each in of.agents if not each.up]
    if not of.live:
        return f"Read from log dirs as of {format_time(of.now_ms)}{_idle(of)}"
    if of.stale:
        return "No agent has been asked for half a minute"
    if not of.up:
        return "No agent answers" + (f": {format_list(down, _MOST_NAMED)}" if down else ": none is known")
    agents = f"{len(of.up):,} of {format_count(len(of.agents), 'agent')}" if down else format_count(len(of.up), "agent")
    without = f"; nothing new from {format_list(down, _MOST_NAMED)}" if down else ""
    reading = [format_name(each.name) for each in of.up if each.catching_up]
    late = f"; still reading: {format_list(reading, _MOST_NAMED)}" if reading else ""
    if newest_ms < 0:
        return f"It is not known yet up to when everything of {agents} is counted{without}{late}"
    return (
        f"Everything up to {format_time(newest_ms)} ({format_age((of.now_ms - newest_ms) / 1000)}) is counted, of {agents}{without}{late}"
    )


def unknown(of: Circumstances, all_problems: Sequence[Problem]) -> Iterator[str]:
    """What cannot be told, in sentences: something may be wrong there that is no problem here."""
    yield from (each.what for each in all_problems if each.kind in _OF_SIGHT)
    if of.stale:
        yield "What agents last reported of brokers and log dirs is older than half a minute, and counts no more"
    if of.shown.logs.late_omitted:
        yield f"{format_count(of.shown.logs.late_omitted, 'late transaction')} not listed, because there are more than late_limit"


def _brokers(of: Circumstances) -> int:
    return len({broker for each in of.agents for broker in each.brokers} | set(of.shown.logs.columns["broker"].tolist()))
