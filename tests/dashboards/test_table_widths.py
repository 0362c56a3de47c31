"""Panels whose titles have room, and tables whose columns have it for their heads and their widest known texts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streaming.cluster.view.observer import SECONDS
from streaming.kafka.groups.group_states import GroupState
from streaming.rules.config_values import ValueSource
from streaming.rules.coordinator_state import STATES
from streaming.rules.retention_rule import BLOCKED
from streaming.rules.transaction_verdicts import TransactionVerdict
from tests.dashboards.panels import Panel, all_panels
from tests.pictures.page import COLUMN, GAP

AROUND, FILTER, EDGES, SIGNS = 13, 20, 2, 36
"""Pixels in Grafana: beside the text of a cell, the sign of a filter in a head, the edges of a panel, what stands around its title."""

LEAST = 150
"""What Grafana gives a column that is not told otherwise."""

_ID = "mJp4iNsYQ2Sgkq1PzQvwJg"
KNOWN = {
    "job": ("payments-eu",),
    "topic": ("__consumer_offsets",),
    "partition": ("99999",),
    "broker": ("99999",),
    "first_offset": ("999999999999",),
    "producer_id": ("99999999",),
    "producer_epoch": ("32767",),
    "cluster_id": (_ID,),
    "topic_id": (_ID,),
    "verdict": tuple(verdict.label for verdict in TransactionVerdict),
    "coordinator_state": STATES,
    "reason": BLOCKED,
    "role": ("leader", "follower", "unknown"),
    "found_by": ("tail", "scrub"),
    "state": tuple(GroupState),
    "limit_source": tuple(ValueSource),
    "cleanup_policy": ("compact,delete",),
    "name": SECONDS,
}
"""The texts of labels, as far as Kafka or segtail chooses them; of names and numbers some that are long."""

OF_UNITS = {"s": ("10.5 hours", "12.3 mins"), "percentunit": ("84.3%",), "short": ("1.63 Mil",), "bool_yes_no": ("yes",)}

_EM = {
    **dict.fromkeys("ijl'", 0.28),
    **dict.fromkeys(" .,:", 0.32),
    **dict.fromkeys("frt-", 0.4),
    **dict.fromkeys("sz_", 0.53),
    **dict.fromkeys("ckvxyJ", 0.59),
    **dict.fromkeys("mwMW%", 0.98),
}


def wide(text: str) -> float:
    """Pixels of a text in the pictures' font, DejaVu Sans at 14 pixels, which is wider than Grafana's own."""
    return sum(14 * _EM.get(letter, 0.7 if letter.isupper() else 0.635) for letter in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: ``width`` is 0 if it grows, and then it has at least ``least``."""

    head: str
    width: float
    least: float
    needs: float


def columns(panel: Panel) -> Iterator[Column]:
    (organize,) = (each["options"] for each in panel.json["transformations"] if each["id"] == "organize")
    looks = {each["matcher"]["options"]: {of["id"]: of["value"] for of in each["properties"]} for each in override(panel)}
    for label in organize["indexByName"]:
        head = organize["renameByName"][label]
        look = looks.get(head, {})
        texts = words(look) or KNOWN.get(label, ()) or OF_UNITS.get(look.get("unit", "short" if "#" in label else ""), ())
        sign = FILTER if look.get("custom.filterable", True) else 0
        yield Column(
            head=head,
            width=look.get("custom.width", 0),
            least=look.get("custom.minWidth", LEAST),
            needs=AROUND + max([wide(head) + sign, *map(wide, texts)]),
        )


def override(panel: Panel) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = panel.json["fieldConfig"]["overrides"]
    return found


def words(look: dict[str, Any]) -> tuple[str, ...]:
    """Those that stand for values."""
    kinds = [(each["type"], each["options"]) for each in look.get("mappings", ())]
    return tuple(text["text"] for kind, of in kinds for text in ([of["result"]] if kind == "special" else of.values()))


def cut(panel: Panel) -> list[str]:
    """What cannot be read of a table, with how many pixels it lacks. A column that grows has what Grafana gives it."""
    there = pixels(panel) - EDGES
    all_of_it = list(columns(panel))
    growing = [each for each in all_of_it if not each.width]
    share = (there - sum(each.width for each in all_of_it)) / max(1, len(growing))
    given = {each.head: each.width or max(each.least, share) for each in all_of_it}
    lacking = {each.head: each.needs - given[each.head] for each in all_of_it} | {"the whole": sum(given.values()) - there}
    return [f"{name}: {missing:.0f}" for name, missing in lacking.items() if round(missing) > 0]


def pixels(panel: Panel) -> int:
    width: int = panel.json["gridPos"]["w"] * COLUMN - GAP
    return width


def test_every_title_fits_into_its_panel() -> None:
    assert {str(panel): wide(panel.title) for panel in all_panels() if wide(panel.title) > pixels(panel) - SIGNS} == {}


def test_every_column_has_room_and_the_last_one_ends_within_the_panel() -> None:
    tables = [panel for panel in all_panels() if panel.type == "table"]
    assert tables
    assert {str(panel): lacking for panel in tables if (lacking := cut(panel))} == {}
