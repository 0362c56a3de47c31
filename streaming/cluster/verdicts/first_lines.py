"""The two sentences that everything begins with: what is wrong, all in all, and how fresh what is known is."""

from collections.abc import Iterator, Sequence

from streaming.broker.protocol.problem_json import CRITICAL, INFO, WARNING, Problem
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.all_problems import count
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.common.formatting import format_age, format_count, format_duration, format_list, format_name, format_time
from streaming.rules.broker_process import AWAY

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


def verdict(circumstances: Circumstances, all_problems: Sequence[Problem], *, ready: bool = True) -> str:
    """The first line: what is wrong, all in all. A sentence without a period.

    Args:
        ready: everything that was on the disks at the start is in the numbers.
    """
    counts = count(all_problems)
    seen = f"{format_count(len(circumstances.view.logs.columns), 'partition')} of {format_count(_brokers(circumstances), 'broker')}"
    first = all_problems[0] if all_problems else None
    if first is None or first.gravity == INFO:
        notes = f", and {format_count(counts[INFO], 'note')}" if counts[INFO] else ""
        blind = any(True for _ in unknown(circumstances, all_problems))
        sentence = f"Nothing is wrong{', as far as is known' if blind else ''}: {seen}{notes}"
    else:
        of_each = [format_count(counts[CRITICAL], "critical problem")] if counts[CRITICAL] else []
        of_each += [format_count(counts[WARNING], "warning")] if counts[WARNING] else []
        sentence = f"{' and '.join(of_each)} in {seen}. {first.summary or first.what}"
    return sentence if ready else f"What was on the disks is still being read. {sentence}"


def _idle(circumstances: Circumstances) -> str:
    """Whether the brokers of log dirs that were read once are down: then nobody appends, deletes or aborts anything."""
    away = {broker: each.last_ms for broker, each in circumstances.processes.items() if each.state in AWAY}
    written = away | circumstances.checkpointed_ms
    if not circumstances.idle or len(circumstances.idle) < len(written):
        return ""
    age = format_duration((circumstances.now_ms - max(written.values())) / 1000)
    return f"; no broker has written there for {age}: it is down{', or this is a copy' if circumstances.idle <= away.keys() else ''}"


def freshness(circumstances: Circumstances, newest_ms: int) -> str:
    """The second line: up to when what is known is whole, and by whom. A sentence without a period.

    Args:
        newest_ms: everything up to then is in the numbers, of all agents that are up; -1 not known.
    """
    down = [format_name(each.name) for each in circumstances.agents if not each.up]
    if not circumstances.live:
        return f"Read from log dirs as of {format_time(circumstances.now_ms)}{_idle(circumstances)}"
    if circumstances.stale:
        return "No agent has been asked for half a minute"
    if not circumstances.up:
        return "No agent answers" + (f": {format_list(down, _MOST_NAMED)}" if down else ": none is known")
    agents = (
        f"{len(circumstances.up):,} of {format_count(len(circumstances.agents), 'agent')}"
        if down
        else format_count(len(circumstances.up), "agent")
    )
    without = f"; nothing new from {format_list(down, _MOST_NAMED)}" if down else ""
    reading = [format_name(each.name) for each in circumstances.up if each.catching_up]
    late = f"; still reading: {format_list(reading, _MOST_NAMED)}" if reading else ""
    if newest_ms < 0:
        return f"It is not known yet up to when everything of {agents} is counted{without}{late}"
    age = format_age((circumstances.now_ms - newest_ms) / 1000)
    return f"Everything up to {format_time(newest_ms)} ({age}) is counted, of {agents}{without}{late}"


def unknown(circumstances: Circumstances, all_problems: Sequence[Problem]) -> Iterator[str]:
    """What cannot be told, in sentences: something may be wrong there that is no problem here."""
    yield from (each.what for each in all_problems if each.kind in OF_SIGHT)
    if circumstances.stale:
        yield "What agents last reported of brokers and log dirs is older than half a minute, and counts no more"
    late = circumstances.view.logs.late_omitted
    if late:
        yield f"{format_count(late, 'late transaction')} not listed, because there are more than late_limit"


def _brokers(circumstances: Circumstances) -> int:
    return len(
        {broker for each in circumstances.agents for broker in each.brokers} | set(circumstances.view.logs.columns["broker"].tolist())
    )
