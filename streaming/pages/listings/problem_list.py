"""The list of problems: a line for each incident, which is its root with what follows from it."""

from streaming.broker.protocol.problem_json import Problem
from streaming.common.formatting import NONE, format_name
from streaming.pages.listings.list_cells import Cell, Times, Unit, partition_cell
from streaming.pages.listings.listing import Field, Listing

_MOST_FOLLOWING = 2
"""So much of what follows from a root is in its line."""


def about(row: Problem, _: Times) -> Cell:
    """The smallest thing that a problem names."""
    if row.topic and row.partition >= 0:
        return partition_cell(row.topic, row.partition)
    named = ((row.topic, "topic"), (row.group, "group"), (row.log_dir, "log dir"), (row.agent, "agent"))
    text = next((f"{noun} {format_name(name)}" for name, noun in named if name), "")
    return Cell(text=text or (f"broker {row.broker}" if row.broker >= 0 else NONE))


def _gravity(row: Problem, _: Times) -> Cell:
    return Cell(text=row.gravity or NONE)


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


PROBLEMS = Listing(
    name="problems",
    noun="problem",
    row=Problem,
    fields=(
        Field(name="kind", unit=Unit.WORD, meaning="such as `transaction_hanging` or `log_dir_full`"),
        Field(
            name="severity",
            unit=Unit.WORD,
            meaning="`critical`, `warning` or `info`",
            heading="Severity",
            rank=1,
            toned=True,
            cell=_gravity,
        ),
        Field(name="what", unit=Unit.SENTENCE, meaning="a sentence", heading="What", rank=2, least=40, cell=what),
        Field(name="summary", unit=Unit.SENTENCE, meaning="the beginning of it, enough for a heading; the rest follows after `: `"),
        Field(name="broker", unit=Unit.ID, meaning="what it is about"),
        Field(name="topic", unit=Unit.NAME, meaning="likewise", heading="About", rank=4, least=12, cell=about),
        Field(name="partition", unit=Unit.ID, meaning="likewise"),
        Field(name="group", unit=Unit.NAME, meaning="likewise"),
        Field(name="log_dir", unit=Unit.NAME, meaning="likewise"),
        Field(name="agent", unit=Unit.NAME, meaning="likewise"),
        Field(name="since_ms", unit=Unit.MOMENT, meaning="since when", heading="Since", rank=3, cell=since_or_due),
        Field(name="holds_back", unit=Unit.SENTENCE, meaning="what it holds back or costs, as a sentence"),
        Field(name="command", unit=Unit.SENTENCE, meaning="what mends it, or shows more of it, quoted for a shell"),
        Field(name="no_command", unit=Unit.SENTENCE, meaning="why there is none, where one could be expected"),
        Field(name="runbook", unit=Unit.WORD, meaning="the alert, and the name of its runbook: `segtail runbook NAME`, `/runbooks/NAME`"),
        Field(name="id", unit=Unit.WORD, meaning="its name, which stays while it is about the same"),
        Field(name="because", unit=Unit.WORD, meaning="the `id` of its root, the problem that it follows from; `null` for a root"),
        Field(
            name="deadline_ms",
            unit=Unit.MOMENT,
            meaning="when the first record is lost because of it, or the log dir is full; of a root the earliest of its incident",
        ),
        Field(name="worst", unit=Unit.WORD, meaning="of a root the highest `severity` of its incident, else its own"),
        Field(name="consequences", unit=Unit.SENTENCE, meaning="list of `Consequence`: what follows from a root, the worst first"),
        Field(name="more_consequences", unit=Unit.COUNT, meaning="so many are left out there"),
    ),
)
