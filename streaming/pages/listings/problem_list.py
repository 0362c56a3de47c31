"""The lists of problems, of what has changed, and of the numbers of a good day."""

from streaming.broker.protocol.status_json import (
    EVENTS_PATH,
    PROBLEMS_PATH,
    ClusterEvent,
    ClusterNumbers,
    EventKind,
    EventPage,
    Problem,
    ProblemPage,
)
from streaming.common.formatting import NONE, format_count, format_duration, format_name
from streaming.pages.listings.list_cells import Cell, Times, after_start, count, partition_cell, place, rate, size
from streaming.pages.listings.listing import Listing

FIGURES = 6
"""So many of the columns of numbers are of now; the others are about what comes next."""

_MOST_FOLLOWING = 2
"""So much of what follows from a root is in its line."""


def about(row: Problem, _: Times) -> Cell:
    """The smallest thing that a problem names."""
    if row.topic and row.partition >= 0:
        return partition_cell(row.topic, row.partition)
    named = ((row.topic, "topic"), (row.group, "group"), (row.log_dir, "log dir"), (row.agent, "agent"))
    text = next((f"{noun} {format_name(name)}" for name, noun in named if name), "")
    return Cell(text=text or (f"broker {row.broker}" if row.broker >= 0 else NONE))


def what(row: Problem, _: Times) -> Cell:
    """The sentence of a problem from which nothing follows; else the beginning of it, with what does."""
    if not row.consequences:
        return Cell(text=row.what or NONE)
    more = len(row.consequences) + row.more_consequences - _MOST_FOLLOWING
    follows = "; ".join(each.text for each in row.consequences[:_MOST_FOLLOWING]) + (f"; and {more:,} more" if more > 0 else "")
    return Cell(text=f"{row.summary or row.what} -> {follows}")


def since_or_due(row: Problem, times: Times) -> Cell:
    """When something is lost; since when it is so where nothing is."""
    if row.deadline_ms < 0:
        return Cell(text=times.of(row.since_ms), at_ms=row.since_ms)
    return Cell(text=f"due {times.deadline(row.deadline_ms)}", at_ms=row.deadline_ms)


_WORDS = {
    EventKind.PROBLEM_BEGAN: "began",
    EventKind.PROBLEM_WORSENED: "worse",
    EventKind.PROBLEM_ENDED: "ended",
    EventKind.BROKER_RESTARTED: "restart",
    EventKind.BROKER_ADDED: "new",
    EventKind.BROKER_REMOVED: "gone",
    EventKind.AGENT_RESTARTED: "restart",
    EventKind.LEADERS_CHANGED: "election",
    EventKind.CONTROLLER_CHANGED: "election",
    EventKind.JOB_STARTED: "restart",
}


def _change(row: ClusterEvent, _: Times) -> Cell:
    word = _WORDS.get(row.kind, row.kind)  # type: ignore[call-overload]
    return Cell(text=f"{word} ({row.severity})" if row.severity else word)


def _changed(row: ClusterEvent, _: Times) -> Cell:
    lasted = f", after {format_duration(row.lasted_ms / 1000)}" if row.lasted_ms >= 0 else ""
    return Cell(text=f"{row.what}{lasted}")


def _times(row: ClusterEvent, times: Times) -> Cell:
    return Cell(text=f"{format_count(row.times, 'time')} since {times.of(row.first_ms)}" if row.times > 1 else NONE)


def _without(missing: int) -> str:
    return f"{format_count(missing, 'partition')} not counted" if missing else ""


def _bytes(row: ClusterNumbers, _: Times) -> Cell:
    text = NONE if row.bytes_rate < 0 else f"{size(row.bytes_rate)}/s"
    return Cell(text=text, note=row.rates_why or _without(row.rates_missing), curve=tuple(row.bytes_rates))


def _records(row: ClusterNumbers, _: Times) -> Cell:
    known = row.records_rate >= 0
    note = _without(row.rates_missing) if known else row.rates_why or "no count of records shows it"
    return Cell(text=f"{rate(row.records_rate)}/s" if known else NONE, note=note, curve=tuple(row.records_rates))


def _lag(row: ClusterNumbers, _: Times) -> Cell:
    if row.lag_why:
        return Cell(text=NONE, note=row.lag_why, curve=tuple(row.lag_hour))
    return Cell(
        text=count(row.lag_records), note=f"group {format_name(row.lag_group, 255)}", group=row.lag_group, curve=tuple(row.lag_hour)
    )


def _loss(row: ClusterNumbers, times: Times) -> Cell:
    hour = tuple(row.loss_left_hour)
    if row.loss_why:
        return Cell(text=NONE, note=row.loss_why, curve=hour)
    due = 0 <= row.loss_ms <= times.now_ms
    text = after_start(row.loss_start_of) if row.loss_start_of >= 0 else "next check" if due else times.of(row.loss_ms)
    text += "?" if row.loss_assumed else ""
    return Cell(text=text, note=f"group {format_name(row.loss_group, 255)}", group=row.loss_group, at_ms=row.loss_ms, curve=hour)


def _full(row: ClusterNumbers, times: Times) -> Cell:
    hour = tuple(row.full_left_hour)
    if row.full_why:
        return Cell(text=NONE, note=row.full_why, curve=hour)
    note = f"broker {row.full_broker}, {format_name(row.full_log_dir, 300)}"
    return Cell(text=times.deadline(row.full_ms), note=note, log_dir=row.full_log_dir, at_ms=row.full_ms, curve=hour)


def _in_sync(row: ClusterNumbers, _: Times) -> Cell:
    return Cell(text=count(row.out_of_sync), note=row.sync_why or _without(row.sync_missing), curve=tuple(row.out_of_sync_hour))


def _hanging(row: ClusterNumbers, _: Times) -> Cell:
    unknown = f"it cannot be told of {format_count(row.unjudged, 'open transaction')}" if row.unjudged else ""
    return Cell(text="none" if row.hanging == 0 and not row.unjudged else NONE if row.hanging == 0 else count(row.hanging), note=unknown)


def _oldest(row: ClusterNumbers, times: Times) -> Cell:
    if row.oldest_ms < 0:
        return Cell(text="none is open")
    where = row.oldest_topic, row.oldest_partition
    return Cell(text=times.of(row.oldest_ms), note=place(*where), partition=where, at_ms=row.oldest_ms)


PROBLEMS = Listing(
    name="problems",
    noun="problem",
    row=Problem,
    path=PROBLEMS_PATH,
    page=ProblemPage,
    cells={"severity": lambda row, _: Cell(text=row.gravity or NONE), "what": what, "topic": about, "since_ms": since_or_due},
)
EVENTS = Listing(
    name="events",
    noun="event",
    row=ClusterEvent,
    path=EVENTS_PATH,
    page=EventPage,
    cells={"kind": _change, "at_ms": lambda row, times: Cell(text=times.of(row.at_ms), at_ms=row.at_ms), "what": _changed, "times": _times},
)
CLUSTER_NUMBERS = Listing(
    name="numbers",
    noun="cluster",
    row=ClusterNumbers,
    cells={
        "bytes_rate": _bytes,
        "records_rate": _records,
        "lag_records": _lag,
        "loss_ms": _loss,
        "full_ms": _full,
        "out_of_sync": _in_sync,
        "hanging": _hanging,
        "oldest_ms": _oldest,
    },
)
