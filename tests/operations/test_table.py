"""docs/alerts.md, held against the rules, the events, and Alertmanager's configuration."""

import re
from collections.abc import Iterator

import pytest

from tests.alerts.rendering import CONF
from tests.operations.events import COMBINED, EVENTS, SHORT
from tests.operations.table import DOCUMENT, Row, body, of_document, rows

ALERTS = {path.stem for path in (CONF / "alerts").glob("*.yaml")}
DOCUMENTED = of_document()

TABLE = """\
| event | what happens | fires | muted | resolves |
|---|---|---|---|---|
| An event | It begins | `A`, `B` | \N{EN DASH} | `C` |
| | It ends | \N{EN DASH} | `D` | \N{EN DASH} |

| another | table |
|---|---|
| of | no event |
"""


def test_the_rows_of_a_table() -> None:
    first, second = rows(TABLE)
    assert first == Row(event="An event", step="It begins", fires=frozenset("AB"), muted=frozenset(), resolves=frozenset("C"))
    assert (second.event, second.step, second.fires, second.muted) == ("An event", "It ends", frozenset(), frozenset("D"))


def test_a_border_of_a_cell_is_no_escaped_one() -> None:
    assert list(body("| one | two |\n|---|---|\n| `a\\|b` | c |\n", ("one", "two"))) == [["`a|b`", "c"]]


@pytest.mark.parametrize("cell", ["", "`A` `B`", "nothing", "`A`, and more", "A"])
def test_a_cell_that_is_no_list_of_alerts_is_refused(cell: str) -> None:
    with pytest.raises(ValueError, match="is not a list of alerts"):
        list(rows(TABLE.replace("`A`, `B`", cell)))


def test_every_event_is_documented_and_nothing_else() -> None:
    assert list(dict.fromkeys(row.event for row in DOCUMENTED)) == [*EVENTS, *COMBINED]
    assert set(SHORT) <= set(EVENTS)


def test_events_that_the_short_day_joins_have_no_alert_of_one_step_in_common() -> None:
    """Else one event could fire what the other has to, and nobody would see it."""
    steps = zip(*([row for row in DOCUMENTED if row.event == name] for name in SHORT), strict=True)
    common = [column for rows_of_step in steps for column in ("fires", "muted", "resolves") if _in_common(rows_of_step, column)]
    assert common == []


def _in_common(rows_of_step: tuple[Row, ...], column: str) -> frozenset[str]:
    alerts: list[frozenset[str]] = [getattr(row, column) for row in rows_of_step]
    return frozenset.intersection(*alerts)


def test_no_step_stands_twice_in_an_event() -> None:
    keys = [(row.event, row.step) for row in DOCUMENTED]
    assert len(keys) == len(set(keys))


def test_a_row_names_alerts_that_exist_and_none_twice() -> None:
    named = {f"{row.event}: {row.step}": (row.fires | row.muted | row.resolves) - ALERTS for row in DOCUMENTED}
    assert {row: unknown for row, unknown in named.items() if unknown} == {}
    assert [row for row in DOCUMENTED if row.fires & row.muted] == []


def left_firing(event: str) -> Iterator[object]:
    """Rows that resolve what did not fire, and what fires when all is over."""
    firing: set[str] = set()
    for row in (row for row in DOCUMENTED if row.event == event):
        if not row.resolves <= firing | row.fires | row.muted:
            yield row
        firing = (firing | row.fires | row.muted) - row.resolves
    if firing:
        yield firing


def test_an_event_ends_with_nothing_that_fires() -> None:
    """The next one begins calm."""
    assert {event: left for event in (*EVENTS, *COMBINED) if (left := list(left_firing(event)))} == {}


def test_what_happens_to_groups_is_what_fires_in_ordinary_hours() -> None:
    """The cells say what `tests/alerts/happenings/groups.yaml` has, which promtool tries."""
    cells = " ".join(cell for _, *found in body(DOCUMENT.read_text(encoding="utf-8"), ("what happens", "fires", "muted")) for cell in found)
    tried = (CONF.parent / "tests" / "alerts" / "happenings" / "groups.yaml").read_text(encoding="utf-8")
    assert {*re.findall(r"`(\w+)`", cells)} == {*re.findall(r'alertname="(\w+)", (?:group|severity)', tried)}
