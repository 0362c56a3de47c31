"""The list of events: what has changed lately, the newest first."""

from streaming.broker.protocol.event_json import ClusterEvent, EventKind
from streaming.common.formatting import NONE, format_count, format_duration
from streaming.pages.listings.list_cells import Cell, Times, Unit
from streaming.pages.listings.listing import Field, Listing

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


def _when(row: ClusterEvent, times: Times) -> Cell:
    return Cell(text=times.of(row.at_ms), at_ms=row.at_ms, moment_ms=row.seen_ms)


def _change(row: ClusterEvent, _: Times) -> Cell:
    word = _WORDS.get(row.kind, row.kind)  # type: ignore[call-overload]
    return Cell(text=f"{word} ({row.severity})" if row.severity else word)


def _what(row: ClusterEvent, _: Times) -> Cell:
    lasted = f", after {format_duration(row.lasted_ms / 1000)}" if row.lasted_ms >= 0 else ""
    return Cell(text=f"{row.what}{lasted}")


def _times(row: ClusterEvent, times: Times) -> Cell:
    return Cell(text=f"{format_count(row.times, 'time')} since {times.of(row.first_ms)}" if row.times > 1 else NONE)


EVENTS = Listing(
    name="events",
    noun="event",
    row=ClusterEvent,
    fields=(
        Field(
            name="kind",
            unit=Unit.WORD,
            meaning="`problem_began`, `problem_worsened`, `problem_ended`, `broker_restarted`, `broker_added`, `broker_removed`, "
            "`agent_restarted`, `leaders_changed`, `controller_changed` or `job_started`",
            heading="Change",
            rank=2,
            cell=_change,
        ),
        Field(
            name="at_ms",
            unit=Unit.MOMENT,
            meaning="when it was so; where only a look shows it, when it was seen",
            heading="When",
            rank=1,
            cell=_when,
        ),
        Field(name="what", unit=Unit.SENTENCE, meaning="a sentence", heading="What", rank=3, least=40, cell=_what),
        Field(name="severity", unit=Unit.WORD, meaning="of the problem, of a root the worst of its incident; `null` of what is no problem"),
        Field(name="lasted_ms", unit=Unit.DURATION, meaning="of a problem that ended: for how long it was known"),
        Field(
            name="times",
            unit=Unit.COUNT,
            meaning="how often the same has come, an hour apart at most",
            heading="Again",
            rank=4,
            cell=_times,
        ),
        Field(name="first_ms", unit=Unit.MOMENT, meaning="when it came first, if more than once"),
        Field(name="seen_ms", unit=Unit.MOMENT, meaning="when the job saw it: the page shows how everything was then at `/?at=` with this"),
        Field(name="broker", unit=Unit.ID, meaning="what it is about"),
        Field(name="topic", unit=Unit.NAME, meaning="likewise"),
        Field(name="partition", unit=Unit.ID, meaning="likewise"),
        Field(name="group", unit=Unit.NAME, meaning="likewise"),
        Field(name="log_dir", unit=Unit.NAME, meaning="likewise"),
        Field(name="agent", unit=Unit.NAME, meaning="likewise"),
        Field(name="problem", unit=Unit.WORD, meaning="the `id` of the problem that began or ended"),
        Field(name="because", unit=Unit.WORD, meaning="the `id` of the problem that it follows from; `null` of a root"),
        Field(name="runbook", unit=Unit.WORD, meaning="as in `Problem`"),
    ),
)
