"""The list of problems."""

from streaming.broker.protocol.problem_json import Problem
from streaming.common.formatting import NONE, format_name
from streaming.pages.listings.list_cells import Cell, Times, Unit, partition_cell
from streaming.pages.listings.listing import Field, Listing


def about(row: Problem, _: Times) -> Cell:
    """The smallest thing that a problem names."""
    if row.topic and row.partition >= 0:
        return partition_cell(row.topic, row.partition)
    named = ((row.topic, "topic"), (row.group, "group"), (row.log_dir, "log dir"), (row.agent, "agent"))
    text = next((f"{noun} {format_name(name)}" for name, noun in named if name), "")
    return Cell(text=text or (f"broker {row.broker}" if row.broker >= 0 else NONE))


PROBLEMS = Listing(
    name="problems",
    noun="problem",
    row=Problem,
    fields=(
        Field(name="kind", unit=Unit.WORD, meaning="such as `transaction_hanging` or `log_dir_full`"),
        Field(name="severity", unit=Unit.WORD, meaning="`critical`, `warning` or `info`", heading="Severity", rank=1, toned=True),
        Field(name="what", unit=Unit.SENTENCE, meaning="a sentence", heading="What", rank=2, least=40),
        Field(name="summary", unit=Unit.SENTENCE, meaning="the beginning of it, enough for a heading; the rest follows after `: `"),
        Field(name="broker", unit=Unit.ID, meaning="what it is about"),
        Field(name="topic", unit=Unit.NAME, meaning="likewise", heading="About", rank=4, least=12, cell=about),
        Field(name="partition", unit=Unit.ID, meaning="likewise"),
        Field(name="group", unit=Unit.NAME, meaning="likewise"),
        Field(name="log_dir", unit=Unit.NAME, meaning="likewise"),
        Field(name="agent", unit=Unit.NAME, meaning="likewise"),
        Field(name="since_ms", unit=Unit.MOMENT, meaning="since when", heading="Since", rank=3),
        Field(name="holds_back", unit=Unit.SENTENCE, meaning="what it holds back or costs, as a sentence"),
        Field(name="command", unit=Unit.SENTENCE, meaning="what mends it, or shows more of it, quoted for a shell"),
        Field(name="no_command", unit=Unit.SENTENCE, meaning="why there is none, where one could be expected"),
        Field(name="runbook", unit=Unit.WORD, meaning="the alert, and the name of its runbook: `segtail runbook NAME`, `/runbooks/NAME`"),
    ),
)
