"""docs/alerts.md, held against the rules, the events, and Alertmanager's configuration."""

import re

import pytest

from tests.alerts.rendering import CONF
from tests.operations.events import COMBINED, EVENTS, SHORT
from tests.operations.recording import ALWAYS
from tests.operations.table import DOCUMENT, Row, of_document, rows

ALERTS = {path.stem for path in (CONF / "alerts").glob("*.yaml")}
DOCUMENTED = of_document()

TABLE = """\
### An event

| what happens | fires | muted | resolves |
|---|---|---|---|
| It begins | `A`, `B` | \N{EN DASH} | `C` |
| It ends | \N{EN DASH} | `D` | \N{EN DASH} |

| another | table |
|---|---|
| of | no event |
"""


def test_the_rows_of_a_table() -> None:
    first, second = rows(TABLE)
    assert first == Row(event="An event", step="It begins", fires=frozenset("AB"), muted=frozenset(), resolves=frozenset("C"))
    assert (second.step, second.fires, second.muted) == ("It ends", frozenset(), frozenset("D"))


@pytest.mark.parametrize("cell", ["", "`A` `B`", "nothing", "`A`, and more", "A"])
def test_a_cell_that_is_no_list_of_alerts_is_refused(cell: str) -> None:
    with pytest.raises(ValueError, match="is not a list of alerts"):
        list(rows(TABLE.replace("`A`, `B`", cell)))


def test_every_event_is_documented_and_nothing_else() -> None:
    assert list(dict.fromkeys(row.event for row in DOCUMENTED)) == [*EVENTS, *COMBINED]
    assert set(SHORT) <= set(EVENTS)


def test_no_step_stands_twice_in_an_event() -> None:
    keys = [(row.event, row.step) for row in DOCUMENTED]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("row", DOCUMENTED, ids=lambda row: f"{row.event}: {row.step}")
def test_a_row_names_alerts_that_exist(row: Row) -> None:
    assert (row.fires | row.muted | row.resolves) - ALERTS == set()
    assert not row.fires & row.muted


def test_the_alerts_that_no_event_raises_are_listed() -> None:
    raised = {name for row in DOCUMENTED for name in row.fires | row.muted}
    (listed,) = re.findall(r"^None of these events raises (.*?)\.$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(ALERTS - raised - ALWAYS)


@pytest.mark.parametrize("event", [*EVENTS, *COMBINED])
def test_an_event_ends_with_nothing_that_fires(event: str) -> None:
    """The next one begins calm."""
    firing: set[str] = set()
    for row in DOCUMENTED:
        if row.event == event:
            assert row.resolves <= firing | row.fires | row.muted, row
            firing = (firing | row.fires | row.muted) - row.resolves
    assert firing == set()
